"""k-means and its variants as a scikit-learn estimator, each of which is a transformer too."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from measureflow.attention.threads import one_thread
from measureflow.estimators import checks, dask_points
from measureflow.estimators.kmeans_algorithms import ALGORITHMS, ATTENTIONS, EMPTY, WEIGHTINGS
from measureflow.lloyd import seeding
from measureflow.lloyd.points import Points
from measureflow.lloyd.steps import on_sphere
from measureflow.measures.caller import warn_caller

INITS = {"k-means++": seeding.plus_plus, "random": seeding.at_random}
CHOICES = {
    "algorithm": ALGORITHMS,
    "attention": ATTENTIONS,
    "engine": ("fused", "transformer"),
    "empty_cluster": EMPTY,
    "weighting": WEIGHTINGS,
}


class Run(NamedTuple):
    """The result of one start."""

    inertia: float
    labels: np.ndarray
    centers: np.ndarray
    n_iter: int
    gamma: float


class TransformerKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    r"""k-means whose iterations are the layers of a transformer with hand-set weights [Clarkson 2025].

    Each iteration equals one layer of `measureflow.circuits.kmeans_transformer`. By default compiled passes over the
    rows compute it, with the same numbers; ``engine="transformer"`` runs the matrices of the transformer.

    Parameters
    ----------
    n_clusters : int
        The number of clusters.
    algorithm : {"lloyd", "soft", "spherical", "trimmed", "robust", "medoids"}
        The variant of k-means, a row of Table 1. "spherical" divides rows by their length first.
    attention : {"l2", "dot"}
        Scores of the transformer: squared distances, or dot products of lifted points. Both give the same centres.
    gamma : float
        Inverse temperature. For "lloyd" and "spherical" a finite gamma makes all hard-maxes soft (and runs the
        transformer itself). "trimmed" uses the norm-max at a finite gamma and ``percentile`` at infinity. "soft"
        and "robust" need a finite one: infinity sets it to the inverse of twice the variance around the first
        centres, kept in ``gamma_``.
    init : {"k-means++", "random"} or array (n_clusters, d)
        The first centres: rows drawn by k-means++ or at random, or the centres themselves.
    n_init : int or "auto"
        The number of starts; the one of least inertia is kept. "auto" is 10 for "random", else 1.
    max_iter : int
        The largest number of layers.
    tol : float
        The run ends when the squared move of the centres, in units of the mean variance, is at most this.
    empty_cluster : {"relocate", "keep", "mean"}
        What a centre without points does in "lloyd" and "spherical": it moves to the point farthest from its nearest
        centre, stays, or moves to the mean of all points as the bare circuit does. In the other algorithms it
        treats all points as its members. A point tied between centres belongs to the first of them and moves none
        that has a point of its own, as in the circuit.
    percentile : float
        The percentage of a cluster that "trimmed" keeps.
    weighting : {"softmax", "sparsemax", "topk"}
        How "robust" weighs the members of a cluster by their distance.
    n_nearest : float
        How many members, by weight, ``weighting="topk"`` uses.
    gap : float
        How unlikely "medoids" is to draw a centre outside its cluster (delta of Algorithm 6).
    engine : {"fused", "transformer"}
        Compiled passes, or the matrices of the transformer.
    random_state : int, RandomState or None
        The seed of the first centres, and of the draws of "medoids".
    n_threads : int or None
        Threads of the fused engine, all by default; the result does not depend on it.

    Attributes
    ----------
    cluster_centers_ : array (n_clusters, d)
        The last centres.
    labels_ : array (n,)
        The cluster of each row.
    inertia_ : float
        The sum of squared distances of the rows to their centres, by weight.
    n_iter_ : int
        The number of layers that were run.
    gamma_ : float
        The inverse temperature that was used.

    Examples
    --------
    >>> X = np.array([[1.0, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = TransformerKMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.predict([[0, 0], [12, 3]]).tolist() == model.labels_[[0, 3]].tolist()
    True
    >>> round(model.inertia_, 6)
    16.0
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        algorithm="lloyd",
        attention="l2",
        gamma=math.inf,
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        empty_cluster="relocate",
        percentile=90.0,
        weighting="softmax",
        n_nearest=10.0,
        gap=1.0,
        engine="fused",
        random_state=None,
        n_threads=None,
    ):
        self.n_clusters = n_clusters
        self.algorithm = algorithm
        self.attention = attention
        self.gamma = gamma
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.empty_cluster = empty_cluster
        self.percentile = percentile
        self.weighting = weighting
        self.n_nearest = n_nearest
        self.gap = gap
        self.engine = engine
        self.random_state = random_state
        self.n_threads = n_threads

    @one_thread()
    def fit(self, X, y=None, sample_weight=None):
        """Cluster the rows of X, a Dask array included; a weight of 2 is a row twice, also in the first centres."""
        self._check_parameters()
        points = self._points_to_fit(X, sample_weight)
        if points.shape[0] < self.n_clusters:
            raise ValueError(f"n_samples={points.shape[0]} should be >= n_clusters={self.n_clusters}")
        rng = checks.generator(self.random_state)
        best = min((self._run(points, rng) for _ in range(self._starts())), key=lambda run: run.inertia)
        self.inertia_, self.labels_, self.cluster_centers_, self.n_iter_, self.gamma_ = best
        self._n_features_out = self.n_clusters
        self._warn_if_fewer(best.centers)
        return self

    def fit_transform(self, X, y=None, sample_weight=None):
        """Fit, and the distances of the rows to the centres."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    @one_thread()
    def predict(self, X):
        """The nearest centre of each row, the first of those tied."""
        return self._points(X).assign(self.cluster_centers_).labels

    @one_thread()
    def transform(self, X):
        """Euclidean distances (n, n_clusters) of the rows to the centres (on the sphere, of the rows at length one)."""
        points = Points(self._rows(X), threads=self.n_threads)
        return np.sqrt(-points.similarity_to_all(self.cluster_centers_)).astype(points.X.dtype)

    @one_thread()
    def score(self, X, y=None, sample_weight=None):
        """Minus the sum of squared distances to the nearest centres: larger is better."""
        return -_nearest(self._points(X, sample_weight), self.cluster_centers_)[0]

    def _run(self, points: Points, rng) -> Run:
        """From first centres to the last."""
        C = self._first_centers(points, rng)
        algorithm = ALGORITHMS[self.algorithm].of(self).prepared(points, C, rng)
        step = (algorithm.compiled if self.engine == "fused" else algorithm.circuit)(points, C)
        if not algorithm.converges:
            drawn = [C]
            for _ in range(self.max_iter):
                drawn.append(step(drawn[-1])[1])
            best = min(((*_nearest(points, C), C) for C in drawn), key=lambda found: found[0])
            return Run(*best, self.max_iter, float(algorithm.gamma))
        tol, layers = self.tol * points.variance(), 0
        while layers < self.max_iter:
            _, new = step(C)
            move, C = float(((new - C) ** 2).sum()), new
            layers += 1
            if move <= tol:
                break
        return Run(*_nearest(points, C), C, layers, float(algorithm.gamma))

    def _first_centers(self, points: Points, rng) -> np.ndarray:
        if isinstance(self.init, str):
            return np.ascontiguousarray(INITS[self.init](points, self.n_clusters, rng))
        try:
            C = np.ascontiguousarray(self.init, dtype=points.rows(slice(0, 1)).dtype)
        except (TypeError, ValueError, OverflowError, RuntimeError) as error:
            raise ValueError(f"init must be an array of numbers: {error}") from None
        if C.shape != (self.n_clusters, points.shape[1]):
            raise ValueError(f"init must have shape ({self.n_clusters}, {points.shape[1]}), got {C.shape}")
        if not np.isfinite(C).all():
            raise ValueError("init must be finite")
        return on_sphere(C).astype(C.dtype) if points.spherical else C

    def _starts(self) -> int:
        if self.n_init == "auto":
            return 10 if isinstance(self.init, str) and self.init == "random" else 1
        return int(self.n_init)

    def _points_to_fit(self, X, sample_weight) -> Points:
        if dask_points.is_dask(X):
            algorithm = ALGORITHMS[self.algorithm].of(self)
            if not algorithm.in_blocks or self.engine != "fused":
                raise ValueError(
                    "a Dask array needs algorithm='lloyd' or 'spherical', with engine='fused' and an infinite gamma"
                )
            points = dask_points.DaskPoints(X, sample_weight, algorithm.spherical)
            self.n_features_in_ = X.shape[1]
            return points
        return self._points(X, sample_weight, reset=True)

    def _points(self, X, sample_weight=None, reset=False) -> Points:
        rows = self._rows(X, reset)
        w = None if sample_weight is None else checks.weights(sample_weight, len(rows))
        return Points(rows, w, spherical=ALGORITHMS[self.algorithm].spherical, threads=self.n_threads)

    def _rows(self, X, reset=False) -> np.ndarray:
        """Checked rows, divided by their length in a spherical algorithm."""
        if not reset:
            check_is_fitted(self)
        dtypes = [np.float64, np.float32] if reset else self.cluster_centers_.dtype
        X = checks.squarable(checks.table(self, X, dtype=dtypes, order="C", reset=reset))
        return unit_rows(X) if ALGORITHMS[self.algorithm].spherical else X

    def _check_parameters(self) -> None:
        for name, allowed in CHOICES.items():
            checks.choice(name, getattr(self, name), allowed)
        if isinstance(self.init, str):
            checks.choice("init", self.init, INITS)
        checks.whole("n_clusters", self.n_clusters)
        checks.whole("max_iter", self.max_iter)
        if not (isinstance(self.n_init, str) and self.n_init == "auto"):
            checks.whole("n_init", self.n_init)
        if self.n_threads is not None:
            checks.whole("n_threads", self.n_threads)
        for name in ("gamma", "n_nearest", "gap"):
            checks.real(name, getattr(self, name), 0)
        checks.real("tol", self.tol, -1)
        checks.real("percentile", self.percentile, 0, 100)

    def _warn_if_fewer(self, C: np.ndarray) -> None:
        found = len(np.unique(C, axis=0))
        if found < self.n_clusters and ALGORITHMS[self.algorithm].converges:
            fewer = f"the data have {found} distinct clusters, fewer than n_clusters={self.n_clusters}"
            warn_caller(fewer, ConvergenceWarning)


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Rows divided by their length; a ValueError names the first row that has none."""
    length = np.linalg.norm(X, axis=1, keepdims=True)
    if (length == 0).any():
        raise ValueError(f"X has a row of length zero (row {int(np.argmin(length))}), which has no direction")
    return np.ascontiguousarray(X / length)


def _nearest(points: Points, C: np.ndarray) -> tuple[float, np.ndarray]:
    """The sum of squared distances to the nearest centres, and their labels."""
    labels = points.assign(C).labels
    s = points.similarity_to_own(C, labels)
    r = np.maximum(1 + (C * C).sum(1)[labels] - 2 * s, 0) if points.spherical else -s
    return float(points.weights @ r), labels
