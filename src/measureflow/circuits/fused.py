"""The k-means transformers without their tokens: the same numbers, no n x n attention and no (d + k) embedding."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from threadpoolctl import ThreadpoolController

from measureflow.attention import Normaliser
from measureflow.circuits import kernels

STRIPES = 16  # partial sums, however many threads there are: the result does not depend on their number
SMALL = 8192  # rows below which starting threads costs more than they save


class Assignment(NamedTuple):
    """Labels (n,) and ties (n,) of the rows, and sums (k, d) of x - shift and masses (k,) of the untied ones."""

    labels: np.ndarray
    tied: np.ndarray
    sums: np.ndarray
    mass: np.ndarray


class Frame(NamedTuple):
    """Where float32 looks from: centres and points are seen as (x - shift) * unit."""

    shift: np.ndarray
    unit: float


class Points:
    """Rows X (n, d) in float32 or float64 with masses, and the passes over them that clustering needs.

    >>> points = Points(np.array([[0.0], [1.0], [8.0]]))
    >>> points.assign(np.array([[0.0], [9.0]])).labels
    array([0, 0, 1], dtype=int32)
    """

    def __init__(self, X: np.ndarray, weights: np.ndarray | None = None, *, spherical=False, threads=None):
        self.X, self.w = X, np.empty(0) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        self.spherical = spherical
        self.threads = threads or os.cpu_count() or 1
        self._frame = None

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return self.X.shape

    @property
    def masses(self) -> np.ndarray:
        """The masses, ones where none were given."""
        return self.w if len(self.w) else np.ones(self.shape[0])

    @property
    def frame(self) -> Frame:
        """The mean (of the sphere: the origin), and a power of two that brings the points to size one."""
        if self._frame is None:
            d = self.shape[1]
            shift = np.zeros(d) if self.spherical else self.mean()
            reach = max(np.abs(self.extremes() - shift).max(), np.finfo(np.float64).tiny)
            self._frame = Frame(shift, 2.0 ** -math.frexp(reach)[1])
        return self._frame

    def mean(self) -> np.ndarray:
        """The mean of the points by mass, in float64."""
        if len(self.w):
            return self.w @ self.X / self.w.sum()
        return self.X.mean(0, dtype=np.float64)

    def variance(self) -> float:
        """The mean over the coordinates of the variance by mass."""
        return self.scatter(self.mean()) / float(self.masses.sum()) / self.shape[1]

    def scatter(self, around: np.ndarray) -> float:
        """The sum of w |x - around|^2."""
        parts = np.zeros(STRIPES)

        def stripe(s, start, stop):
            parts[s] = kernels.scatter(self.X, self.w, around, start, stop)

        self._each(stripe)
        return float(parts.sum())

    def extremes(self) -> np.ndarray:
        """The least and largest of each coordinate, (2, d)."""
        return np.stack([self.X.min(0), self.X.max(0)]).astype(np.float64)

    def rows(self, index) -> np.ndarray:
        """Some of the points."""
        return self.X[index]

    def assign(self, C: np.ndarray, frame: Frame | None = None, drop: bool = True) -> Assignment:
        """The nearest centre of every row, the first of those tied, and the sums of the rows by label."""
        frame = frame or self.frame
        (n, d), k = self.shape, len(C)
        T, doubt, rounding, unit = self._table(C, frame)
        labels, tied = np.empty(n, np.int32), np.empty(n, np.bool_)
        sums, mass = np.zeros((STRIPES, k, d)), np.zeros((STRIPES, k))

        def stripe(s, start, stop):
            kernels.assign(
                self.X, self.w, C, frame.shift, unit, T, doubt, rounding, self.spherical, drop,
                start, stop, labels, tied, sums[s], mass[s],
            )  # fmt: skip

        self._each(stripe)
        return Assignment(labels, tied, sums.sum(0), mass.sum(0))

    def _table(self, C, frame):
        """-2 c over |c|^2 in float32, and what float32 may lose of a score: 2 (d + 4) eps (|x|^2 + |c|^2)."""
        c = np.asarray(C, dtype=np.float64) - frame.shift
        unit = min(frame.unit, 2.0 ** -math.frexp(max(np.abs(c).max(), np.finfo(np.float64).tiny))[1])
        c *= unit
        square = (c * c).sum(1)
        rounding = np.float32(2 * (c.shape[1] + 4) * np.finfo(np.float32).eps)
        head = np.zeros_like(square) if self.spherical else square
        T = np.concatenate([-2 * c.T, head[None]]).astype(np.float32)
        return T, (rounding * square).astype(np.float32), rounding, unit

    def similarity_to_own(self, C: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """-|x - c|^2 (on the sphere x . c) for the centre of each row's label."""
        out = np.empty(self.shape[0])
        self._each(lambda s, a, b: kernels.similarity_to_own(self.X, C, labels, self.spherical, a, b, out))
        return out

    def similarity_to_all(self, C: np.ndarray) -> np.ndarray:
        """The same for every centre, (n, k)."""
        out = np.empty((self.shape[0], len(C)))
        self._each(lambda s, a, b: kernels.similarity_to_all(self.X, C, self.spherical, a, b, out))
        return out

    def lowered(self, c: np.ndarray, nearest: np.ndarray) -> np.ndarray:
        """Squared distances to the nearest centre once c is one too."""
        out = np.empty(self.shape[0])
        self._each(lambda s, a, b: kernels.lowered(self.X, c, nearest, a, b, out))
        return out

    def keys(self, direction: np.ndarray) -> np.ndarray:
        """A number for each row that depends on nothing but the row."""
        out = np.empty(self.shape[0])
        self._each(lambda s, a, b: kernels.keys(self.X, direction, a, b, out))
        return out

    def _each(self, task) -> None:
        """Run task(stripe, start, stop) for every stripe, on all threads, each with one BLAS thread of its own."""
        edges = np.linspace(0, self.shape[0], STRIPES + 1).astype(np.int64)
        if self.shape[0] < SMALL or self.threads == 1:
            for s in range(STRIPES):
                task(s, edges[s], edges[s + 1])
            return
        with _blas().limit(limits=1, user_api="blas"), ThreadPoolExecutor(self.threads) as pool:
            for done in [pool.submit(task, s, edges[s], edges[s + 1]) for s in range(STRIPES)]:
                done.result()


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of this process; looking for them takes longer than a pass over a small table."""
    return ThreadpoolController()


def on_sphere(C: np.ndarray) -> np.ndarray:
    """Rows divided by their length; a mean too short to have a direction becomes zero, as in `RMSNorm`."""
    length = np.linalg.norm(C, axis=1, keepdims=True)
    return np.where(length > np.finfo(np.float64).eps ** 0.5, C / np.maximum(length, 1e-30), 0.0)


def shares_of(points: Points, C: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The shares (rows, k) of some rows: 1/m for each of the m nearest centres."""
    S = Points(points.rows(rows), spherical=points.spherical).similarity_to_all(C)
    best = S.max(1, keepdims=True) == S
    return best / best.sum(1, keepdims=True)


def lloyd_step(points: Points, C: np.ndarray, empty: str = "mean") -> tuple[np.ndarray, np.ndarray]:
    """One layer of the Lloyd transformer: labels and new centres, with a policy for clusters that no row is in.

    "mean" is the bare circuit, "keep" leaves the centre, "relocate" moves it to the row farthest from its
    nearest centre (rows of mass only, one distinct place for each, equal distances in lexicographic order).
    """
    found = points.assign(C)
    mass, sums = found.mass.copy(), found.sums.copy()
    if (mass == 0).any():
        _add_tied(points, C, found, sums, mass)
    hungry = np.flatnonzero(mass == 0)
    fed = mass > 0
    new = np.array(C, dtype=np.float64)
    new[fed] = points.frame.shift + sums[fed] / mass[fed, None]
    if len(hungry) and empty == "mean":
        new[hungry] = points.mean()
    if len(hungry) and empty == "relocate":
        new[hungry] = farthest(points, C, found.labels, hungry)
    return found.labels, (on_sphere(new) if points.spherical else new).astype(C.dtype)


def _add_tied(points: Points, C, found: Assignment, sums, mass) -> None:
    """Give clusters without a row of their own the tied rows of the largest share."""
    rows = np.flatnonzero(found.tied & (points.masses > 0))
    if len(rows) == 0:
        return
    Y, w, x = shares_of(points, C, rows), points.masses[rows], points.rows(rows) - points.frame.shift
    for j in np.flatnonzero(mass == 0):
        chosen = (Y[:, j] == Y[:, j].max()) & (Y[:, j] > 0)
        sums[j], mass[j] = w[chosen] @ x[chosen], w[chosen].sum()


def farthest(points: Points, C: np.ndarray, labels: np.ndarray, hungry: np.ndarray) -> np.ndarray:
    """New places for empty clusters: the rows farthest from their centres; where rows run out centres stay."""
    s = np.where(points.masses > 0, points.similarity_to_own(C, labels), np.inf)
    places: list[np.ndarray] = []
    floor = -np.inf
    while len(places) < len(hungry) and (s > floor).any():
        level = s[s > floor].min()
        if level == np.inf:
            break
        places.extend(np.unique(points.rows(np.flatnonzero(s == level)), axis=0))
        floor = level
    return np.array([places[i] if i < len(places) else C[j] for i, j in enumerate(hungry)])


def weighed_step(points: Points, C: np.ndarray, weigh: Normaliser) -> tuple[np.ndarray, np.ndarray]:
    """One layer of a row whose decoder sees distances: each centre the mean of its members, weighed by ``weigh``."""
    found = points.assign(C)
    groups = Members(points, C, found)
    new = np.empty((len(C), points.shape[1]))
    for j in range(len(C)):
        rows = groups.of(j)
        x = points.rows(rows)
        s = Points(x, spherical=points.spherical, threads=1).similarity_to_all(C[j : j + 1])[:, 0]
        z = weigh(torch.from_numpy(s)[None], torch.from_numpy(points.masses[rows])[None])[0].numpy()
        new[j] = z @ x
    return found.labels, (on_sphere(new) if points.spherical else new).astype(C.dtype)


class Members:
    """The rows of each cluster: those of the largest share; if none has any, those the circuit takes then."""

    def __init__(self, points: Points, C: np.ndarray, found: Assignment):
        heavy, self.spherical = points.masses > 0, points.spherical
        own = np.flatnonzero(heavy & ~found.tied)
        order = own[np.argsort(found.labels[own], kind="stable")]
        edges = np.searchsorted(found.labels[order], np.arange(len(C) + 1))
        self.groups = [order[edges[j] : edges[j + 1]] for j in range(len(C))]
        self.tied = np.flatnonzero(heavy & found.tied)
        self.Y = shares_of(points, C, self.tied) if len(self.tied) else np.zeros((0, len(C)))
        self.all = np.flatnonzero(heavy)

    def of(self, j: int) -> np.ndarray:
        """The rows of cluster j."""
        if len(self.groups[j]):
            return self.groups[j]
        if len(self.tied) and self.Y[:, j].max() > 0:
            return self.tied[self.Y[:, j] == self.Y[:, j].max()]
        if len(self.tied) and not self.spherical:  # nobody has a share: L2 attention is closest to the most tied
            most = self.Y.max(1)
            return self.tied[most == most.min()]
        return self.all


def soft_step(points: Points, C: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """One layer of the soft transformer: softmax shares in blocks of rows, then the means by share."""
    shift, k = points.frame.shift, len(C)
    c = np.asarray(C, dtype=np.float64) - shift
    lift = np.zeros(k) if points.spherical else (c * c).sum(1)
    sums, mass = np.zeros((STRIPES, k, points.shape[1])), np.zeros((STRIPES, k))
    factor = 1.0 if points.spherical else 2.0
    labels = np.empty(points.shape[0], np.int32)

    def stripe(s, start, stop):
        for a in range(start, stop, 4096):
            b = min(a + 4096, stop)
            x = points.X[a:b] - shift
            scores = gamma * (factor * x @ c.T - lift)
            scores -= scores.max(1, keepdims=True)
            labels[a:b] = scores.argmax(1)
            Y = np.exp(scores, out=scores)
            Y /= Y.sum(1, keepdims=True)
            if len(points.w):
                Y *= points.w[a:b, None]
            sums[s] += Y.T @ x
            mass[s] += Y.sum(0)

    points._each(stripe)
    total = mass.sum(0)[:, None]
    new = np.where(total > 0, shift + sums.sum(0) / np.where(total > 0, total, 1.0), points.mean())
    return labels, (on_sphere(new) if points.spherical else new).astype(C.dtype)


def medoid_step(
    points: Points, C: np.ndarray, delta: float, generator: torch.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """One layer of randomised k-medoids: each centre a row drawn by Gumbel numbers, cluster by cluster."""
    found = points.assign(C)
    tied = np.flatnonzero(found.tied)
    Y = shares_of(points, C, tied) if len(tied) else np.zeros((0, len(C)))
    masses = points.masses
    log_w = np.where(masses > 0, np.log(np.where(masses > 0, masses, 1.0)), -np.inf)
    drawn = []
    for j in range(len(C)):
        gap = 2 * delta * (found.labels != j)
        full = 2 * delta if points.spherical else delta
        gap[tied] = np.where(Y[:, j] > 0, full * (1 - Y[:, j]), full * (1 + Y.max(1) * (not points.spherical)))
        s = points.similarity_to_own(C, np.full(points.shape[0], j, np.int32)) - gap + log_w
        u = torch.rand(points.shape[0], generator=generator, dtype=torch.float64).numpy()
        tiny = np.finfo(np.float64).tiny
        drawn.append(int(np.argmax(s - np.log(np.maximum(-np.log(np.maximum(u, tiny)), tiny)))))
    return found.labels, points.rows(drawn).astype(C.dtype)
