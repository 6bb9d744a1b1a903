"""scikit-learn estimators."""

from measureflow.estimators.flow_mixture import FlowMixture
from measureflow.estimators.in_context import InContextClustering
from measureflow.estimators.kmeans import TransformerKMeans
from measureflow.mixtures.misfit import UnfamiliarDataWarning

__all__ = ["FlowMixture", "InContextClustering", "TransformerKMeans", "UnfamiliarDataWarning"]
