r"""From pair probabilities to clusters: the cut of a tree with the largest expected adjusted Rand index.

For pair probabilities P and a partition c the expected index [Fritsch and Ickstadt 2009, eq. 13] is

.. math::
    \frac{\sum_{i<j} 1[c_i = c_j] P_{ij} - E}{\frac12 \big(\sum_{i<j} 1[c_i = c_j] + \sum_{i<j} P_{ij}\big) - E},
    \qquad E = \frac{\sum_{i<j} 1[c_i = c_j] \sum_{i<j} P_{ij}}{\binom n2}
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform


@dataclass(frozen=True)
class PairTree:
    """The average-linkage tree of 1 - P over n rows, and sums over pairs within the clusters of each of its cuts."""

    merges: np.ndarray  # (n - 1, 2): the clusters that each step merges, rows first
    within: np.ndarray  # (n,): pairs within clusters, of the cuts into 1, 2, ..., n clusters
    agreeing: np.ndarray  # (n,): the sum of P over these pairs

    @classmethod
    def of(cls, P: np.ndarray) -> PairTree:
        """The tree of probabilities (n, n), symmetric; the diagonal does not matter.

        Average linkage joins two clusters at one minus the mean of P between them, so the sums of P within clusters
        follow from the heights of the tree.
        """
        n = len(P)
        if n < 2:
            return cls(np.empty((0, 2), dtype=np.int64), np.zeros(n), np.zeros(n))
        tree = linkage(1 - squareform((P + P.T) / 2, checks=False), "average")
        merges = tree[:, :2].astype(np.int64)
        sizes = np.concatenate([np.ones(n), tree[:, 3]])
        joined = sizes[merges[:, 0]] * sizes[merges[:, 1]]
        within, agreeing = np.cumsum(joined), np.cumsum(joined * (1 - tree[:, 2]))
        return cls(merges, np.append(within[::-1], 0.0), np.append(agreeing[::-1], 0.0))

    def indices(self, p_one: float = 0.0) -> np.ndarray:
        """The expected adjusted Rand index (n,) of the cuts into 1, 2, ..., n clusters.

        With probability ``p_one`` all rows are one cluster: then the cut into one cluster has an index of one, and
        every other cut zero. Otherwise the cut into one cluster has zero, and the others have what P says given that
        there are several clusters.
        """
        if len(self.within) < 2:
            return np.ones(len(self.within))
        found = _index(self.agreeing, self.within, self.agreeing[0], self.within[0], p_one)
        found[0] = p_one
        return found

    def between(self, n_clusters: int) -> float:
        """The mean of P over pairs of rows in different clusters of a cut into at least two."""
        cut = n_clusters - 1
        return float((self.agreeing[0] - self.agreeing[cut]) / (self.within[0] - self.within[cut]))

    def labels(self, n_clusters: int) -> np.ndarray:
        """Labels (n,) of that many clusters, numbered by their first rows."""
        n = len(self.merges) + 1
        if not 1 <= n_clusters <= n:
            raise ValueError(f"n_clusters must lie between 1 and the {n} rows, got {n_clusters}")
        parent = np.arange(2 * n - 1)
        for step in range(n - n_clusters):
            parent[self.merges[step]] = n + step
        for node in range(2 * n - 2, -1, -1):  # parents come after their children
            parent[node] = parent[parent[node]]
        _, first, inverse = np.unique(parent[:n], return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[inverse]


def expected_index(P: np.ndarray, labels: np.ndarray, p_one: float = 0.0) -> float:
    """The expected adjusted Rand index of a partition, if the rows are one cluster with probability ``p_one``.

    >>> P = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.1], [0.1, 0.1, 1.0]])
    >>> round(expected_index(P, np.array([0, 0, 1])), 3), expected_index(P, np.zeros(3, int))
    (0.78, 0.0)
    """
    if len(P) < 2 or (labels == labels[0]).all():
        return float(p_one)
    n = len(P)
    member = np.zeros((n, int(labels.max()) + 1), dtype=P.dtype)
    member[np.arange(n), labels] = 1.0
    alone = np.trace(P)
    within = (float((member.sum(0) ** 2).sum()) - n) / 2
    expected = (float(P.sum()) - alone) / 2
    agreeing = (float((member * (P @ member)).sum()) - alone) / 2
    return float(_index(np.array(agreeing), np.array(within), expected, n * (n - 1) / 2, p_one))


def best_cut(P: np.ndarray, p_one: float) -> int:
    """The number of clusters of the cut with the largest expected index; see `PairTree.indices`."""
    return 1 + int(PairTree.of(P).indices(p_one).argmax())


def _index(agreeing: np.ndarray, within: np.ndarray, expected: float, total: float, p_one: float) -> np.ndarray:
    r"""The expected index from sums over pairs: of P within clusters, of pairs within clusters, of P, of all pairs.

    Given that there are several clusters, a pair belongs together with probability :math:`(P - p_1) / (1 - p_1)`.
    """
    several = max(1 - p_one, 1e-9)
    agreeing, expected = (agreeing - p_one * within) / several, max(expected - p_one * total, 0.0) / several
    chance = within * expected / total
    room = (within + expected) / 2 - chance
    found = np.where(room > 1e-9 * total, (agreeing - chance) / np.maximum(room, 1e-12 * total), 0.0)
    apart = (within == 0) & (expected <= 1e-9 * total)  # no two rows belong together, and the partition says so
    return (1 - p_one) * np.where(apart, 1.0, found)
