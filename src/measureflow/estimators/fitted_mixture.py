"""The methods of a fitted mixture: labels, probabilities, pairs, densities, samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, DensityMixin, TransformerMixin
from sklearn.metrics import pairwise_distances
from sklearn.utils.validation import check_is_fitted

from measureflow.attention.threads import one_thread
from measureflow.coclustering.clusters import ShapedClusters
from measureflow.coclustering.consensus import Consensus
from measureflow.estimators import checks
from measureflow.estimators.finite_rows import check_spread, finite_rows
from measureflow.estimators.flow_dial import FlowDial
from measureflow.estimators.flow_settings import FlowSettings
from measureflow.measures import Empirical
from measureflow.mixtures.clusters import GaussianClusters
from measureflow.mixtures.mixing_measure import mixing
from measureflow.mixtures.rows import Rows
from measureflow.mixtures.search import Flowed, Search, SearchResult
from measureflow.mixtures.shared_noise import SharedNoise, responsibilities

MOST_PAIRED = 4096  # rows up to which all pairs are computed at once


class FittedMixture(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, DensityMixin, BaseEstimator):
    """The methods of a fitted `FlowMixture`; those about its Gaussians search for them where the fit left a sketch."""

    missing: str  # parameters and results that `FlowMixture` sets
    label_outliers: bool
    random_state: object
    n_layers: int | None
    polish: bool
    weights_: np.ndarray
    cluster_centers_: np.ndarray
    n_clusters_: int
    _gaussians: GaussianClusters
    _clusters: GaussianClusters | ShapedClusters
    _consensus: Consensus | None
    _paired_rows: np.ndarray | None
    _flowed: Flowed | None
    _settings: FlowSettings
    _summary: Rows
    _dial: FlowDial | None
    _is_sketch: bool
    _mixing_measure: Empirical

    @one_thread()
    def predict(self, X):
        """The most probable cluster of each row."""
        X, kept = self._rows_to_label(X)
        return self._labelled(X, kept)[0]

    @one_thread()
    def predict_proba(self, X):
        """The probability of each cluster for each row, (n, n_clusters_)."""
        X = self._rows_to_label(X, drop=False)[0]
        return self._clusters.probabilities(X)

    @one_thread()
    def co_clustering(self, X, Y=None):
        """The probability (n, m) that rows of X belong together with rows of Y, or of X where Y is None.

        A row that the second flow did not see has the probabilities of the nearest row that it saw.
        """
        X = self._rows_to_label(X, drop=False)[0]
        Y = X if Y is None else self._rows_to_label(Y, drop=False)[0]
        return self._paired(X, Y)

    @one_thread()
    def score_samples(self, X):
        """The log-density of the mixture of Gaussians at each row."""
        X = self._rows_to_label(X, drop=False)[0]
        return self._searched().posteriors(X)[1]

    def score(self, X, y=None):
        """The mean log-density of the rows."""
        return float(self.score_samples(X).mean())

    def transform(self, X):
        """Distances (n, n_clusters_) of the rows to the centres."""
        return pairwise_distances(self._rows_to_label(X, drop=False)[0], self.cluster_centers_)

    @one_thread()
    def sample(self, n_samples=1):
        """New rows drawn from the mixture of Gaussians, and the clusters they belong to."""
        check_is_fitted(self)
        checks.whole("n_samples", n_samples)
        X, labels = self._searched().sample(n_samples, checks.generator(self.random_state))
        return X, labels if self._clusters is self._gaussians else self._clusters.probabilities(X).argmax(1)

    @property
    @one_thread()
    def covariances_(self) -> np.ndarray:
        """The covariance of each cluster."""
        check_is_fitted(self)
        return self._clusters.covariances

    @property
    @one_thread()
    def noise_covariance_(self) -> np.ndarray:
        """Average of the cluster covariances, weighted by cluster size."""
        check_is_fitted(self)
        return np.tensordot(self.weights_, self._clusters.covariances, 1)

    @property
    @one_thread()
    def co_clustering_(self) -> np.ndarray:
        """The probability that two of the rows fitted belong together."""
        check_is_fitted(self)
        if self._paired_rows is None:
            raise AttributeError(f"co_clustering_ is for up to {MOST_PAIRED} rows: call co_clustering(X, Y) for some")
        return self._paired(self._paired_rows, self._paired_rows)

    @property
    @one_thread()
    def flow_(self) -> FlowDial:
        """The trajectory of the rows along the first flow, whose ``cut`` gives clusters at other ratios."""
        check_is_fitted(self)
        gaussians = self._searched()
        if self._dial is None:
            self._dial = FlowDial.of(self._flowed, gaussians, self._settings)
        return self._dial

    @property
    @one_thread()
    def mixing_measure_(self) -> Empirical:
        """The estimated mixing measure of the Gaussians."""
        check_is_fitted(self)
        self._searched()
        return self._mixing_measure

    @property
    @one_thread()
    def certificate_(self) -> dict[str, float]:
        """Mean log-likelihood of the rows the flow saw: under the Gaussians, and under its tokens with that noise."""
        check_is_fitted(self)
        mixture = self._searched().mixture
        if self.flow_.tree is None or mixture.variance <= 0:
            return {}
        seen, tree = self.flow_.seen, self.flow_.tree
        tokens = SharedNoise(tree.tokens, tree.weights, mixture.variance)
        density = lambda fit: float(seen.weights @ responsibilities(seen.points, fit)[1] / seen.mass)  # noqa: E731
        return {"clusters": density(mixture), "flow": density(tokens)}

    def _searched(self) -> GaussianClusters:
        """The Gaussians of all rows. Where shapes are the answer, the fit left a sketch: now they are searched for."""
        if self._is_sketch:
            found = Search(self._settings, self._summary, n_layers=self.n_layers).run(polish=self.polish)
            self._gaussians = GaussianClusters.of(found.frame, found.mixture)
            self._keep_flow(self._summary, found)
        return self._gaussians

    def _keep_flow(self, rows: Rows, found: SearchResult) -> None:
        self._flowed, self._dial, self._is_sketch = found.flowed, None, found.is_sketch
        points, weights = mixing(replace(found, mixture=self._gaussians.mixture), rows)
        points = torch.as_tensor(self._gaussians.frame.outward(points))
        self._mixing_measure = Empirical(points, torch.as_tensor(weights))

    @property
    def _n_features_out(self):
        return self.n_clusters_

    def _labelled(self, X: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels, their probabilities and whether a row is an outlier; -1, 0 and True for rows not kept."""
        labels, probabilities, outliers = np.full(len(kept), -1), np.zeros(len(kept)), np.ones(len(kept), dtype=bool)
        p = self._clusters.probabilities(X)
        labels[kept], probabilities[kept], outliers[kept] = p.argmax(1), p.max(1), False
        if self._consensus is not None and self._consensus.outliers.any():
            outliers[kept] = self._consensus.outliers[self._consensus.seen.nearest(X)]
            if self.label_outliers:
                labels[outliers] = -1
        return labels, probabilities, outliers

    def _paired(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        if self._consensus is None:
            return self._gaussians.probabilities(X) @ self._gaussians.probabilities(Y).T
        seen, P = self._consensus.seen, self._consensus.posterior.together
        return P[np.ix_(seen.nearest(X), seen.nearest(Y))]

    def _rows_to_label(self, X, drop=True) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        X, kept = self._validated(X, reset=False)
        if not drop and not kept.all():
            raise ValueError(f"X has {int((~kept).sum())} rows with missing values, for which there is no answer")
        return X, kept

    def _validated(self, X, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        """Rows without gaps, and which they are; else an error that names the first bad one."""
        names = getattr(X, "columns", None)
        X = checks.table(self, X, dtype=np.float64, order="C", reset=reset, ensure_all_finite=False)
        X, kept = finite_rows(X, self.missing == "drop", names=names)
        check_spread(X)
        return X, kept
