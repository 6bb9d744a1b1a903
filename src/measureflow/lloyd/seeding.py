"""First centres that depend on the measure alone, not on the order of rows or on how mass is split over copies."""

from __future__ import annotations

import numpy as np

from measureflow.lloyd.points import Points


def distinct(points: Points) -> tuple[np.ndarray, np.ndarray]:
    """An index of each distinct row that has mass, and its weight with all its copies.

    The order is that of a fixed projection; of all coordinates if two rows share a projection. Sampling from it by
    cumulated weight gives a row of weight 2 and the same row twice the same chances
    *and the same draws*, which is what makes a weighted fit equal a repeated one under one random state.
    """
    key = points.keys(_direction(points.shape[1]))
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0]))
    copies = np.setdiff1d(np.arange(len(order)), starts)
    if not np.array_equal(points.rows(order[copies]), points.rows(order[copies - 1])):
        order, starts = _lexicographic(points)
    weights = np.add.reduceat(points.weights[order], starts)
    return order[starts][weights > 0], weights[weights > 0]


def _direction(d: int) -> np.ndarray:
    """Square roots of odd numbers, which no small whole numbers cancel."""
    return np.sqrt(2.0 * np.arange(d) + 3.0)


def _lexicographic(points: Points) -> tuple[np.ndarray, np.ndarray]:
    X = points.rows(np.arange(points.shape[0]))
    order = np.lexsort(X.T[::-1])
    return order, np.flatnonzero(np.concatenate([[True], (np.diff(X[order], axis=0) != 0).any(1)]))


def plus_plus(points: Points, k: int, rng: np.random.RandomState) -> np.ndarray:
    """k-means++: rows drawn by weight times squared distance to those already drawn, the best of a few each time."""
    rows, w = distinct(points)
    chosen = [_draw(w, rng.uniform(size=1))[0]]
    nearest = points.lowered(points.rows(rows[chosen[0]]), np.full(points.shape[0], np.inf))
    for _ in range(1, k):
        potential = w * nearest[rows]
        chances = potential if potential.sum() > 0 else w  # every row is a centre already: repeat some
        tries = _draw(chances, rng.uniform(size=2 + int(np.log(k))))
        left = [points.lowered(points.rows(rows[t]), nearest) for t in tries]
        best = int(np.argmin([(w * r[rows]).sum() for r in left]))
        chosen.append(tries[best])
        nearest = left[best]
    return points.rows(rows[np.array(chosen)])


def at_random(points: Points, k: int, rng: np.random.RandomState) -> np.ndarray:
    """k distinct rows drawn by weight without replacement; where there are fewer, they repeat."""
    rows, w = distinct(points)
    order = np.argsort(np.log(rng.uniform(size=len(rows))) / w, kind="stable")[::-1]
    return points.rows(rows[np.resize(order, k)])


def _draw(chances: np.ndarray, u: np.ndarray) -> np.ndarray:
    filled = np.cumsum(chances)
    return np.minimum(np.searchsorted(filled, u * filled[-1], side="right"), np.flatnonzero(chances)[-1])
