"""Facts about a set that speak for the Gaussians or for the shapes, and for how far to believe either."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import betainc, chndtr, entr, ndtri

from measureflow.coclustering.partition import Partition
from measureflow.coclustering.posteriors import GaussianPosterior, ShapePosterior
from measureflow.measures.partitions import expected_index

LEAST_MASS = 0.5  # rows that a centre must have won to count
NEAREST = (0.01, 50.0)  # distances of centres in units of the noise are told apart between these
FEWEST_SHAPED = 5  # rows of a cluster from which its spread and shape are judged
SPREADS = (1e-3, 1e3)  # ratios of spreads are told apart between these
CROWD = 5  # how many near rows tell how crowded a row is
LEAST_SHARE = 1e-3  # of a row: a Gaussian that has less adds nothing to how crowded it should be
SURE = (1e-4, 1 - 1e-4)  # probabilities are told apart between these

FACTS = (
    "sure shapes",  # the expected index of the shapes' own partition, by their posterior
    "shapes of Gaussians",  # that of the Gaussians' partition, by the shapes' posterior
    "sure Gaussians",  # that of the Gaussians' partition, by their own posterior
    "misfit",  # how far the rows' distances to their centres are from those of Gaussians (Kolmogorov and Smirnov)
    "significance",  # the same times the root of the number of rows on which it was seen
    "round",  # whether one round noise was enough for the Gaussians
    "sure rows",  # the mean probability of a row's most probable cluster, by the Gaussians' posterior
    "unsure number",  # the entropy of the number of clusters, by the Gaussians' posterior
    "log rows",
    "log columns",
    "log clusters",  # that the Gaussians find
    "one cluster",  # its probability by the shapes' posterior
    "one Gaussian",  # whether the Gaussians find one cluster, of which all rows are sure
    "log smallest",  # how many rows the smallest of the Gaussians has: of heavy tails they make crumbs
    "far centres",  # the mean log of the distance from a Gaussian's centre to the nearest other, in units of the noise
    "uneven centres",  # the standard deviation of that log: along a curve, centres are evenly spaced
    "uneven spreads",  # how far the logs of the mean squares of their clusters are from that of all rows
    "long noise",  # how much wider the noise is in its longest direction than round noise would be ...
    "long clusters",  # ... and each cluster, on average over the rows
    "one noise",  # the logit of Gaussians in one round noise, by the flow of shapes
    "crowding",  # how much nearer to one another rows are than the Gaussians would have them ...
    "uneven crowding",  # ... and how unlike one another the rows are in that
)


def facts(shapes: ShapePosterior, gaussians: GaussianPosterior, cut: Partition, points: np.ndarray) -> np.ndarray:
    """The facts of points (n, d) in the order of `FACTS`; the cut is the shapes' own partition."""
    labels = gaussians.labels
    n, n_clusters, balls = len(labels), int(labels.max()) + 1, Balls.of(points, gaussians.r)
    return np.array(
        [
            cut.expected_index,
            expected_index(shapes.together, labels, shapes.p_one),
            expected_index(gaussians.together, labels, float(n_clusters == 1)),
            gaussians.misfit,
            gaussians.misfit * np.sqrt(gaussians.n_fitted),
            float(gaussians.are_round),
            gaussians.r.max(1).mean(),
            entr(list(gaussians.n_clusters.values())).sum(),
            log_rows(n),
            np.log(points.shape[1]),
            np.log(n_clusters),
            shapes.p_one,
            float(n_clusters == 1),
            np.log(max(gaussians.r.sum(0).min(), LEAST_MASS)),
            *spacing(balls),
            *noise_shape(points, labels),
            shapes.one_noise,
            *crowding(points, balls),
        ]
    )


def log_rows(n: int) -> float:
    """The logarithm of the number of rows, zero for two hundred."""
    return float(np.log(n / 200))


@dataclass(frozen=True)
class Balls:
    """The round Gaussians of points (n, d) with responsibilities r (n, K), those without rows left out."""

    r: np.ndarray  # (n, K)
    centers: np.ndarray  # (K, d)
    squares: np.ndarray  # (n, K): squared distances of points to centres ...
    noise: float  # ... and the variance of the noise that they come to

    @classmethod
    def of(cls, points: np.ndarray, r: np.ndarray) -> Balls:
        r = r[:, r.sum(0) > LEAST_MASS]
        centers = (r.T @ points) / r.sum(0)[:, None]
        squares = cdist(points, centers, "sqeuclidean")
        return cls(r, centers, squares, max(float((r * squares).sum() / points.size), 1e-300))


def spacing(balls: Balls) -> tuple[float, float]:
    """Mean and standard deviation of the logs of the distances between nearest centres, in units of the noise.

    A single centre has no other: zeros.
    """
    if len(balls.centers) < 2:
        return 0.0, 0.0
    gaps = cdist(balls.centers, balls.centers)
    np.fill_diagonal(gaps, np.inf)
    logs = np.log(np.clip(gaps.min(1) / np.sqrt(balls.noise), *NEAREST))
    return float(logs.mean()), float(logs.std())


def crowding(points: np.ndarray, balls: Balls) -> tuple[float, float]:
    r"""Mean and standard deviation of how crowded points (n, d) are, in normal scores.

    If the Gaussians are right, the ball around row i that reaches to its fifth nearest row has a probability whose law
    is Beta(5, n - 5). It is a sum of noncentral :math:`\chi^2`:

    .. math:: F_i = \sum_k \pi_k\, \chi^2_{d,\, |x_i - \mu_k|^2 / \sigma^2}(\rho_i^2 / \sigma^2), \qquad
        z_i = -\Phi^{-1}(I_{F_i}(5, n - 5))

    where rho is the radius of the ball. Rows along a curve are nearer to one another than balls in a chain would have
    them, and rows of a heavy tail are alone.
    """
    n, d = points.shape
    if n <= CROWD + 1:
        return 0.0, 0.0
    radii = np.partition(cdist(points, points, "sqeuclidean"), CROWD, 1)[:, CROWD] / balls.noise
    inside = np.zeros(n)
    for r, squares in zip(balls.r.T, balls.squares.T, strict=True):
        mine = r > LEAST_SHARE
        inside[mine] += r.sum() / n * chndtr(radii[mine], d, squares[mine] / balls.noise)
    scores = -ndtri(np.clip(betainc(CROWD, n - CROWD, np.clip(inside, 0.0, 1.0)), *SURE))
    return float(scores.mean()), float(scores.std())


def noise_shape(points: np.ndarray, labels: np.ndarray) -> tuple[float, float, float]:
    """How unlike one round noise points (n, d) lie around the means of their clusters.

    These are the root mean square of the logs of the clusters' mean squares over that of all rows, and how long the
    noise and the clusters are (`elongation`). Without a cluster of a few rows: zeros.
    """
    counts = np.bincount(labels)
    sums = np.zeros((len(counts), points.shape[1]))
    np.add.at(sums, labels, points)
    offsets = points - (sums / np.maximum(counts, 1)[:, None])[labels]
    judged, all_squares = np.flatnonzero(counts >= FEWEST_SHAPED), (offsets**2).mean()
    if not len(judged) or all_squares == 0:
        return 0.0, 0.0, 0.0
    clusters, rows = [offsets[labels == k] for k in judged], counts[judged]
    squares = np.array([(cluster**2).sum() / (len(cluster) - 1) for cluster in clusters]) / points.shape[1]
    logs = np.log(np.clip(squares / all_squares, *SPREADS))
    longer = [elongation(cluster) for cluster in clusters]
    return float(np.sqrt(rows @ logs**2 / rows.sum())), elongation(offsets), float(rows @ longer / rows.sum())


def elongation(offsets: np.ndarray) -> float:
    r"""The log of the largest eigenvalue of the covariance of offsets (n, d), over the mean one, less what chance makes
    of round noise: :math:`2 \log(1 + \sqrt{d / n})` is the edge of Marchenko's and Pastur's law."""
    n, d = offsets.shape
    squares = offsets.T @ offsets if d <= n else offsets @ offsets.T
    total = np.trace(squares)
    if total <= 0:
        return 0.0
    return float(np.log(d * np.linalg.eigvalsh(squares)[-1] / total) - 2 * np.log1p(np.sqrt(d / n)))
