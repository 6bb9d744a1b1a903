"""A scikit-learn estimator that clusters by a transformer trained on labelled mixtures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from measureflow.estimators import checks
from measureflow.estimators.flow_settings import check_weights
from measureflow.lloyd.points import Points
from measureflow.measures.he_mixtures import HeMixtures
from measureflow.models.in_context import InContextClusterer, standardised
from measureflow.training.in_context import FOUND, train


class InContextClustering(ClusterMixin, BaseEstimator):
    """Cluster data by an `InContextClusterer` [He 2025, 4]: it sees all points at once and names the cluster of each.

    Without a ``model``, `fit` first trains one for the data's dimension and ``n_clusters`` on random mixtures, for
    ``n_steps``; the data itself is never trained on. Keep ``model_`` and pass it as ``model`` to cluster more data.

    After `fit`: ``labels_``, ``cluster_centers_`` (means by label; the grand mean for a label no point has) and
    ``model_``. `predict` gives new points the label of the nearest centre.

    >>> X = np.concatenate([np.zeros((20, 2)), np.full((20, 2), 9.0)]) + np.random.default_rng(0).normal(size=(40, 2))
    >>> labels = InContextClustering(n_clusters=2, n_steps=30, random_state=0).fit_predict(X)
    >>> len(set(labels[:20])), len(set(labels[20:])), bool(labels[0] == labels[-1])
    (1, 1, False)
    """

    def __init__(
        self,
        n_clusters: int = 4,
        *,
        model: InContextClusterer | None = None,
        n_steps: int = 500,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.model = model
        self.n_steps = n_steps
        self.random_state = random_state

    def fit(self, X, y=None):
        """Train a model if none was given, and label the points of X."""
        checks.whole("n_clusters", self.n_clusters)
        checks.whole("n_steps", self.n_steps)
        X = checks.squarable(checks.table(self, X, dtype=[np.float64, np.float32], order="C"))
        if self.n_clusters > len(X):
            raise ValueError(f"n_clusters must lie in 1..{len(X)}, the number of points, got {self.n_clusters}")
        self.model_ = self._trained(X.shape[1]) if self.model is None else self._checked(X.shape[1])
        points = standardised(torch.as_tensor(X.astype(np.float64)))  # units that any model can hold
        self.labels_ = self.model_.labels(points).cpu().numpy()
        grand = X.mean(0)
        members = [X[self.labels_ == j] for j in range(self.n_clusters)]
        self.cluster_centers_ = np.stack([part.mean(0) if len(part) else grand for part in members])
        return self

    def predict(self, X):
        """The label of the nearest centre."""
        check_is_fitted(self)
        X = checks.squarable(checks.table(self, X, reset=False, dtype=self.cluster_centers_.dtype, order="C"))
        return Points(X).assign(self.cluster_centers_).labels.astype(self.labels_.dtype)

    def _trained(self, d: int) -> InContextClusterer:
        seed = int(checks.generator(self.random_state).randint(2**31 - 1))
        generator = torch.Generator().manual_seed(seed)
        model = InContextClusterer(self.n_clusters, d, generator=generator)
        mixtures = HeMixtures(n_classes=self.n_clusters, dimension=d)
        train(model, mixtures, replace(FOUND, n_steps=self.n_steps), generator=generator)
        return model.eval()

    def _checked(self, d: int) -> InContextClusterer:
        if not isinstance(self.model, InContextClusterer):
            raise ValueError(f"model must be an InContextClusterer or None, got {self.model!r:.80}")
        check_weights(self.model)
        made_for = (self.model.config.n_classes, self.model.config.dimension)
        if made_for != (self.n_clusters, d):
            raise ValueError(
                f"model was made for {made_for[0]} clusters in {made_for[1]} dimensions, "
                f"not for n_clusters={self.n_clusters} in {d}"
            )
        if self.model.config.context:
            raise ValueError("model must have context=False: the context rows need first labels")
        return self.model
