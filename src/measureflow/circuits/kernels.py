r"""Compiled inner loops of the fused k-means: rows in chunks that stay in the cache, no n x k matrix, no GIL.

The nearest centre is found from :math:`|c|^2 - 2 x\cdot c`, one matrix product in float32 for a chunk of rows.
Where the best two differ by less than rounding could have caused, distances are taken again term by term in
float64: labels and ties are those of the exact formula, at half the price of a float64 product.
"""

from __future__ import annotations

import numpy as np
from numba import njit

CHUNK = 256  # rows whose scores are held at once: 64 kB for 64 centres, which stays in the cache

REORDER = {"reassoc", "nnan", "ninf", "nsz", "contract"}  # lets the compiler vectorise sums and minima


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
def candidates(G, n_rows, doubt, index, slack, where, count, edge):
    """For each row of scores: the index of the least if no other may be less, how many may be, and their edge.

    Scores are upper bounds, and ``doubt`` below them lie the lower ones; ``slack`` comes in with the edge. Counting
    and indexing in float32, by an array ``index`` = 0, 1, ..., keeps all of it in vector registers.
    """
    for i in range(n_rows):
        least = G[i, 0]
        for j in range(1, G.shape[1]):
            least = min(least, G[i, j])
        edge[i] = least + slack[i]
        near, place = np.float32(0), np.float32(0)
        for j in range(G.shape[1]):
            inside = np.float32(G[i, j] - doubt[j] <= edge[i])
            near += inside
            place += index[j] * inside
        where[i], count[i] = place, near


@njit(nogil=True, cache=True)
def settle(x, C, scores, doubt, edge, spherical):
    """Among the candidates the exactly nearest: the first of them, and whether another is as near."""
    label, best, tied = -1, -np.inf, False
    for j in range(C.shape[0]):
        if scores[j] - doubt[j] <= edge:
            s = exact_similarity(x, C[j], spherical)
            if s > best:
                label, best, tied = j, s, False
            elif s == best:
                tied = True
    return label, tied


@njit(nogil=True, cache=True, fastmath=REORDER)
def centred(X, shift, unit, factor, start, stop, P, slack):
    """(x - shift) unit in float32 into P, whose last column stays one, and factor times the squared lengths."""
    for i in range(start, stop):
        total = np.float32(0)
        for t in range(X.shape[1]):
            value = np.float32((X[i, t] - shift[t]) * unit)
            P[i - start, t] = value
            total += value * value
        slack[i - start] = factor * total


@njit(nogil=True, cache=True)
def assign(X, w, C, shift, unit, T, doubt, rounding, spherical, drop, start, stop, labels, tied, sums, mass):
    """Label rows start:stop and add x - shift to the sums (k, d) and masses (k,) of their clusters.

    T (d + 1, k) holds -2 c over |c|^2 for the centred and scaled centres, raised by what float32 may lose of it;
    ``doubt`` (k,) is twice that, and ``rounding`` times |x|^2 what it may lose of the point. ``w`` of length zero
    means masses of one. With ``drop`` a tied row is labelled and marked but added nowhere.
    """
    d, k = X.shape[1], C.shape[0]
    P = np.ones((CHUNK, d + 1), np.float32)
    G = np.empty((CHUNK, k), np.float32)
    slack, edge = np.empty(CHUNK, np.float32), np.empty(CHUNK, np.float32)
    where, count = np.empty(CHUNK, np.float32), np.empty(CHUNK, np.float32)
    index = np.arange(k).astype(np.float32)
    for a in range(start, stop, CHUNK):
        b = min(a + CHUNK, stop)
        centred(X, shift, unit, 2 * rounding, a, b, P, slack)
        np.dot(P, T, G)
        candidates(G, b - a, doubt, index, slack, where, count, edge)
        for i in range(a, b):
            label, tie = int(where[i - a]), False
            if count[i - a] != 1:
                label, tie = settle(X[i], C, G[i - a], doubt, edge[i - a], spherical)
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
def scatter(X, w, around, start, stop):
    """The sum of w |x - around|^2 over rows start:stop."""
    total = 0.0
    for i in range(start, stop):
        total -= exact_similarity(X[i], around, False) * (w[i] if w.shape[0] else 1.0)
    return total


@njit(nogil=True, cache=True)
def lowered(X, c, nearest, start, stop, out):
    """min(nearest, |x - c|^2): what one more centre would leave of the squared distances."""
    for i in range(start, stop):
        out[i] = min(nearest[i], -exact_similarity(X[i], c, False))


@njit(nogil=True, cache=True)
def keys(X, direction, start, stop, out):
    """x . direction row by row, in the same order of operations wherever the row stands."""
    for i in range(start, stop):
        total = 0.0
        for t in range(X.shape[1]):
            total += X[i, t] * direction[t]
        out[i] = total
