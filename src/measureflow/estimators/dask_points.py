"""Rows spread over a Dask cluster: every pass runs where the blocks are, only sums and columns come back."""

from __future__ import annotations

from functools import reduce

import numpy as np

from measureflow.estimators import checks
from measureflow.lloyd.points import Assignment, Points, Rescaling


def is_dask(X) -> bool:
    """Whether X is a Dask array, without importing Dask."""
    return type(X).__module__.startswith("dask.array") and hasattr(X, "to_delayed")


def row_blocks(X):
    """A Dask array (n, d) of real numbers with whole rows in each block."""
    if X.ndim != 2 or np.isnan(X.shape[0]):
        raise ValueError(f"X must be a Dask array with two axes of known length, got shape {X.shape}")
    if 0 in X.shape:
        raise ValueError(f"X must have at least one row and one column, got shape {X.shape}")
    if X.dtype.kind not in "biufO":
        raise ValueError(f"X must hold real numbers, got {X.dtype}")
    return X.rechunk({1: -1})


class DaskPoints(Points):
    """The passes of `Points` over the row blocks of a Dask array (n, d).

    A column of n numbers (labels, distances) must fit where the call is made; the rows themselves need not.
    """

    def __init__(self, X, weights=None, spherical: bool = False):
        from dask.array.linalg import norm
        from dask.base import persist

        X = row_blocks(X)
        X = X.astype(np.float32 if X.dtype == np.float32 else np.float64)
        if spherical:
            X = X / norm(X, axis=1, keepdims=True)
        self.spherical, self._rescaling = spherical, None
        self._shape = X.shape
        self.edges = np.concatenate([[0], np.cumsum(X.chunks[0])])
        self.w = self._weights(weights)
        self.blocks = persist(*X.to_delayed().ravel())
        if not all(self._map("all_finite")):
            raise ValueError("X has NaN or infinite values")
        checks.squarable(self.extremes())

    def _weights(self, weights) -> np.ndarray:
        if weights is None:
            return np.empty(0)
        return checks.weights(weights, self.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        return self._shape

    def _map(self, name: str, *arguments, columns=()) -> list:
        """The named pass on every block, with the block's part of each column."""
        from dask.base import compute
        from dask.delayed import delayed

        run = delayed(_on_block)
        jobs = []
        for b, block in enumerate(self.blocks):
            part = slice(self.edges[b], self.edges[b + 1])
            w = self.w[part] if len(self.w) else None
            jobs.append(run(block, w, self.spherical, name, arguments, tuple(c[part] for c in columns)))
        return list(compute(*jobs))

    def mean(self) -> np.ndarray:
        return sum(self._map("total")) / self.weights.sum()

    def scatter(self, around) -> float:
        return sum(self._map("scatter", around))

    def extremes(self) -> np.ndarray:
        parts = np.stack(self._map("extremes"))
        return np.stack([parts[:, 0].min(0), parts[:, 1].max(0)])

    def rows(self, index) -> np.ndarray:
        from dask.base import compute
        from dask.delayed import delayed

        index = np.arange(self.shape[0])[index]
        flat = np.atleast_1d(index)
        owner = np.searchsorted(self.edges, flat, side="right") - 1
        take = delayed(lambda block, rows: block[rows])
        needed = sorted(set(owner.tolist()))
        parts = compute(*[take(self.blocks[b], flat[owner == b] - self.edges[b]) for b in needed])
        first = parts[0] if parts else np.empty((0, self.shape[1]))
        out = np.empty((len(flat), self.shape[1]), dtype=first.dtype)
        for b, part in zip(needed, parts, strict=True):
            out[owner == b] = part
        return out if np.ndim(index) else out[0]

    def assign(self, C, rescaling: Rescaling | None = None, drop: bool = True) -> Assignment:
        labels, tied, sums, mass = zip(*self._map("assign", C, rescaling or self.rescaling, drop), strict=True)
        return Assignment(np.concatenate(labels), np.concatenate(tied), reduce(np.add, sums), reduce(np.add, mass))

    def similarity_to_own(self, C, labels) -> np.ndarray:
        return np.concatenate(self._map("similarity_to_own", C, columns=(labels,)))

    def lowered(self, c, nearest) -> np.ndarray:
        return np.concatenate(self._map("lowered", c, columns=(nearest,)))

    def keys(self, direction) -> np.ndarray:
        return np.concatenate(self._map("keys", direction))


def _on_block(X, w, spherical, name, arguments, columns):
    """What a worker does: one pass over its block, on one thread, because workers share the machine."""
    X = np.ascontiguousarray(X)
    points = Points(X, w, spherical=spherical, threads=1)
    if name in _TOTALS:
        return _TOTALS[name](points)
    return getattr(points, name)(*arguments, *columns)


_TOTALS = {
    "all_finite": lambda points: bool(np.isfinite(points.X).all()),
    "total": lambda points: points.weights @ points.X,
}
