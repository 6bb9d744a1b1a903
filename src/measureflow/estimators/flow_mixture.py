"""Clusters without choosing K: two pretrained flows each propose a partition, and the better one is chosen."""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np

from measureflow.attention.threads import one_thread
from measureflow.coclustering.consensus import Consensus, consult
from measureflow.estimators import checks, dask_points
from measureflow.estimators.finite_rows import as_block, check_spread, check_weight_left, finite_rows, summarised
from measureflow.estimators.fitted_mixture import MOST_PAIRED, FittedMixture
from measureflow.estimators.flow_settings import FlowSettings, open_average, open_flow
from measureflow.estimators.stability import Stability, stability
from measureflow.mixtures.clusters import GaussianClusters
from measureflow.mixtures.misfit import diagnosis, unwarned, warn_unfamiliar
from measureflow.mixtures.rows import Rows, distinct_rows
from measureflow.mixtures.search import CLIMB_ROWS, Search
from measureflow.models import AnyShapeFlow
from measureflow.models.flow_speed import SCHEDULES

SUMMARY_ROWS = 8192  # rows that partial_fit remembers
MOST_LAYERS = 1024


class FlowMixture(FittedMixture):
    r"""Clusters of a table, found by two pretrained flows; the number of clusters is estimated.

    The first flow is for Gaussian clusters. `AnyDimensionFlow` moves the rows onto the mixing measure
    :math:`\sum_k p_k \delta_{\mu_k}`: first a sample, at a few signal-to-noise ratios, to estimate the noise; then up
    to 1024 rows at the estimated ratio. The tokens are merged into K atoms for each plausible K, EM improves each of
    these mixtures, and Laplace's evidence compares them. Where the clusters are not round, the coordinates are changed
    until they are, or each cluster gets its own covariance.

    The second flow, `AnyShapeFlow`, is for clusters of any shape: rings, crescents, threads, heavy tails. It estimates
    for every two rows the probability that they belong together.

    One rule chooses between the two: of the first flow's clusters and the best cut of the average-linkage tree of the
    second flow's probabilities, the answer is the one with the larger expected adjusted Rand index under what both
    flows say together.

    Parameters
    ----------
    n_clusters : int or None
        The number of clusters; estimated when None.
    assume : {"any", "gaussian"}
        What clusters may look like. "gaussian" uses the first flow alone; so does a given ``snr_db``.
    snr_db : float or None
        Signal-to-noise ratio in decibels, :math:`10\log_{10}(\text{variance of the centres} / \sigma^2)`; estimated
        when None. A lower one gives fewer, coarser clusters.
    label_outliers : bool
        Whether outliers are labelled -1. Otherwise they get the label of the cluster they most likely belong with;
        ``outliers_`` marks them.
    n_stability : int or None
        How many more fits to make, each to 80 % of the rows, for ``stability_``.
    model : str, path or module
        The first flow: a name in ``load_pretrained.available()``, a folder with weights, or an
        `AnyDimensionFlow`.
    shape_model : str, path or module
        The second flow: likewise, or an `AnyShapeFlow`.
    n_layers : int or None
        Layers of the first flow, at most 1024; as trained when None.
    schedule : {"uniform", "unit", "no-flow"}
        How its layers share the time that the signal-to-noise ratio sets [Zimin 2025, C.3]: "uniform", with which the
        shipped flow was trained, in equal steps; "unit" in steps of one until the time is used up. "no-flow" takes
        steps of one in all layers, whatever the time.
    polish : bool
        Whether EM over all rows improves the Gaussians at the end.
    missing : {"error", "drop"}
        What to do with rows that hold NaN or infinity: raise an error, or leave them out and label them -1.
    random_state : int, RandomState or None
        Seed of `sample` and of ``stability_``; fitting itself draws nothing at random.
    device : str, torch.device or None
        Where copies of the models run; when None, the models run where they are. All else runs on the CPU.

    Attributes
    ----------
    labels_, cluster_centers_, weights_, n_clusters_
        Clusters are ordered by weight, then by position.
    probabilities_ : array (n,)
        The probability of each row's label.
    outliers_ : array (n,) of bool
        Rows that more likely belong to no cluster than to one.
    n_clusters_posterior_ : dict
        The probability of each number of clusters that was considered.
    expected_index_ : float
        Expected adjusted Rand index of the labels with the true clusters; NaN where Gaussians are assumed.
    gaussian_weight_ : float
        The probability that the rows are Gaussians with one round noise; 1 where that is assumed.
    co_clustering_ : array (n, n)
        The probability that two rows belong together, for up to 4096 rows; `co_clustering` computes it for any rows.
    diagnosis_ : list of str
        What is unusual about the rows, in sentences; each is also a warning.
    stability_ : Stability or None
        How often each number of clusters, and each cluster, was found again in the ``n_stability`` fits.
    covariances_ : array (n_clusters_, d, d)
        The covariance of each cluster.
    noise_covariance_, noise_variance_, snr_db_
        Average of the cluster covariances, weighted by cluster size; the mean of its diagonal; the variance of the
        centres divided by that mean, in decibels.
    mixing_measure_ : Empirical
        The estimated mixing measure of the Gaussians, chosen to minimise the expected W2 error. Its atoms are the first
        flow's tokens where clusters overlap and the flow saw all rows; else the centres with their weights.
    flow_ : FlowDial
        The trajectory of the rows along the first flow, with ``plot()``, ``to_pandas()`` and ``cut(snr_db)``.
    certificate_ : dict
        Mean log-likelihood of the rows under the Gaussians, and under the first flow's tokens with the same noise.

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
        assume="any",
        snr_db=None,
        label_outliers=False,
        n_stability=None,
        model="any-dimension",
        shape_model="any-shape",
        n_layers=None,
        schedule="uniform",
        polish=True,
        missing="error",
        random_state=None,
        device=None,
    ):
        self.n_clusters = n_clusters
        self.assume = assume
        self.snr_db = snr_db
        self.label_outliers = label_outliers
        self.n_stability = n_stability
        self.model = model
        self.shape_model = shape_model
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
        self._fit_rows(distinct_rows(X, w))
        self._keep_labels(X, kept)
        if self.n_stability is not None:
            self.stability_ = self._measured_stability(X, w, kept, self.n_stability)
        return self

    @one_thread()
    def partial_fit(self, X, y=None, sample_weight=None):
        """Fit to these rows and all before them, of which a weighted summary is remembered."""
        self._check_parameters()
        first = getattr(self, "_summary", None) is None
        X, w, kept = self._rows_to_fit(X, sample_weight, reset=first)
        new = X
        if not first:
            X, w = np.concatenate([self._summary.points, X]), np.concatenate([self._summary.weights, w])
        self._fit_rows(distinct_rows(X, w))
        self._keep_labels(new, kept)
        return self

    def _fit_rows(self, rows: Rows) -> None:
        """Fit the Gaussians, average both flows' probabilities, and choose the clusters."""
        K = self.n_clusters
        if K is not None and len(rows.weights) < K:
            raise ValueError(f"n_clusters={K} exceeds the {len(rows.weights)} distinct rows of X (n_samples too small)")
        search = partial(Search, self._model(), rows, n_clusters=K, snr_db=self.snr_db, n_layers=self.n_layers)
        for sketch in (self.assume == "any", False):  # the second flow is better on rows that are not round
            found = search(sketch=sketch).run(polish=self.polish)
            self._gaussians = GaussianClusters.of(found.frame, found.mixture)
            self._consensus = self._consult(rows, found.posterior)
            if not (found.is_sketch and self._consensus and self._consensus.needs_gaussians):
                break
        self._clusters = self._consensus.clusters(self._gaussians, rows) if self._consensus else self._gaussians
        self._keep_clusters(found.posterior)
        self._settings, self._summary = self._model(), rows.summary(SUMMARY_ROWS)
        self._keep_flow(rows, found)
        self.stability_ = None
        names = list(getattr(self, "feature_names_in_", range(rows.points.shape[1])))
        self.diagnosis_ = diagnosis(rows.sample(CLIMB_ROWS), names, None if self._consensus else self._gaussians)
        warn_unfamiliar(self.diagnosis_)

    def _consult(self, rows: Rows, posterior: dict[int, float]) -> Consensus | None:
        if self.assume == "gaussian" or self.snr_db is not None:
            return None
        average = open_average(self.shape_model)
        return consult(self._shape_model(), average, rows, self._gaussians, posterior, self.n_clusters)

    def _keep_clusters(self, posterior: dict[int, float]) -> None:
        clusters, consensus = self._clusters, self._consensus
        self.cluster_centers_, self.weights_ = clusters.centers, clusters.weights
        self.n_clusters_ = len(self.weights_)
        self.noise_variance_ = float(np.diagonal(self.noise_covariance_).mean())
        self.snr_db_ = float(self.snr_db) if self.snr_db is not None else clusters.snr_db
        self.n_clusters_posterior_ = consensus.posterior.n_clusters if consensus else posterior
        self.expected_index_ = consensus.partition.expected_index if consensus else np.nan
        self.gaussian_weight_ = consensus.gaussian_weight if consensus else 1.0

    def _keep_labels(self, X: np.ndarray, kept: np.ndarray) -> None:
        """Labels of all rows, X being those that were kept."""
        self.labels_, self.probabilities_, self.outliers_ = self._labelled(X, kept)
        self._paired_rows = X if len(kept) <= MOST_PAIRED else None

    def _measured_stability(self, X: np.ndarray, w: np.ndarray, kept: np.ndarray, n_fits: int) -> Stability:
        def fit_predict(X, w):
            again = FlowMixture(**{**self.get_params(), "n_stability": None})
            with unwarned():
                return again.fit(X, sample_weight=w).labels_

        seed = int(checks.generator(self.random_state).randint(2**31))
        return stability(fit_predict, X, self.labels_[kept], w, n_fits, seed)

    def _fit_blocks(self, X, sample_weight):
        """A Dask array: each block is summarised, the summaries are merged and fitted, each block is labelled."""
        from dask.base import compute
        from dask.delayed import delayed

        X = dask_points.row_blocks(X)
        self.n_features_in_ = X.shape[1]
        edges = np.concatenate([[0], np.cumsum(X.chunks[0])])
        w = np.ones(X.shape[0]) if sample_weight is None else checks.weights(sample_weight, X.shape[0])
        summarise, label, drop = delayed(summarised), delayed(self._label_block), self.missing == "drop"
        blocks = X.to_delayed().ravel()
        parts = [
            summarise(block, w[a:b], a, drop, SUMMARY_ROWS)
            for block, a, b in zip(blocks, edges[:-1], edges[1:], strict=True)
        ]
        parts = compute(*parts)
        points, w = (np.concatenate([getattr(part, name) for part in parts]) for name in ("points", "weights"))
        check_weight_left(w, sample_weight)
        check_spread(points)
        self._fit_rows(distinct_rows(points, w))
        labelled = zip(*compute(*[label(block) for block in blocks]), strict=True)
        self.labels_, self.probabilities_, self.outliers_ = (np.concatenate(part) for part in labelled)
        self._paired_rows = None
        return self

    def _label_block(self, block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._labelled(*finite_rows(as_block(block), drop=True))

    def _model(self) -> FlowSettings:
        return FlowSettings(open_flow(self.model, self.device), self.n_layers, self.schedule)

    def _shape_model(self) -> AnyShapeFlow:
        return cast(AnyShapeFlow, open_flow(self.shape_model, self.device, name="shape_model", method="together"))

    def _rows_to_fit(self, X, sample_weight, reset=True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        X, kept = self._validated(X, reset)
        w = np.ones(len(kept)) if sample_weight is None else checks.weights(sample_weight, len(kept))
        check_weight_left(w[kept], sample_weight)
        return X, w[kept], kept

    def _check_parameters(self) -> None:
        for name, most in (("n_clusters", np.inf), ("n_layers", MOST_LAYERS), ("n_stability", 1000)):
            if getattr(self, name) is not None:
                checks.whole(name, getattr(self, name), most=most)
        checks.choice("assume", self.assume, ("any", "gaussian"))
        if self.snr_db is not None:
            checks.real("snr_db", self.snr_db, -100, 100)
        checks.choice("schedule", self.schedule, SCHEDULES)
        checks.choice("missing", self.missing, ("error", "drop"))
        for name in ("polish", "label_outliers"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r:.80}")
        self._model()
        if self.assume == "any":
            self._shape_model()
