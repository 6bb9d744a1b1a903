"""Tokens into atoms: Ward's tree over where the flow left them, cut at every number of atoms."""

from __future__ import annotations

import numpy as np
from numba import njit

from measureflow.mixtures.rows import means_by_label


class TokenTree:
    r"""The merges that cost least, :math:`\frac{m_a m_b}{m_a + m_b}|c_a - c_b|^2`, from many atoms down to one.

    >>> tree = TokenTree(np.array([[0.0], [0.1], [5.0]]), np.full(3, 1 / 3))
    >>> atoms, weights = tree.atoms(2)
    >>> np.round(atoms[:, 0], 3).tolist(), np.round(weights, 3).tolist()
    ([0.05, 5.0], [0.667, 0.333])
    """

    def __init__(self, tokens: np.ndarray, weights: np.ndarray):
        self.tokens, self.weights = tokens, weights
        left, right, cost = _nearest_neighbour_chain(np.ascontiguousarray(tokens), np.ascontiguousarray(weights))
        order = np.argsort(cost, kind="stable")
        self.left, self.right, self.costs = left[order], right[order], cost[order]

    def n_by_bic(self, noise_variance: float, mass: float) -> int:
        r"""How many atoms BIC keeps, for tokens of rows of this total mass and this noise.

        Merging two atoms lowers the log-likelihood by mass times the cost of the merge over :math:`2\sigma^2`. They
        stay apart where that exceeds BIC's penalty of an atom, :math:`\frac{d+1}{2} \log(\mathrm{mass})`.

        >>> tree = TokenTree(np.array([[0.0], [0.1], [5.0]]), np.full(3, 1 / 3))
        >>> tree.n_by_bic(1.0, mass=300.0), tree.n_by_bic(1e-5, mass=300.0)
        (2, 3)
        """
        penalty = (self.tokens.shape[1] + 1) / 2 * np.log(max(mass, 2.0))
        return int(1 + (mass * self.costs / (2 * noise_variance) > penalty).sum())

    def labels(self, K: int) -> np.ndarray:
        """Which of K atoms each token belongs to."""
        n = len(self.weights)
        return _apply(n, self.left, self.right, n - min(K, n))

    def atoms(self, K: int) -> tuple[np.ndarray, np.ndarray]:
        """The K atoms as means of their tokens, and their weights."""
        return means_by_label(self.tokens, self.weights, self.labels(K))


@njit(cache=True, fastmath={"contract"})
def _nearest_neighbour_chain(points, weights):
    """Ward's merges in the order of the chain, each named by one token of either side: n^2 time, n memory.

    The clusters that are left are contiguous, so that the loops over them run on vectors.
    """
    n, d = points.shape
    centers, mass, names = points.T.copy(), weights.copy(), np.arange(n)
    left, right, costs = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1)
    chain, length, cost = np.empty(n, np.int64), 0, np.empty(n)
    for merge in range(n - 1):
        m = n - merge
        if length == 0:
            chain[0], length = 0, 1
        while True:
            a = chain[length - 1]
            _costs(centers, mass, a, m, cost)
            before = chain[length - 2] if length > 1 else -1
            least = np.inf
            for i in range(m):
                least = min(least, cost[i])
            if before >= 0 and cost[before] <= least:  # ties go to where the chain came from, so that it ends
                break
            nearest = 0
            while cost[nearest] != least:
                nearest += 1
            chain[length] = nearest
            length += 1
        b = before
        length -= 2
        left[merge], right[merge], costs[merge] = names[a], names[b], least
        total = mass[a] + mass[b]
        for j in range(d):
            centers[j, a] = (mass[a] * centers[j, a] + mass[b] * centers[j, b]) / total
        mass[a] = total
        centers[:, b], mass[b], names[b] = centers[:, m - 1], mass[m - 1], names[m - 1]  # the last takes the free place
        for i in range(length):
            if chain[i] == m - 1:
                chain[i] = b
    return left, right, costs


@njit(cache=True, fastmath={"contract"})
def _costs(centers, mass, a, m, cost):
    """What merging a with each of the first m clusters costs; with itself, without bound."""
    cost[:m] = 0.0
    for j in range(len(centers)):
        for i in range(m):
            cost[i] += (centers[j, i] - centers[j, a]) ** 2
    for i in range(m):
        cost[i] *= mass[a] * mass[i] / (mass[a] + mass[i])
    cost[a] = np.inf


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
