"""Data as a measure: distinct rows in one order, and how often each counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Rows:
    """Distinct rows (n, d) in a canonical order, and how often each counts."""

    points: np.ndarray
    counts: np.ndarray

    @property
    def total(self) -> float:
        """How many rows there are with repetitions."""
        return float(self.counts.sum())

    @property
    def mean(self) -> np.ndarray:
        """The centre of mass."""
        return self.counts @ self.points / self.total

    @property
    def column_variances(self) -> np.ndarray:
        """The variance of each column."""
        mean = self.mean
        return np.array([self.counts @ (x - m) ** 2 for x, m in zip(self.points.T, mean, strict=True)]) / self.total

    @property
    def variance(self) -> float:
        """The mean over the columns of their variances."""
        return float(self.column_variances.mean()) if self.points.shape[1] else 0.0

    def sample(self, size: int) -> Rows:
        """At most ``size`` rows, evenly spaced along the mass: no chance, and each as likely as its mass.

        They are taken in order of their distance to the mean, so that turning the data takes the same rows.
        """
        if len(self.counts) <= size:
            return self
        outward = np.argsort(((self.points - self.mean) ** 2).sum(1), kind="stable")
        edges = np.cumsum(self.counts[outward])
        at = (np.arange(size) + 0.5) / size * edges[-1]
        chosen, times = np.unique(np.searchsorted(edges, at), return_counts=True)
        return Rows(self.points[outward[chosen]], times.astype(np.float64))

    def summary(self, size: int) -> Rows:
        """At most ``size`` rows that hold the mass of all."""
        few = self.sample(size)
        return Rows(few.points, few.counts * (self.total / few.total))


def distinct_rows(X: np.ndarray, w: np.ndarray) -> Rows:
    """Rows sorted by their columns, equal ones together: the same for every order, and a weight of 2 is a row twice.

    >>> distinct_rows(np.array([[1.0], [0.0], [1.0]]), np.ones(3)).counts.tolist()
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
