"""Transformers with hand-set weights."""

from measureflow.circuits.approximate import SigmoidSum, approximate
from measureflow.circuits.em import EMTransformer, em_transformer
from measureflow.circuits.kmeans import KMeansTransformer, kmeans_transformer

__all__ = ["kmeans_transformer", "KMeansTransformer", "em_transformer", "EMTransformer", "approximate", "SigmoidSum"]
