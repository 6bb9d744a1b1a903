"""First centres that depend on the measure alone, not on the order of rows or on how mass is split over copies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from measureflow.lloyd.points import Points


class Places(NamedTuple):
    """The distinct rows that carry mass: an index of each, in an order of their own, and the mass at each."""

    rows: np.ndarray
    mass: np.ndarray


def distinct(points: Points) -> Places:
    """Distinct rows in the order of a fixed projection; by all coordinates if two rows share a projection.

    Sampling from these places by cumulated mass gives a row of weight 2 and the same row twice the same chances
    *and the same draws*, which is what makes a weighted fit equal a repeated one under one random state.
    """
    key = points.keys(_direction(points.shape[1]))
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0]))
    copies = np.setdiff1d(np.arange(len(order)), starts)
    if not np.array_equal(points.rows(order[copies]), points.rows(order[copies - 1])):
        order, starts = _lexicographic(points)
    mass = np.add.reduceat(points.masses[order], starts)
    return Places(order[starts][mass > 0], mass[mass > 0])


def _direction(d: int) -> np.ndarray:
    """Square roots of odd numbers, which no small whole numbers cancel."""
    return np.sqrt(2.0 * np.arange(d) + 3.0)


def _lexicographic(points: Points) -> tuple[np.ndarray, np.ndarray]:
    X = points.rows(np.arange(points.shape[0]))
    order = np.lexsort(X.T[::-1])
    return order, np.flatnonzero(np.concatenate([[True], (np.diff(X[order], axis=0) != 0).any(1)]))


def plus_plus(points: Points, k: int, rng: np.random.RandomState) -> np.ndarray:
    """k-means++: places drawn by mass times squared distance to those already drawn, the best of a few each time."""
    places = distinct(points)
    chosen = [_draw(places.mass, rng.uniform(size=1))[0]]
    nearest = points.lowered(points.rows(places.rows[chosen[0]]), np.full(points.shape[0], np.inf))
    for _ in range(1, k):
        potential = places.mass * nearest[places.rows]
        chances = potential if potential.sum() > 0 else places.mass  # every place is taken: repeat some
        tries = _draw(chances, rng.uniform(size=2 + int(np.log(k))))
        left = [points.lowered(points.rows(places.rows[t]), nearest) for t in tries]
        best = int(np.argmin([(places.mass * r[places.rows]).sum() for r in left]))
        chosen.append(tries[best])
        nearest = left[best]
    return points.rows(places.rows[np.array(chosen)])


def at_random(points: Points, k: int, rng: np.random.RandomState) -> np.ndarray:
    """k distinct places drawn by mass without replacement; where there are fewer, they repeat."""
    places = distinct(points)
    order = np.argsort(np.log(rng.uniform(size=len(places.rows))) / places.mass, kind="stable")[::-1]
    return points.rows(places.rows[np.resize(order, k)])


def _draw(chances: np.ndarray, u: np.ndarray) -> np.ndarray:
    filled = np.cumsum(chances)
    return np.minimum(np.searchsorted(filled, u * filled[-1], side="right"), np.flatnonzero(chances)[-1])
