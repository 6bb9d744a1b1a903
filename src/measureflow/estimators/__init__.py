"""The scikit-learn door."""

from measureflow.estimators.kmeans import TransformerKMeans

__all__ = ["TransformerKMeans"]
