"""The prior of labelled sets: how many clusters, of what sizes and shapes, where, in what kind of table."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from measureflow.measures.shapes.catalogue import Rng, any_shape, draw_shape, pick, rotation
from measureflow.measures.shapes.columns import measured_again, with_effects
from measureflow.measures.shapes.labels import any_labels, any_number, between
from measureflow.measures.shapes.placement import any_overlap, any_placement, moved_apart
from measureflow.measures.shapes.round_mixtures import round_mixture
from measureflow.measures.shapes.scenes import any_scene_of_few, wandering

NOISE = -1  # the label of rows that belong to no cluster
ROUND_SHARE = 0.2  # of all sets: Gaussians in one round noise
MEASURED_AGAIN = 0.2  # the share of wide tables in which a few things are measured by several columns each ...
WIDE = 6  # ... and how many columns make a table wide
WANDERING, MOST_WANDERING = 0.1, 20  # the share of sets, of up to so many clusters, in which all of them wander ...
IN_SCENE, FEW = 0.2, 6  # ... and of the others, if they have few clusters, the share that is another scene
DIMENSIONS = {1: 3, 2: 27, 3: 10, 4: 10, 5: 7, 6: 6, 8: 8, 10: 6, 13: 6, 16: 5, 20: 4, 30: 5, 45: 2, 64: 1}


@dataclass(frozen=True, eq=False)
class LabelledShapes:
    """A batch of sets of points with the cluster of each point; -1 marks a point that belongs to none."""

    points: Tensor  # (B, n, d)
    labels: Tensor  # (B, n)
    is_round: Tensor  # (B,): which sets are Gaussians in one round noise

    @property
    def n_clusters(self) -> Tensor:
        """How many clusters each set has, (B,)."""
        return torch.tensor([len(set(row.tolist()) - {NOISE}) for row in self.labels])


@dataclass(frozen=True)
class ShapePrior:
    """Random sets whose clusters have many shapes, in tables as people have them.

    >>> sets = ShapePrior().sample(2, 100, np.random.default_rng(0), d=3)
    >>> sets.points.shape, sets.n_clusters.tolist()
    (torch.Size([2, 100, 3]), [2, 8])
    """

    dimensions: dict[int, float] = field(default_factory=lambda: dict(DIMENSIONS))
    rows_per_cluster: int = 12  # so many at least on average: the number of clusters is bounded by it
    round_share: float = ROUND_SHARE  # of the sets: Gaussians in one round noise, to which nothing else happens

    def sample(self, batch: int, n: int, rng: Rng, d: int | None = None) -> LabelledShapes:
        """``batch`` sets of ``n`` points in ``d`` columns, or in a number of columns drawn from the list."""
        if batch < 1 or n < 2:
            raise ValueError(f"batch must be at least 1 and n at least 2, got batch={batch} and n={n}")
        if d is None:
            d = pick(rng, self.dimensions)
        points, labels, is_round = zip(*(self.draw(n, d, rng) for _ in range(batch)), strict=True)
        return LabelledShapes(*(torch.from_numpy(np.stack(part)) for part in (points, labels, is_round)))

    def draw(self, n: int, d: int, rng: Rng) -> tuple[np.ndarray, np.ndarray, bool]:
        """One set: points (n, d), centred and of unit mean square, labels (n,), and whether it is round."""
        is_round = rng.random() < self.round_share
        if is_round:
            points, labels = round_mixture(rng, n, d, self.rows_per_cluster)
        else:
            points, labels = self._table(n, d, rng)
        points = points - points.mean(0)
        points = points / max(np.sqrt((points**2).mean()), 1e-9)
        return np.clip(points, -50, 50).astype(np.float32), labels, is_round

    def _table(self, n: int, d: int, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
        """Points (n, d) and labels (n,) of clusters of many shapes, after what happens to columns of tables."""
        labels = any_labels(rng, n, any_number(rng, n, d, self.rows_per_cluster))
        if d >= WIDE and rng.random() < MEASURED_AGAIN:
            points = measured_again(rng, _points(labels, between(rng, 2, d // 2), rng), d)
        else:
            points = _points(labels, d, rng)
        return _with_outliers(rng, with_effects(rng, points, labels), labels)


def _points(labels: np.ndarray, d: int, rng: Rng) -> np.ndarray:
    """Points (n, d) of clusters: wandering ones, another scene, or placed one by one."""
    K = labels.max() + 1
    if d > 1 and K <= MOST_WANDERING and rng.random() < WANDERING:
        return wandering(rng, labels, K, d)
    if d > 1 and 1 < K <= FEW and rng.random() < IN_SCENE:
        return any_scene_of_few(rng, labels, K, d)
    return _placed(rng, labels, d)


def _placed(rng: Rng, labels: np.ndarray, d: int) -> np.ndarray:
    """Clusters of random shapes, sizes and orientations; a random overlap sets how far apart their centres are."""
    K = labels.max() + 1
    alike, shape = rng.random() < 0.6, any_shape(rng, alone=K == 1)
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
