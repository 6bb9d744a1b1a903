"""Facts about a set that speak for the Gaussians or for the shapes, and for how far to believe either."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import entr

from measureflow.coclustering.partition import Partition
from measureflow.coclustering.posteriors import GaussianPosterior, PairPosterior
from measureflow.measures.partitions import expected_index

LEAST_MASS = 0.5  # rows that a centre must have won to count
NEAREST = (0.01, 50.0)  # distances of centres in units of the noise are told apart between these

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
)


def facts(shapes: PairPosterior, gaussians: GaussianPosterior, cut: Partition, points: np.ndarray) -> np.ndarray:
    """The facts of points (n, d) in the order of `FACTS`; the cut is the shapes' own partition."""
    labels = gaussians.labels
    n, n_clusters = len(labels), int(labels.max()) + 1
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
            np.log(n / 200),
            np.log(points.shape[1]),
            np.log(n_clusters),
            shapes.p_one,
            float(n_clusters == 1),
            np.log(max(gaussians.r.sum(0).min(), LEAST_MASS)),
            *spacing(points, gaussians.r),
        ]
    )


def spacing(points: np.ndarray, r: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of the logs of the distances between nearest centres, in units of the noise.

    Centres and noise are those of points (n, d) with responsibilities r (n, K). A single centre has no other: zeros.
    """
    mass = r.sum(0)
    r = r[:, mass > LEAST_MASS]
    if r.shape[1] < 2:
        return 0.0, 0.0
    centers = (r.T @ points) / r.sum(0)[:, None]
    noise = np.sqrt((r * cdist(points, centers, "sqeuclidean")).sum() / points.size)
    gaps = cdist(centers, centers)
    np.fill_diagonal(gaps, np.inf)
    logs = np.log(np.clip(gaps.min(1) / max(noise, 1e-300), *NEAREST))
    return float(logs.mean()), float(logs.std())
