"""Tokens into atoms: Ward's tree over where the flow left them, cut at every number of atoms."""

from __future__ import annotations

import numpy as np
from numba import njit


class TokenTree:
    r"""The merges that cost least, :math:`\frac{m_a m_b}{m_a + m_b}|c_a - c_b|^2`, from many atoms down to one.

    >>> tree = TokenTree(np.array([[0.0], [0.1], [5.0]]), np.full(3, 1 / 3))
    >>> atoms, masses = tree.atoms(2)
    >>> np.round(atoms[:, 0], 3).tolist(), np.round(masses, 3).tolist()
    ([0.05, 5.0], [0.667, 0.333])
    """

    def __init__(self, tokens: np.ndarray, masses: np.ndarray):
        self.tokens, self.masses = tokens, masses
        left, right, cost = _nearest_neighbour_chain(np.ascontiguousarray(tokens), np.ascontiguousarray(masses))
        order = np.argsort(cost, kind="stable")
        self.left, self.right, self.costs = left[order], right[order], cost[order]

    def labels(self, K: int) -> np.ndarray:
        """Which of K atoms each token belongs to."""
        n = len(self.masses)
        return _apply(n, self.left, self.right, n - min(K, n))

    def atoms(self, K: int) -> tuple[np.ndarray, np.ndarray]:
        """The K atoms as means of their tokens, and their masses."""
        labels = self.labels(K)
        masses = np.bincount(labels, self.masses)
        sums = [np.bincount(labels, self.masses * column) for column in self.tokens.T]
        return np.stack(sums, 1) / masses[:, None], masses

    def scatter(self, most: int) -> np.ndarray:
        """Mass times squared distance of tokens to their atoms, for K = 1, ..., most."""
        total = np.concatenate([[0.0], np.cumsum(self.costs)])[::-1]
        return total[:most]


@njit(cache=True)
def _nearest_neighbour_chain(points, masses):
    """Ward's merges in the order of the chain, each named by one token of either side: n^2 time, n memory."""
    n, d = points.shape
    centres, mass, alive = points.copy(), masses.copy(), np.ones(n, np.bool_)
    left, right, costs = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1)
    chain, length = np.empty(n, np.int64), 0
    for merge in range(n - 1):
        if length == 0:
            for i in range(n):
                if alive[i]:
                    chain[0], length = i, 1
                    break
        while True:
            a = chain[length - 1]
            best, nearest = np.inf, -1
            if length > 1:  # ties go to where the chain came from, so that it ends
                nearest = chain[length - 2]
                best = _cost(centres, mass, a, nearest, d)
            for i in range(n):
                if alive[i] and i != a:
                    cost = _cost(centres, mass, a, i, d)
                    if cost < best:
                        best, nearest = cost, i
            if length > 1 and nearest == chain[length - 2]:
                break
            chain[length] = nearest
            length += 1
        b = chain[length - 2]
        length -= 2
        left[merge], right[merge], costs[merge] = a, b, best
        total = mass[a] + mass[b]
        for j in range(d):
            centres[a, j] = (mass[a] * centres[a, j] + mass[b] * centres[b, j]) / total
        mass[a], alive[b] = total, False
    return left, right, costs


@njit(cache=True, inline="always")
def _cost(centres, mass, a, b, d):
    gap = 0.0
    for j in range(d):
        gap += (centres[a, j] - centres[b, j]) ** 2
    return mass[a] * mass[b] / (mass[a] + mass[b]) * gap


@njit(cache=True)
def _apply(n, left, right, merges):
    """Labels 0, 1, ... in order of first appearance after the first ``merges`` merges."""
    parent = np.arange(n)
    for m in range(merges):
        a, b = left[m], right[m]
        while parent[a] != a:
            a = parent[a]
        while parent[b] != b:
            b = parent[b]
        parent[max(a, b)] = min(a, b)
    labels, names, count = np.empty(n, np.int64), np.full(n, -1), 0
    for i in range(n):
        root = i
        while parent[root] != root:
            root = parent[root]
        if names[root] < 0:
            names[root] = count
            count += 1
        labels[i] = names[root]
    return labels
