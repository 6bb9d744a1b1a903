"""Transformers with hand-set weights."""

from measureflow.circuits.clarkson.kmeans import KMeansTransformer, kmeans_transformer
from measureflow.circuits.he.approximate import SigmoidSum, approximate
from measureflow.circuits.he.em import EMTransformer, em_transformer

__all__ = ["kmeans_transformer", "KMeansTransformer", "em_transformer", "EMTransformer", "approximate", "SigmoidSum"]
