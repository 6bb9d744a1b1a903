"""The scikit-learn door."""

from measureflow.estimators.familiarity import UnfamiliarDataWarning
from measureflow.estimators.flow_mixture import FlowMixture
from measureflow.estimators.kmeans import TransformerKMeans

__all__ = ["FlowMixture", "UnfamiliarDataWarning", "TransformerKMeans"]
