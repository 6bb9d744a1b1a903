"""Transformers with hand-set weights."""

from measureflow.circuits.kmeans import KMeansTransformer, kmeans_transformer

__all__ = ["kmeans_transformer", "KMeansTransformer"]
