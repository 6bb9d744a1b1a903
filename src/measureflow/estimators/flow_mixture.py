"""Clusters without choosing K: a pretrained flow proposes mixtures, and the evidence chooses among them."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, DensityMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from measureflow.attention.threads import one_thread, side_by_side
from measureflow.estimators import checks, dask_points
from measureflow.estimators.flow_dial import FlowDial
from measureflow.estimators.flow_settings import FlowSettings, open_flow
from measureflow.measures import Empirical
from measureflow.mixtures.misfit import UnfamiliarDataWarning, coarse_column, misfit_message
from measureflow.mixtures.mixing_measure import mixing
from measureflow.mixtures.rows import Rows, distinct_rows
from measureflow.mixtures.search import CLIMB_ROWS, Search, SearchResult
from measureflow.mixtures.shared_noise import SharedNoise, responsibilities
from measureflow.models.flow_speed import SCHEDULES

SUMMARY_ROWS = 8192  # rows that partial_fit remembers
MOST_LAYERS = 1024


class FlowMixture(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, DensityMixin, BaseEstimator):
    r"""A mixture of Gaussians, found by a pretrained flow; the number of clusters is an output.

    The rows flow along `AnyDimensionFlow` onto the mixing measure :math:`\sum_k p_k \delta_{\mu_k}`. A sample is
    flowed at a few signal-to-noise ratios to learn the noise, then all rows (up to 1024) at the right one; the
    tokens are merged into atoms, for every number of them, EM polishes each, and Laplace's evidence weighs them. Where
    the clusters found are not round, the coordinates are changed until they are, and the flow runs again; where
    clusters with shapes of their own are clearly better than round atoms, atoms are merged into them.

    Parameters
    ----------
    n_clusters : int or None
        SearchResult when None, obeyed when given.
    snr_db : float or None
        Signal-to-noise ratio in decibels, :math:`10\log_{10}(\text{variance of the centres} / \sigma^2)`; estimated
        when None. A lower one gives fewer, coarser clusters.
    model : str, path or module
        A name in ``load_pretrained.available()``, a folder with weights, or an `AnyDimensionFlow`.
    n_layers : int or None
        Layers of the flow, at most 1024; as trained when None.
    schedule : {"uniform", "unit", "no-flow"}
        How far the layers go [Zimin 2025, C.3]: "uniform", for which the shipped flow was trained, shares evenly the
        flow that the signal-to-noise ratio calls for; "unit" goes a full step each until that is used up; "no-flow"
        goes a full step each, whatever it is.
    polish : bool
        Whether EM moves the atoms to more likelihood over all rows at the end.
    missing : {"error", "drop"}
        What to do with rows that hold NaN or infinity: complain, or leave them out and label them -1.
    random_state : int, RandomState or None
        Used by `sample` alone: fitting involves no chance.
    device : str, torch.device or None
        Where the flow runs, on a copy of the model; where the model is when None. All else runs on the CPU.

    Attributes
    ----------
    labels_, cluster_centers_, weights_, noise_variance_, snr_db_, n_clusters_
        Clusters are ordered by weight, then by position.
    n_clusters_posterior_ : dict
        The probability of each number of clusters that was considered.
    mixing_measure_ : Empirical
        The answer in the sense of least W2: where clusters overlap and the flow saw all rows, its tokens, drawn toward
        the clusters of every likely number of them; else the centres with their weights.
    flow_ : FlowDial
        The trajectory of the rows the flow saw, with ``plot()``, ``to_pandas()`` and ``cut(snr_db)``.
    certificate_ : dict
        Mean log-likelihood of the rows under the clusters, and under the flow's tokens with the same noise.
    covariances_ : array (n_clusters_, d, d)
        The shapes of the clusters: all the same (a sphere, an ellipsoid along the columns or any ellipsoid, whichever
        the evidence favours), or one each where that is clearly better.
    noise_covariance_ : array (d, d)
        Their mean over the rows; ``noise_variance_`` is the mean of its diagonal.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(centre, 0.3, (100, 2)) for centre in (-2, 0, 2)])
    >>> mixture = FlowMixture().fit(X)
    >>> mixture.n_clusters_, round(mixture.noise_variance_, 2)
    (3, 0.09)
    """

    def __init__(
        self,
        n_clusters=None,
        *,
        snr_db=None,
        model="any-dimension",
        n_layers=None,
        schedule="uniform",
        polish=True,
        missing="error",
        random_state=None,
        device=None,
    ):
        self.n_clusters = n_clusters
        self.snr_db = snr_db
        self.model = model
        self.n_layers = n_layers
        self.schedule = schedule
        self.polish = polish
        self.missing = missing
        self.random_state = random_state
        self.device = device

    @one_thread()
    def fit(self, X, y=None, sample_weight=None):
        """Find the clusters of the rows of X, a Dask array included; a weight of 2 is a row twice."""
        self._check_parameters()
        if dask_points.is_dask(X):
            return self._fit_blocks(X, sample_weight)
        X, w, kept = self._rows_to_fit(X, sample_weight)
        rows = distinct_rows(X, w)
        self._fit_rows(rows)
        self._summary = rows.summary(SUMMARY_ROWS)
        self.labels_ = np.full(len(kept), -1)
        self.labels_[kept] = self._posteriors(X)[0].argmax(1)
        return self

    @one_thread()
    def partial_fit(self, X, y=None, sample_weight=None):
        """Fit to these rows and all before them, of which a weighted summary is remembered."""
        self._check_parameters()
        first = getattr(self, "_summary", None) is None
        X, w, kept = self._rows_to_fit(X, sample_weight, reset=first)
        if not first:
            X, w = np.concatenate([self._summary.points, X]), np.concatenate([self._summary.counts, w])
        rows = distinct_rows(X, w)
        self._fit_rows(rows)
        self._summary = rows.summary(SUMMARY_ROWS)
        self.labels_ = np.full(len(kept), -1)
        self.labels_[kept] = self._posteriors(X[-int(kept.sum()) :])[0].argmax(1)
        return self

    @one_thread()
    def predict(self, X):
        """The most probable cluster of each row under the fitted mixture; no flow is run."""
        X, kept = self._rows_to_label(X)
        labels = np.full(len(kept), -1)
        labels[kept] = self._posteriors(X)[0].argmax(1)
        return labels

    @one_thread()
    def predict_proba(self, X):
        """The probability of each cluster for each row, (n, n_clusters_)."""
        return self._posteriors(self._rows_to_label(X, drop=False)[0])[0]

    @one_thread()
    def score_samples(self, X):
        """The log-density of the fitted mixture at each row."""
        return self._posteriors(self._rows_to_label(X, drop=False)[0])[1]

    def score(self, X, y=None):
        """The mean log-density of the rows."""
        return float(self.score_samples(X).mean())

    def transform(self, X):
        """Distances (n, n_clusters_) of the rows to the centres."""
        X = self._rows_to_label(X, drop=False)[0]
        return np.sqrt(((X[:, None] - self.cluster_centers_) ** 2).sum(-1))

    @one_thread()
    def sample(self, n_samples=1):
        """New rows drawn from the mixture, and the clusters they came from."""
        check_is_fitted(self)
        checks.whole("n_samples", n_samples)
        rng = checks.generator(self.random_state)
        labels = np.sort(rng.choice(self.n_clusters_, size=n_samples, p=self.weights_))
        values, vectors = np.linalg.eigh(self._fit.covariances)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None]
        noise = np.einsum("nij,nj->ni", roots[labels], rng.standard_normal((n_samples, roots.shape[1])))
        inside = self._frame.outward(self._fit.centres[labels] + noise)
        return inside + self._frame.noise(n_samples, rng), labels

    @property
    def _n_features_out(self):
        return self.n_clusters_

    def _fit_rows(self, rows: Rows) -> None:
        """Everything that is learned: the frame, the noise, the candidates, the choice."""
        K = self.n_clusters
        if K is not None and len(rows.counts) < K:
            raise ValueError(f"n_clusters={K} exceeds the {len(rows.counts)} distinct rows of X (n_samples too small)")
        search = Search(self._model(), rows, n_clusters=K, snr_db=self.snr_db, n_layers=self.n_layers)
        self._keep(rows, search.run(polish=self.polish))

    def _keep(self, rows: Rows, found: SearchResult) -> None:
        self._frame, fit = found.frame, found.mixture
        centres = self._frame.outward(fit.centres)
        order = np.lexsort((*centres.T[::-1], -np.round(fit.masses, 12)))
        self._fit = fit.ordered(order)
        self.cluster_centers_, self.weights_ = centres[order], fit.masses[order] / fit.masses.sum()
        self.n_clusters_ = len(fit)
        self.noise_variance_ = float(np.diagonal(self.noise_covariance_).mean())
        self.snr_db_ = float(self.snr_db) if self.snr_db is not None else _snr_db(self._fit)
        self.n_clusters_posterior_ = found.posterior
        self._keep_flow(rows, found)
        self._warn(rows.sample(CLIMB_ROWS))

    def _warn(self, rows: Rows) -> None:
        """Say so when the rows do not look like a few round clusters with one noise."""
        column, odd = coarse_column(rows), misfit_message(self._frame.inward(rows), self._fit)
        if column is not None:
            name = getattr(self, "feature_names_in_", range(rows.points.shape[1]))[column]
            text = f"column {name!r} has only a few different values and splits the clusters by them: leave it out?"
        elif odd is not None:
            text = f"{odd}: the flow was trained on round clusters of one size"
        else:
            return
        warnings.warn(text, UnfamiliarDataWarning, stacklevel=6)

    def _keep_flow(self, rows: Rows, found: SearchResult) -> None:
        if found.flowed is None:
            still = torch.as_tensor(self.cluster_centers_)
            self.flow_ = FlowDial.still(still)
            self.mixing_measure_ = Empirical(still, torch.ones(len(still), dtype=still.dtype))
            return
        path, seen, tree = found.flowed.path, found.flowed.seen, found.flowed.tree
        outward = [torch.as_tensor(self._frame.outward(state[0].numpy())) for state in path]
        self.flow_ = FlowDial(outward, path, seen, self._frame, self._model(), found.flowed.assumed_snr_db, tree)
        points, masses = mixing(replace(found, mixture=self._fit), rows)
        self.mixing_measure_ = Empirical(torch.as_tensor(self._frame.outward(points)), torch.as_tensor(masses))

    @property
    @one_thread()
    def covariances_(self) -> np.ndarray:
        """The shapes of the clusters."""
        check_is_fitted(self)
        return self._frame.covariances_outward(self._fit.covariances)

    @property
    @one_thread()
    def noise_covariance_(self) -> np.ndarray:
        """The mean of the shapes over the rows."""
        check_is_fitted(self)
        return self._frame.covariances_outward(np.tensordot(self.weights_, self._fit.covariances, 1)[None])[0]

    @property
    @one_thread()
    def certificate_(self) -> dict[str, float]:
        """Mean log-likelihood of the rows the flow saw: under the clusters, and under its tokens with that noise."""
        check_is_fitted(self)
        if self.flow_.tree is None or self._fit.variance <= 0:
            return {}
        seen, tree = self.flow_.seen, self.flow_.tree
        tokens = SharedNoise(tree.tokens, tree.masses, self._fit.variance)
        density = lambda fit: float(seen.counts @ responsibilities(seen.points, fit)[1] / seen.total)  # noqa: E731
        return {"clusters": density(self._fit), "flow": density(tokens)}

    @one_thread()
    def _posteriors(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities of the clusters and log-densities, in blocks so that memory stays small."""
        starts, shift = range(0, max(len(X), 1), 65536), self._frame.log_volume
        blocks = (self._frame.rows_inward(X[a : a + 65536]) for a in starts)
        if self._fit.variance <= 0 or not self._frame.used.any():
            nearest = [((b[:, None] - self._fit.centres) ** 2).sum(-1) for b in blocks]
            r = np.concatenate([(g == g.min(1, keepdims=True)).astype(float) for g in nearest])
            same = np.concatenate([g.min(1) for g in nearest]) <= 0
            return r / r.sum(1, keepdims=True), np.where(same, np.inf, -np.inf)
        parts = side_by_side(lambda a: responsibilities(self._frame.rows_inward(X[a : a + 65536]), self._fit), starts)
        outside = np.concatenate([self._frame.log_density_outside(X[a : a + 65536]) for a in starts])
        return np.concatenate([r for r, _ in parts]), np.concatenate(
            [density for _, density in parts]
        ) + outside - shift

    def _fit_blocks(self, X, sample_weight):
        """A Dask array: each block is summarised, the summaries are merged and fitted, each block is labelled."""
        import dask

        X = dask_points.row_blocks(X)
        self.n_features_in_ = X.shape[1]
        edges = np.concatenate([[0], np.cumsum(X.chunks[0])])
        w = np.ones(X.shape[0]) if sample_weight is None else checks.weights(sample_weight, X.shape[0])
        summarise, label, drop = dask.delayed(_summarise), dask.delayed(self._label_block), self.missing == "drop"
        blocks = X.to_delayed().ravel()
        parts = [summarise(block, w[a:b], a, drop) for block, a, b in zip(blocks, edges[:-1], edges[1:], strict=True)]
        parts = dask.compute(*parts)
        points, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in ("points", "counts"))
        _check_left(counts, sample_weight)
        _check_spread(points)
        rows = distinct_rows(points, counts)
        self._fit_rows(rows)
        self._summary = rows.summary(SUMMARY_ROWS)
        self.labels_ = np.concatenate(dask.compute(*[label(block) for block in blocks]))
        return self

    def _label_block(self, block) -> np.ndarray:
        block, kept = _finite_rows(_block(block), drop=True)
        labels = np.full(len(kept), -1)
        labels[kept] = self._posteriors(block)[0].argmax(1)
        return labels

    def _model(self) -> FlowSettings:
        return FlowSettings(open_flow(self.model, self.device), self.n_layers, self.schedule)

    def _rows_to_fit(self, X, sample_weight, reset=True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        X, kept = self._validated(X, reset)
        w = np.ones(len(kept)) if sample_weight is None else checks.weights(sample_weight, len(kept))
        _check_left(w[kept], sample_weight)
        return X, w[kept], kept

    def _rows_to_label(self, X, drop=True) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        X, kept = self._validated(X, reset=False)
        if not drop and not kept.all():
            raise ValueError(f"X has {int((~kept).sum())} rows with missing values, for which there is no answer")
        return X, kept

    def _validated(self, X, reset: bool) -> tuple[np.ndarray, np.ndarray]:
        """Rows that are all numbers, and which they are; else an error that names the first bad one."""
        names = getattr(X, "columns", None)
        X = checks.table(self, X, dtype=np.float64, order="C", reset=reset, ensure_all_finite=False)
        X, kept = _finite_rows(X, self.missing == "drop", names=names)
        _check_spread(X)
        return X, kept

    def _check_parameters(self) -> None:
        if self.n_clusters is not None:
            checks.whole("n_clusters", self.n_clusters)
        if self.snr_db is not None:
            checks.real("snr_db", self.snr_db, -100, 100)
        if self.n_layers is not None:
            checks.whole("n_layers", self.n_layers, most=MOST_LAYERS)
        checks.choice("schedule", self.schedule, SCHEDULES)
        checks.choice("missing", self.missing, ("error", "drop"))
        if not isinstance(self.polish, (bool, np.bool_)):
            raise ValueError(f"polish must be True or False, got {self.polish!r:.80}")
        self._model()


def _snr_db(fit: SharedNoise) -> float:
    mean = fit.masses @ fit.centres
    signal = float(fit.masses @ ((fit.centres - mean) ** 2).sum(1)) / max(fit.centres.shape[1], 1)
    if signal <= 0:
        return -np.inf
    return float(10 * np.log10(signal / fit.variance)) if fit.variance > 0 else np.inf


def _block(block) -> np.ndarray:
    """A block of a Dask array, which may be empty, as floats."""
    return check_array(
        block, dtype=np.float64, order="C", ensure_all_finite=False, ensure_min_samples=0, input_name="X"
    )


@one_thread()
def _summarise(block, w, first: int, drop: bool) -> Rows:
    """The rows of a block that are all numbers and have weight, in few."""
    block, kept = _finite_rows(_block(block), drop, first)
    if not w[kept].any():
        return Rows(block[:0], w[:0])
    return distinct_rows(block, w[kept]).summary(SUMMARY_ROWS)


def _finite_rows(X: np.ndarray, drop: bool, first: int = 0, names=None) -> tuple[np.ndarray, np.ndarray]:
    """Rows that are all numbers, and which they are; unless others are dropped, an error names the first of those."""
    fine = np.isfinite(X)
    kept = fine.all(1)
    if not kept.all() and not drop:
        row, column = np.argwhere(~fine)[0]
        name = f"column {column}" if names is None else f"column {names[column]!r}"
        what = "NaN" if np.isnan(X[row, column]) else "infinity"
        raise ValueError(
            f"X contains NaN or infinity: {what} at row {first + row}, {name} ({int((~kept).sum())} such rows); "
            "missing='drop' leaves them out"
        )
    return checks.squarable(X if kept.all() else X[kept]), kept


def _check_spread(X: np.ndarray) -> None:
    spread = np.ptp(X, 0).max(initial=0.0) if len(X) else 0.0
    if 0 < spread < 1 / checks.LARGEST:
        raise ValueError(f"X varies by less than {1 / checks.LARGEST:g}, too little to square: multiply its columns")


def _check_left(w: np.ndarray, sample_weight) -> None:
    if not w.any():
        left = "X has no row without missing values" if sample_weight is None else "sample_weight must not be all zero"
        raise ValueError(left)
