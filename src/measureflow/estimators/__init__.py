"""The scikit-learn door."""

from measureflow.estimators.flow_mixture import FlowMixture, UnfamiliarDataWarning
from measureflow.estimators.kmeans import TransformerKMeans

__all__ = ["FlowMixture", "UnfamiliarDataWarning", "TransformerKMeans"]
