"""The search for a mixture: a frame, the noise in it, candidates for every K, the choice; then the frame again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from measureflow.flows import Trajectory
from measureflow.measures.decibels import from_decibels
from measureflow.mixtures.ellipsoids import Ellipsoids, bic_upper_bound, ellipsoids, fit_ellipsoids, posterior
from measureflow.mixtures.frame import Frame
from measureflow.mixtures.misfit import radial_misfit
from measureflow.mixtures.proposals import Candidates, flow, guess_noise, snr_of
from measureflow.mixtures.rows import Rows, means_by_label
from measureflow.mixtures.shared_noise import SharedNoise, bic, fit_em, responsibilities, squared_gaps
from measureflow.mixtures.token_tree import TokenTree

FLOW_ROWS = 1024  # the flow sees no more rows than this: its time grows with their square
CLIMB_ROWS = 4096  # rows on which numbers of clusters are compared
MOST_CLUSTERS = 60  # when their number is looked for
ROUNDS = 4  # of learning the shape of the noise from the clusters, and the clusters from the shape
FRAME_ROWS = 512  # rows on which frames are compared: a search in each
SKETCH_ROWS = 256  # likewise, where the search may end with them
NOISE_ROWS = 1 << 14  # rows from which the noise around the clusters of a sample is learned again
NOT_ROUND = 2.6  # Kolmogorov's statistic: Gaussian rows do not reach it even where clusters overlap much
LONG = 1.5  # noise so many times as wide in one direction as in another has a shape for sure
SHAPE_ROWS = 1024  # rows on which shapes are compared
WRONG_SNR_DB = 1.0  # the flow runs again if its SNR was wrong by this, judged by the clusters found
MOST_SHAPES = 20  # clusters that are given shapes
CLEARLY = 10.0  # by how much a BIC must be smaller to be preferred: strong evidence [Kass and Raftery 1995]


@dataclass(frozen=True)
class Flowed:
    """The flow that proposed a mixture."""

    path: Trajectory
    seen: Rows  # the rows that flowed
    tree: TokenTree  # of the tokens where they ended
    assumed_snr_db: float

    @classmethod
    def of(cls, model, seen: Rows, snr_db: float, n_layers: int | None = None) -> Flowed:
        """The flow of these rows at that SNR."""
        path, _ = flow(model, seen, snr_db, exact=True, n_layers=n_layers)
        tree = TokenTree(path[-1][0].numpy(), seen.weights / seen.mass)
        return cls(path, seen, tree, snr_db)


@dataclass(frozen=True)
class SearchResult:
    """The result of a search in one frame."""

    frame: Frame
    mixture: SharedNoise | Ellipsoids
    evidence: float = np.inf
    candidates: Candidates | None = None  # none where nothing varies
    flowed: Flowed | None = None
    probabilities: dict[int, float] | None = None  # of the numbers of clusters, where the candidates do not say them
    is_sketch: bool = False  # whether the search ended early, because rows were surely not round

    @property
    def clusters(self) -> tuple[np.ndarray, np.ndarray]:
        """Centres in units of the data, and their weights."""
        return self.frame.outward(self.mixture.centers), self.mixture.weights

    @property
    def surely_not_round(self) -> bool:
        """Whether the noise was found to have a clear shape, or the rows that were searched are not Gaussian."""
        if self.candidates is None:
            return False
        points = self.candidates.rows.repeated(SKETCH_ROWS)
        misfit = radial_misfit(points, self.mixture) * np.sqrt(len(points))
        return misfit > NOT_ROUND or self.has_long_noise

    @property
    def has_long_noise(self) -> bool:
        """Whether the noise was found to be clearly wider in one direction than in another."""
        return self.frame.n_learned > 0 and bool(np.linalg.cond(self.frame.matrix) > LONG)

    @property
    def posterior(self) -> dict[int, float]:
        """The probability of each number of clusters that was considered."""
        if self.probabilities is not None:
            return self.probabilities
        return {1: 1.0} if self.candidates is None else self.candidates.posterior()


class Search:
    """A search over mixtures: the rows, and what is known beforehand.

    With ``sketch`` it ends early where a sample shows that the rows are not round: the clusters found are then only a
    sketch, for someone who has a better answer for such rows. A ``rough`` search runs the flow once in each frame, even
    if its SNR was wrong: it is for a sample, whose clusters are a hint for the search over all rows.
    """

    def __init__(
        self,
        model,
        rows: Rows,
        *,
        n_clusters: int | None = None,
        snr_db: float | None = None,
        n_layers: int | None = None,
        sketch: bool = False,
        rough: bool = False,
    ):
        self.model, self.rows = model, rows
        self.n_clusters, self.snr_db, self.n_layers = n_clusters, snr_db, n_layers
        self.sketch, self.rough = sketch and n_clusters is None and snr_db is None, rough

    def run(self, *, polish: bool) -> SearchResult:
        """The best mixture: round clusters in the frame that suits them; ellipsoids where they are clearly better."""
        found = (self._sketched() if self.sketch else None) or self.round_clusters()
        if self.sketch and found.surely_not_round:
            found = replace(found, is_sketch=True)
        elif found.candidates is not None and self.snr_db is None:
            found = self._with_shapes(found)
        return self._polished(found) if polish else found

    def _sketched(self) -> SearchResult | None:
        """The clusters of a sample that shows that the rows are not round, in a frame learned from more of them."""
        if len(self.rows.weights) <= SKETCH_ROWS:
            return None
        few = Search(self.model, self.rows.sample(SKETCH_ROWS), n_layers=self.n_layers, sketch=True, rough=True)
        found = few.round_clusters()
        return self._grown(found) if found.surely_not_round else None

    def round_clusters(self) -> SearchResult:
        """Clusters of one noise, in whichever frame there is most evidence for; a noise that is known is round."""
        if self.snr_db is not None:
            return self._in(Frame.of(self.rows, scaled=False))
        if len(self.rows.weights) > FRAME_ROWS:
            few = self.rows.sample(FRAME_ROWS)
            found = Search(self.model, few, n_clusters=self.n_clusters, n_layers=self.n_layers).round_clusters()
            mild = found.frame.n_learned > 0 and not found.has_long_noise  # all rows may see that it was chance
            frames = [found.frame, found.frame.unshaped] if mild else [found.frame]
            return max((self._in(frame, found.clusters) for frame in frames), key=lambda found: found.evidence)
        return max((self._from(frame) for frame in Frame.first(self.rows)), key=lambda found: found.evidence)

    def _from(self, frame: Frame) -> SearchResult:
        """Learn the shape of the noise from the clusters, and search again, while that helps."""
        found = None
        for _ in range(ROUNDS):
            trial = self._in(frame, found.clusters if found else None)
            if found is not None and trial.evidence <= found.evidence:
                break
            found = trial
            if found.candidates is None or (self.sketch and found.surely_not_round):
                break
            rounder = frame.reshaped(found.candidates.rows, found.candidates.weighed())
            if rounder is None:
                break
            frame = rounder
        assert found is not None
        return found

    def _with_shapes(self, found: SearchResult) -> SearchResult:
        """The same, or what is clearly better: one ellipsoid for all clusters, or a shape for each."""
        assert found.candidates is not None
        assert isinstance(found.mixture, SharedNoise)
        frame, rows = found.frame, found.candidates.rows.sample(SHAPE_ROWS)
        n, d = rows.mass, rows.points.shape[1]
        no_noise = found.mixture.variance <= 10 * found.candidates.floor
        if no_noise or len(rows.weights) < 4 * d:
            return found
        least = bic(_scored(found.mixture, rows), n) + frame.n_learned * np.log(n)
        start = _at_most(found.mixture, MOST_SHAPES)
        if not frame.n_learned and bic_upper_bound(rows, start) >= least:
            return found
        fits = [fit for fit in ellipsoids(rows, start) if self.n_clusters in (None, len(fit))]
        shared, own = (_least([fit for fit in fits if fit.shapes.own is each], n) for each in (False, True))
        if own is not None and own.bic(n) < min(least, np.inf if shared is None else shared.bic(n)) - CLEARLY:
            return SearchResult(frame, own, flowed=found.flowed, probabilities=posterior(fits, n))
        if shared is not None and shared.bic(n) < least - CLEARLY:
            whitened = frame.whitened(shared.covariances[0], d * (d + 1) // 2 - 1)
            return self._in(whitened, (frame.outward(shared.centers), shared.weights))
        return found

    def _in(self, frame: Frame, hint: tuple[np.ndarray, np.ndarray] | None = None) -> SearchResult:
        """The best mixture of one noise in a frame, and how much evidence there is for both together.

        A hint is centres in units of the data, and their weights.
        """
        inner = frame.inward(self.rows)
        if inner.points.shape[1] == 0 or len(inner.weights) == 1:
            return SearchResult(frame, SharedNoise(inner.mean[None], np.ones(1), 0.0))
        near = None if hint is None else _around(inner, frame.rows_inward(hint[0]), hint[1])
        candidates, flowed = self._candidates(inner, near)
        share = self.rows.mass / candidates.rows.mass  # numbers of clusters are compared on a sample of many rows
        evidence = share * (max(candidates.evidence.values()) - candidates.rows.mass * frame.log_volume)
        evidence -= frame.n_learned / 2 * np.log(self.rows.mass)
        return SearchResult(frame, candidates.best, evidence, candidates, flowed)

    def _candidates(self, rows: Rows, hint: SharedNoise | None) -> tuple[Candidates, Flowed]:
        """Candidates for every plausible K, from a hint or a scan of a sample, and from the flow of all it can see."""
        K = self.n_clusters
        size = max(FLOW_ROWS, 4 * (K or 0))
        known = None if self.snr_db is None else rows.variance / (1 + from_decibels(self.snr_db))
        # Rows that do not repeat leave no noise to estimate if each is a cluster: a likelihood without bound.
        most = MOST_CLUSTERS if rows.mass >= 2 * len(rows.weights) else min(MOST_CLUSTERS, len(rows.weights) - 1)
        candidates = Candidates(rows.sample(max(CLIMB_ROWS, size)), known=known, only=K, most=most)
        if known is None:
            if hint is None:
                noise, tree = guess_noise(self.model, rows, self.n_layers)
                candidates.climb(tree, noise, steps=10)  # near enough to know the noise
            else:
                noise = hint.variance
                candidates.offer(hint)
            noise = candidates.best.variance if candidates.fits else noise
        else:
            noise = known
        seen = rows.sample(size)
        flowed = self._flowed(rows, seen, noise, candidates)
        noise = candidates.best.variance
        wrong = abs(snr_of(rows, noise) - flowed.assumed_snr_db) > WRONG_SNR_DB
        if known is None and wrong and not self.rough:
            flowed = self._flowed(rows, seen, noise, candidates)
        return candidates, flowed

    def _flowed(self, rows: Rows, seen: Rows, noise: float, candidates: Candidates) -> Flowed:
        """Run the flow at the known SNR or the one that the noise implies, and offer its clusters to the candidates."""
        K = self.n_clusters
        assumed = snr_of(rows, noise) if self.snr_db is None else float(self.snr_db)
        flowed = Flowed.of(self.model, seen, assumed, self.n_layers)
        candidates.climb(flowed.tree, noise)
        if K is None:
            candidates.refine()
        else:
            if len(seen.weights) >= K:  # tokens that met are one atom twice; the means of their rows are not
                candidates.offer(_means(seen, flowed.tree.labels(K)))
            if K not in candidates.fits:
                candidates.split_to(K)
        return flowed

    def _grown(self, found: SearchResult) -> SearchResult:
        """What was found in a sample, in a frame learned from more rows."""
        assert isinstance(found.mixture, SharedNoise)
        frame = found.frame.relearned(found.frame.inward(self.rows.sample(NOISE_ROWS)), found.mixture)
        rows = frame.inward(self.rows)
        mixture = _around(rows, frame.rows_inward(found.clusters[0]), found.mixture.weights)
        return SearchResult(frame, mixture, probabilities=found.posterior, is_sketch=True)

    def _polished(self, found: SearchResult) -> SearchResult:
        """The mixture after EM over all rows."""
        rows, few = found.frame.inward(self.rows), len(self.rows.weights) <= CLIMB_ROWS
        if isinstance(found.mixture, Ellipsoids):
            fit = fit_ellipsoids(rows, found.mixture, steps=100 if few else 3, tol=1e-7)
        elif found.flowed is None and not found.is_sketch:  # rows that do not vary
            return found
        else:
            between = (1e-9 * rows.variance, np.inf) if found.candidates is None else found.candidates.between
            steps = 100 if few else 8
            fit = fit_em(rows.points, rows.weights, found.mixture, steps=steps, tol=1e-7, between=between)
        return replace(found, mixture=fit)


def _around(rows: Rows, centers: np.ndarray, weights: np.ndarray) -> SharedNoise:
    """A mixture with given centres and weights, and the noise with which rows scatter around the nearest."""
    rows = rows.sample(NOISE_ROWS)
    gaps = np.maximum(squared_gaps(rows.points, centers).min(1), 0)
    return SharedNoise(
        centers, weights, max(float(rows.weights @ gaps) / (rows.mass * centers.shape[1]), 1e-9 * rows.variance)
    )


def _means(rows: Rows, labels: np.ndarray) -> SharedNoise:
    """A mixture with the means of labelled rows as centres, and the noise with which rows scatter around them."""
    centers, weights = means_by_label(rows.points, rows.weights, labels)
    noise = rows.weights @ ((rows.points - centers[labels]) ** 2).mean(1) / rows.mass
    return SharedNoise(centers, weights / weights.sum(), float(noise))


def _scored(fit: SharedNoise, rows: Rows) -> SharedNoise:
    """The same mixture with the log-likelihood of these rows."""
    return replace(fit, log_likelihood=float(rows.weights @ responsibilities(rows.points, fit)[1]))


def _at_most(fit: SharedNoise, most: int) -> SharedNoise:
    """A mixture with no more clusters than that: near ones are merged."""
    if len(fit) <= most:
        return fit
    centers, weights = TokenTree(fit.centers, fit.weights).atoms(most)
    return replace(fit, centers=centers, weights=weights)


def _least(fits: list[Ellipsoids], n: float) -> Ellipsoids | None:
    """The mixture of least BIC."""
    return min(fits, key=lambda fit: fit.bic(n), default=None)
