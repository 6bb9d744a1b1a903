"""What flows: weighted point clouds, Gaussians, random mixtures, and the distances between them."""

from measureflow.measures.empirical import Empirical
from measureflow.measures.gaussian import Gaussian

__all__ = ["Empirical", "Gaussian"]
