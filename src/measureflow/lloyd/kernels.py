r"""Compiled inner loops of the fused k-means: rows in tiles that stay in registers, no n x k matrix, no GIL.

The nearest centre is found from :math:`|c|^2 - 2 x\cdot c` in float32. Where the best two differ by less than rounding
could have caused, distances are taken again term by term in float64: labels and ties are those of the exact formula,
at half the price of float64 throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from measureflow.lloyd.lanes import CENTERS, FAR, ROWS, two_nearest

REORDER = {"reassoc", "nnan", "ninf", "nsz", "contract"}  # lets the compiler vectorise sums and minima


class Table(NamedTuple):
    """Centres in float32: scores ``lift_j + x . T_j`` are too low by at most ``doubt_j`` plus a part that depends on x.

    That part is twice ``rounding`` times :math:`|x|^2`; points and centres are in units of ``unit``. T is flat: groups
    of centres, in each coordinate after coordinate. Places after the last centre hold dummy centres far away.
    """

    # numba's cache of compiled functions knows this class by its name: after another one, old caches cannot be read

    T: np.ndarray
    lift: np.ndarray
    doubt: np.ndarray
    rounding: np.float32
    unit: float


def table_of(c: np.ndarray, unit: float, spherical: bool) -> Table:
    """The table of centres c (k, d), in units of ``unit``; float32 may lose 2 (d + 5) eps (|x|^2 + |c|^2)."""
    k, d = c.shape
    square = (c * c).sum(1)
    rounding = np.float32(2 * (d + 5) * np.finfo(np.float32).eps)
    loss = rounding * square + np.finfo(np.float32).tiny
    spare = -k % CENTERS
    T = np.concatenate([-2 * c, np.zeros((spare, d))]).reshape(-1, CENTERS, d).swapaxes(1, 2)
    lift = np.concatenate([-loss if spherical else square - loss, np.full(spare, FAR)])
    doubt = np.concatenate([2 * loss, np.zeros(spare)])
    return Table(T.astype(np.float32).ravel(), lift.astype(np.float32), doubt.astype(np.float32), rounding, unit)


@njit(nogil=True, cache=True)
def exact_similarity(x, c, spherical):
    """-|x - c|^2 or x . c, term by term in float64."""
    total = 0.0
    for t in range(x.shape[0]):
        if spherical:
            total += np.float64(x[t]) * np.float64(c[t])
        else:
            gap = np.float64(x[t]) - np.float64(c[t])
            total -= gap * gap
    return total


@njit(nogil=True, cache=True, fastmath=REORDER)
def centered(X, shift, unit, factor, start, stop, tile, slack):
    """(x - shift) unit in float32 as the columns of a tile (d, ROWS), and factor times the squared lengths."""
    for i in range(start, stop):
        total = np.float32(0)
        for t in range(X.shape[1]):
            value = np.float32((X[i, t] - shift[t]) * unit)
            tile[t, i - start] = value
            total += value * value
        slack[i - start] = factor * total


@njit(nogil=True, cache=True)
def settle(x, C, column, table, slack, spherical):
    """The exactly nearest of the centres that the table leaves in doubt: the first, and whether another is as near."""
    d, k = x.shape[0], C.shape[0]
    low = table.lift.copy()
    for j in range(low.size):
        group = (j // CENTERS) * d * CENTERS + j % CENTERS
        for t in range(d):
            low[j] += column[t] * table.T[group + t * CENTERS]
    edge = (low + table.doubt).min() + slack
    label, best, tied = -1, -np.inf, False
    for j in range(k):
        if low[j] <= edge:
            s = exact_similarity(x, C[j], spherical)
            if s > best:
                label, best, tied = j, s, False
            elif s == best:
                tied = True
    return label, tied


@njit(nogil=True, cache=True)
def assign(X, w, C, shift, table, spherical, drop, start, stop, labels, tied, sums, mass):
    """Label rows start:stop and add x - shift to the sums (k, d) and masses (k,) of their clusters.

    ``w`` of length zero means masses of one. With ``drop`` a tied row is labelled and marked but added nowhere.
    """
    d = X.shape[1]
    tile = np.zeros((d, ROWS), np.float32)
    near, second, slack = np.empty(ROWS, np.float32), np.empty(ROWS, np.float32), np.empty(ROWS, np.float32)
    where = np.empty(ROWS, np.int32)
    for a in range(start, stop, ROWS):
        b = min(a + ROWS, stop)
        centered(X, shift, table.unit, 2 * table.rounding, a, b, tile, slack)
        two_nearest(tile.reshape(-1), table.T, table.lift, near, second, where)
        for i in range(a, b):
            r = i - a
            label, tie = where[r], False
            if second[r] <= near[r] + table.doubt[label] + slack[r]:
                label, tie = settle(X[i], C, tile[:, r], table, slack[r], spherical)
            labels[i] = label
            tied[i] = tie
            if tie and drop:
                continue
            weight = w[i] if w.shape[0] else 1.0
            mass[label] += weight
            for t in range(d):
                sums[label, t] += weight * (X[i, t] - shift[t])


@njit(nogil=True, cache=True)
def similarity_to_own(X, C, labels, spherical, start, stop, out):
    """The exact similarity of each row to the centre of its label."""
    for i in range(start, stop):
        out[i] = exact_similarity(X[i], C[labels[i]], spherical)


@njit(nogil=True, cache=True)
def similarity_to_all(X, C, spherical, start, stop, out):
    """The exact similarity (n, k) of each row to each centre."""
    for i in range(start, stop):
        for j in range(C.shape[0]):
            out[i, j] = exact_similarity(X[i], C[j], spherical)


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz"})  # the first bounds are infinite
def extremes(X, start, stop, out):
    """Lower out[0] and raise out[1] to the least and largest of each coordinate of rows start:stop."""
    for i in range(start, stop):
        for t in range(X.shape[1]):
            out[0, t] = min(out[0, t], X[i, t])
            out[1, t] = max(out[1, t], X[i, t])


@njit(nogil=True, cache=True)
def total(X, w, start, stop, out):
    """Add w x over rows start:stop to out (d,)."""
    for i in range(start, stop):
        weight = w[i] if w.shape[0] else 1.0
        for t in range(X.shape[1]):
            out[t] += weight * X[i, t]


@njit(nogil=True, cache=True)
def scatter(X, w, around, start, stop):
    """The sum of w |x - around|^2 over rows start:stop."""
    total = 0.0
    for i in range(start, stop):
        total -= exact_similarity(X[i], around, False) * (w[i] if w.shape[0] else 1.0)
    return total


@njit(nogil=True, cache=True)
def lowered(X, c, nearest, start, stop, out):
    """min(nearest, |x - c|^2): the squared distances with one more centre."""
    for i in range(start, stop):
        out[i] = min(nearest[i], -exact_similarity(X[i], c, False))


@njit(nogil=True, cache=True)
def keys(X, direction, start, stop, out):
    """x . direction row by row, in the same order of operations wherever the row is."""
    for i in range(start, stop):
        total = 0.0
        for t in range(X.shape[1]):
            total += X[i, t] * direction[t]
        out[i] = total
