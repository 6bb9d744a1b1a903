"""A table as a measure: distinct rows in one order, and how often each counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Rows:
    """Distinct rows (n, d) in a canonical order, and how often each counts."""

    points: np.ndarray
    weights: np.ndarray

    @cached_property
    def mass(self) -> float:
        """How many rows there are with repetitions."""
        return float(self.weights.sum())

    @cached_property
    def mean(self) -> np.ndarray:
        """The centre of mass."""
        return self.weights @ self.points / self.mass

    @cached_property
    def column_variances(self) -> np.ndarray:
        """The variance of each column."""
        mean = self.mean
        return np.array([self.weights @ (x - m) ** 2 for x, m in zip(self.points.T, mean, strict=True)]) / self.mass

    @cached_property
    def variance(self) -> float:
        """The mean over the columns of their variances."""
        return float(self.column_variances.mean()) if self.points.shape[1] else 0.0

    def sample(self, size: int) -> Rows:
        """At most ``size`` rows, evenly spaced along the cumulated mass: a fair sample without randomness.

        They are taken in order of their distance to the mean, so that rotated data give the same rows.
        """
        return self if len(self.weights) <= size else self._evenly_spaced(size)

    def _evenly_spaced(self, size: int) -> Rows:
        outward = np.argsort(((self.points - self.mean) ** 2).sum(1), kind="stable")
        edges = np.cumsum(self.weights[outward])
        at = (np.arange(size) + 0.5) / size * edges[-1]
        chosen, times = np.unique(np.searchsorted(edges, at), return_counts=True)
        return Rows(self.points[outward[chosen]], times.astype(np.float64))

    def repeated(self, size: int) -> np.ndarray:
        """At most ``size`` rows as an array, each repeated by its weight divided by the least weight.

        Ratios that are not whole numbers, or too many, are met as nearly as evenly spaced rows can.

        >>> Rows(np.array([[0.0], [1.0]]), np.array([1.0, 2.0])).repeated(8).ravel().tolist()
        [0.0, 1.0, 1.0]
        """
        times = self.weights / self.weights.min()
        points = self.points
        if times.sum() > size or not np.allclose(times, np.round(times), rtol=1e-9, atol=0):
            few = self._evenly_spaced(size)
            points, times = few.points, few.weights
        return np.repeat(points, np.round(times).astype(np.int64), axis=0)

    def summary(self, size: int) -> Rows:
        """At most ``size`` rows with the total mass of all."""
        few = self.sample(size)
        return Rows(few.points, few.weights * (self.mass / few.mass))


def means_by_label(points: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean (K, d) and the total weight (K,) of the points of each label.

    >>> means_by_label(np.array([[0.0], [3.0], [9.0]]), np.array([2.0, 1.0, 1.0]), np.array([0, 0, 1]))
    (array([[1.],
           [9.]]), array([3., 1.]))
    """
    total = np.bincount(labels, weights)
    sums = [np.bincount(labels, weights * column) for column in points.T]
    return np.stack(sums, 1) / total[:, None], total


def distinct_rows(X: np.ndarray, w: np.ndarray) -> Rows:
    """Rows sorted by their columns, equal ones together: the same for every order, and a weight of 2 is a row twice.

    >>> distinct_rows(np.array([[1.0], [0.0], [1.0]]), np.ones(3)).weights.tolist()
    [1.0, 2.0]
    """
    if not w.all():
        X, w = X[w > 0], w[w > 0]
    order = np.argsort(X[:, 0], kind="stable")
    first = X[order, 0]
    if (first[1:] == first[:-1]).any():
        order = np.lexsort(X.T[::-1])
    X, w = X[order], w[order]
    new = np.concatenate([[True], (X[1:] != X[:-1]).any(1)])
    if new.all():
        return Rows(X, w)
    return Rows(X[new], np.add.reduceat(w, np.flatnonzero(new)))
