"""Rows with weights, and the compiled passes over them that clustering needs."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from measureflow.attention.threads import blas
from measureflow.lloyd import kernels

STRIPES = 16  # partial sums, however many threads there are: the result does not depend on their number
SMALL = 8192  # rows below which starting threads costs more than they save


class Assignment(NamedTuple):
    """Labels (n,) and ties (n,) of the rows, and sums (k, d) of x - shift and masses (k,) of the untied ones."""

    labels: np.ndarray
    tied: np.ndarray
    sums: np.ndarray
    mass: np.ndarray


class Rescaling(NamedTuple):
    """The coordinates in which float32 computes: (x - shift) * unit, for points and centres."""

    shift: np.ndarray
    unit: float


class Points:
    """Rows X (n, d) in float32 or float64 with weights, and the passes over them that clustering needs.

    >>> points = Points(np.array([[0.0], [1.0], [8.0]]))
    >>> points.assign(np.array([[0.0], [9.0]])).labels
    array([0, 0, 1], dtype=int32)
    """

    def __init__(self, X: np.ndarray, weights: np.ndarray | None = None, *, spherical=False, threads=None):
        self.X, self.w = X, np.empty(0) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        self.spherical = spherical
        self.threads = threads or os.cpu_count() or 1
        self._rescaling = None

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return self.X.shape

    @property
    def weights(self) -> np.ndarray:
        """The mass of each row, one where no weights were given."""
        return self.w if len(self.w) else np.ones(self.shape[0])

    @property
    def rescaling(self) -> Rescaling:
        """The mean (of the sphere: the origin), and a power of two that brings the points to size one."""
        if self._rescaling is None:
            d = self.shape[1]
            shift = np.zeros(d) if self.spherical else self.mean()
            reach = max(np.abs(self.extremes() - shift).max(), np.finfo(np.float64).tiny)
            self._rescaling = Rescaling(shift, 2.0 ** -math.frexp(reach)[1])
        return self._rescaling

    def mean(self) -> np.ndarray:
        """The mean of the points by mass, in float64."""
        parts = np.zeros((STRIPES, self.shape[1]))
        self.each(lambda s, a, b: kernels.total(self.X, self.w, a, b, parts[s]))
        return parts.sum(0) / (self.w.sum() if len(self.w) else self.shape[0])

    def variance(self) -> float:
        """The mean over the coordinates of the variance by mass."""
        return self.scatter(self.mean()) / float(self.weights.sum()) / self.shape[1]

    def scatter(self, around: np.ndarray) -> float:
        """The sum of w |x - around|^2."""
        parts = np.zeros(STRIPES)

        def stripe(s, start, stop):
            parts[s] = kernels.scatter(self.X, self.w, around, start, stop)

        self.each(stripe)
        return float(parts.sum())

    def extremes(self) -> np.ndarray:
        """The least and largest of each coordinate, (2, d)."""
        parts = np.empty((STRIPES, 2, self.shape[1]))
        parts[:, 0], parts[:, 1] = np.inf, -np.inf
        self.each(lambda s, a, b: kernels.extremes(self.X, a, b, parts[s]))
        return np.stack([parts[:, 0].min(0), parts[:, 1].max(0)])

    def rows(self, index) -> np.ndarray:
        """Some of the points."""
        return self.X[index]

    def assign(self, C: np.ndarray, rescaling: Rescaling | None = None, drop: bool = True) -> Assignment:
        """The nearest centre of every row, the first of those tied, and the sums of the rows by label."""
        rescaling = rescaling or self.rescaling
        (n, d), k = self.shape, len(C)
        table = self._table(C, rescaling)
        labels, tied = np.empty(n, np.int32), np.empty(n, np.bool_)
        sums, mass = np.zeros((STRIPES, k, d)), np.zeros((STRIPES, k))

        def stripe(s, start, stop):
            fixed = self.X, self.w, C, rescaling.shift, table, self.spherical, drop
            kernels.assign(*fixed, start, stop, labels, tied, sums[s], mass[s])

        self.each(stripe)
        return Assignment(labels, tied, sums.sum(0), mass.sum(0))

    def _table(self, C, rescaling) -> kernels.Table:
        """The table of the centres in float32, in a unit that brings them to size one as well."""
        c = np.asarray(C, dtype=np.float64) - rescaling.shift
        unit = min(rescaling.unit, 2.0 ** -math.frexp(max(np.abs(c).max(), np.finfo(np.float64).tiny))[1])
        return kernels.table_of(c * unit, unit, self.spherical)

    def similarity_to_own(self, C: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """-|x - c|^2 (on the sphere x . c) for the centre of each row's label."""
        out = np.empty(self.shape[0])
        self.each(lambda s, a, b: kernels.similarity_to_own(self.X, C, labels, self.spherical, a, b, out))
        return out

    def similarity_to_all(self, C: np.ndarray) -> np.ndarray:
        """The same for every centre, (n, k)."""
        out = np.empty((self.shape[0], len(C)))
        self.each(lambda s, a, b: kernels.similarity_to_all(self.X, C, self.spherical, a, b, out))
        return out

    def lowered(self, c: np.ndarray, nearest: np.ndarray) -> np.ndarray:
        """Squared distances to the nearest centre after c is added."""
        out = np.empty(self.shape[0])
        self.each(lambda s, a, b: kernels.lowered(self.X, c, nearest, a, b, out))
        return out

    def keys(self, direction: np.ndarray) -> np.ndarray:
        """A number for each row that depends on nothing but the row."""
        out = np.empty(self.shape[0])
        self.each(lambda s, a, b: kernels.keys(self.X, direction, a, b, out))
        return out

    def each(self, task) -> None:
        """Run task(stripe, start, stop) for every stripe, on all threads, each with one BLAS thread of its own."""
        edges = np.linspace(0, self.shape[0], STRIPES + 1).astype(np.int64)
        if self.shape[0] < SMALL or self.threads == 1:
            for s in range(STRIPES):
                task(s, edges[s], edges[s + 1])
            return
        with blas().limit(limits=1), ThreadPoolExecutor(self.threads) as pool:
            for done in [pool.submit(task, s, edges[s], edges[s + 1]) for s in range(STRIPES)]:
                done.result()
