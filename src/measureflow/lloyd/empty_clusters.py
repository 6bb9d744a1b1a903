"""Where the centre of an empty cluster goes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from measureflow.lloyd.points import Points

Policy = Callable[[Points, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""From points, centres (k, d), labels (n,) and the indices of m empty clusters to their new centres (m, d)."""


def to_mean(points: Points, C: np.ndarray, labels: np.ndarray, empty: np.ndarray) -> np.ndarray:
    """The mean of all points, as in the bare circuit."""
    return np.broadcast_to(points.mean(), (len(empty), points.shape[1]))


def keep(points: Points, C: np.ndarray, labels: np.ndarray, empty: np.ndarray) -> np.ndarray:
    """Where it was."""
    return C[empty]


def relocate(points: Points, C: np.ndarray, labels: np.ndarray, empty: np.ndarray) -> np.ndarray:
    """The row farthest from its nearest centre; where there are too few rows, centres stay.

    Only rows with mass count; each cluster gets a distinct place, equal distances in lexicographic order.
    """
    s = np.where(points.weights > 0, points.similarity_to_own(C, labels), np.inf)
    places: list[np.ndarray] = []
    floor = -np.inf
    while len(places) < len(empty) and (s > floor).any():
        level = s[s > floor].min()
        if level == np.inf:
            break
        places.extend(np.unique(points.rows(np.flatnonzero(s == level)), axis=0))
        floor = level
    return np.array([places[i] if i < len(places) else C[j] for i, j in enumerate(empty)])
