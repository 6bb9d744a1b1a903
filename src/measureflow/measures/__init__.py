"""What flows: weighted point clouds, Gaussians, random mixtures, and the distances between them."""

from measureflow.measures.empirical import Empirical
from measureflow.measures.gaussian import Gaussian
from measureflow.measures.he_mixtures import HeMixtures, LabelledSets
from measureflow.measures.priors import MixturePrior, Mixtures, signal_to_noise
from measureflow.measures.transport import (
    bures_wasserstein2,
    conditional_wasserstein2,
    entropic_bures,
    sinkhorn,
    wasserstein2,
)

__all__ = [
    "Empirical", "Gaussian",
    "wasserstein2", "sinkhorn", "bures_wasserstein2", "entropic_bures", "conditional_wasserstein2",
    "MixturePrior", "Mixtures", "signal_to_noise", "HeMixtures", "LabelledSets",
]  # fmt: skip
