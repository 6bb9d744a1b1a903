"""The prior of labelled sets: how many clusters, of what sizes and shapes, where, in what kind of table."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from measureflow.measures.shapes.catalogue import Rng, any_shape, draw_shape, pick, rotation
from measureflow.measures.shapes.columns import measured_again, with_effects
from measureflow.measures.shapes.placement import any_overlap, any_placement, moved_apart
from measureflow.measures.shapes.scenes import any_scene, round_mixture

NOISE = -1  # the label of rows that belong to no cluster
FEW = {
    1: 0.15,
    2: 0.19,
    3: 0.16,
    4: 0.12,
    5: 0.1,
    6: 0.08,
    7: 0.06,
    8: 0.04,
}  # chances of so many clusters; the rest ...
MANY = (9, 22)  # ... goes to numbers between these, evenly on a logarithmic scale
SMALLEST = 0.02  # the least share of a cluster, unless half an even share is less: smaller ones are outliers
MEASURED_AGAIN = 0.2  # the share of wide tables in which a few things are measured by several columns each ...
WIDE = 6  # ... and how many columns make a table wide
DIMENSIONS = {1: 3, 2: 27, 3: 10, 4: 10, 5: 7, 6: 6, 8: 8, 10: 6, 13: 6, 16: 5, 20: 4, 30: 5, 45: 2, 64: 1}


@dataclass(frozen=True, eq=False)
class LabelledShapes:
    """A batch of sets of points with the cluster of each point; -1 marks a point that belongs to none."""

    points: Tensor  # (B, n, d)
    labels: Tensor  # (B, n)

    @property
    def n_clusters(self) -> Tensor:
        """How many clusters each set has, (B,)."""
        return torch.tensor([len(set(row.tolist()) - {NOISE}) for row in self.labels])


@dataclass(frozen=True)
class ShapePrior:
    """Random sets whose clusters have many shapes, in tables as people have them.

    >>> sets = ShapePrior().sample(2, 100, np.random.default_rng(0), d=3)
    >>> sets.points.shape, sets.n_clusters.tolist()
    (torch.Size([2, 100, 3]), [5, 5])
    """

    dimensions: dict[int, float] = field(default_factory=lambda: dict(DIMENSIONS))
    rows_per_cluster: int = 12  # so many at least on average: the number of clusters is bounded by it
    round_share: float = 0.1  # of the sets: mixtures of one round noise, however much their clusters overlap

    def sample(self, batch: int, n: int, rng: Rng, d: int | None = None) -> LabelledShapes:
        """``batch`` sets of ``n`` points in ``d`` columns, or in a number of columns drawn from the list."""
        if batch < 1 or n < 2:
            raise ValueError(f"batch must be at least 1 and n at least 2, got batch={batch} and n={n}")
        if d is None:
            d = pick(rng, self.dimensions)
        points, labels = zip(*(self.draw(n, d, rng) for _ in range(batch)), strict=True)
        return LabelledShapes(torch.from_numpy(np.stack(points)), torch.from_numpy(np.stack(labels)))

    def draw(self, n: int, d: int, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
        """One set: points (n, d), centred and of unit mean square, and labels (n,)."""
        K = self._n_clusters(n, d, rng)
        labels = any_labels(rng, n, K)
        if d >= WIDE and rng.random() < MEASURED_AGAIN:
            points = measured_again(rng, self._points(labels, _between(rng, 2, d // 2), rng), d)
        else:
            points = self._points(labels, d, rng)
        points = with_effects(rng, points, labels)
        points, labels = _with_outliers(rng, points, labels)
        points = points - points.mean(0)
        points = points / max(np.sqrt((points**2).mean()), 1e-9)
        return np.clip(points, -50, 50).astype(np.float32), labels

    def _points(self, labels: np.ndarray, d: int, rng: Rng) -> np.ndarray:
        """Points (n, d) of clusters: in one round noise, a scene, or placed one by one."""
        K = labels.max() + 1
        if K > 1 and rng.random() < self.round_share:
            return round_mixture(rng, labels, K, d)
        if d > 1 and 1 < K <= 6 and rng.random() < 0.25:
            return any_scene(rng, labels, K, d)
        return _placed(rng, labels, d)

    def _n_clusters(self, n: int, d: int, rng: Rng) -> int:
        most = max(1, n // self.rows_per_cluster)
        K = int(rng.choice([*FEW, 0], p=[*FEW.values(), 1 - sum(FEW.values())])) or _between(rng, *MANY)
        if n >= 200 and rng.random() < 0.2:
            K = _between(rng, 8, max(9, min(60, most)))
        return min(K, most, 8 if d == 1 else 60)


def _between(rng: Rng, least: int, most: int) -> int:
    """A number between two, evenly on a logarithmic scale."""
    return int(np.exp(rng.uniform(np.log(least), np.log(most + 1))))


def any_labels(rng: Rng, n: int, K: int) -> np.ndarray:
    """Labels whose shares are equal or drawn from a Dirichlet law, even or uneven; none is a crumb."""
    evenness = rng.choice([0.5, 1.0, 2.0, 5.0, 20.0, np.inf])
    shares = np.full(K, 1 / K) if np.isinf(evenness) else rng.dirichlet(np.full(K, evenness))
    least = min(max(4 / n, SMALLEST), 0.5 / K)
    shares = np.maximum(shares, least) / np.maximum(shares, least).sum()
    labels = rng.choice(K, n, p=shares)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _placed(rng: Rng, labels: np.ndarray, d: int) -> np.ndarray:
    """Clusters of random shapes, sizes and orientations; a random overlap sets how far apart their centres are."""
    K = labels.max() + 1
    alike, shape = rng.random() < 0.6, any_shape(rng, evenly=K == 1)
    aspect = rng.choice([0.0, rng.uniform(0, 1.4)])
    shared = _ellipsoid(rng, d, aspect) if rng.random() < 0.5 else None
    spread = rng.choice([0.0, rng.uniform(0, 0.9)])
    points = np.empty((len(labels), d))
    for k in range(K):
        mine = np.flatnonzero(labels == k)
        cloud = draw_shape(rng, shape if alike else any_shape(rng), len(mine), d)
        cloud = cloud @ (_ellipsoid(rng, d, aspect) if shared is None else shared)
        points[mine] = cloud * np.exp(spread * rng.standard_normal())
    overlap, beyond = any_overlap(rng)
    return points + (beyond * moved_apart(points, labels, any_placement(rng, K, d), overlap))[labels]


def _ellipsoid(rng: Rng, d: int, aspect: float) -> np.ndarray:
    """A matrix that makes a round cloud an ellipsoid, and turns it."""
    if aspect == 0:
        return np.eye(d)
    return np.exp(aspect * rng.uniform(-1, 1, (d, 1))) * rotation(rng, d)


def background(rng: Rng, points: np.ndarray, m: int) -> np.ndarray:
    """An even background: rows uniform in the box around the set."""
    return rng.uniform(points.min(0), points.max(0), (m, points.shape[1]))


def far_rows(rng: Rng, points: np.ndarray, m: int) -> np.ndarray:
    """A few rows, many of them far from the rest."""
    return _far(rng, points, m)[0]


def crumbs(rng: Rng, points: np.ndarray, m: int) -> np.ndarray:
    """The same in crumbs of two to eight rows."""
    places, reach = _far(rng, points, m)
    crumb, width = np.arange(m) // int(rng.integers(2, 9)), np.exp(rng.uniform(np.log(0.02), np.log(0.3)))
    return places[crumb] + width * reach * rng.standard_normal(places.shape)


def _far(rng: Rng, points: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    low, high = points.min(0), points.max(0)
    middle, reach = (low + high) / 2, (high - low) * rng.uniform(0.5, 1.5)
    return middle + reach * rng.standard_normal((m, points.shape[1])), reach


# Rows that belong to no cluster: each kind with the chance that a set has it, and their largest share of the rows.
OUTLIERS = {None: 0.66, background: 0.12, far_rows: 0.1, crumbs: 0.12}
MOST_OUTLIERS = {background: 0.1, far_rows: 0.03, crumbs: 0.03}


def _with_outliers(rng: Rng, points: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The set with some rows replaced by outliers, if any were drawn."""
    kind = pick(rng, OUTLIERS)
    if kind is None:
        return points, labels
    share = rng.uniform(0, MOST_OUTLIERS[kind])
    rows = rng.permutation(len(points))[: max(1, int(share * len(points)))]
    points[rows] = kind(rng, points, len(rows))
    labels = labels.copy()
    labels[rows] = NOISE
    return points, labels
