"""Clusters that meet without a gap: pieces of one shape, perhaps, rather than groups."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from measureflow.report.samples import evenly

MOST_ROWS = 6000  # that are looked at
NEAREST = 6  # other clusters that each is compared with
WINDOW = 0.3  # of the way between two centres: how wide the border is
NO_GAP = 0.85  # rows at the border for each that an even spread over the way would put there: more is no gap
FEWEST = 12  # rows between two centres that are worth counting


def pieces(X: np.ndarray, labels: np.ndarray) -> list[list[int]]:
    """Sets of clusters of the rows X (n, d) that are joined by borders as full as the rest; -1 is no cluster.

    >>> rng = np.random.default_rng(0)
    >>> square = rng.uniform(-1, 1, (900, 2))
    >>> pieces(square, 3 * (square[:, 0] > 0) // 2 + (square[:, 1] > 0))
    [[0, 1, 2]]
    >>> apart = np.concatenate([rng.normal(c, 1, (300, 2)) for c in (0, 6)])
    >>> pieces(apart, np.repeat([0, 1], 300))
    []
    """
    kept = np.flatnonzero(labels >= 0)
    kept = kept[evenly(len(kept), MOST_ROWS)]
    X, labels = np.asarray(X, float)[kept], labels[kept]
    K = int(labels.max(initial=-1)) + 1
    if K < 2 or np.bincount(labels, minlength=K).min() == 0:
        return []
    X = (X - X.mean(0)) / np.where(X.std(0) > 0, X.std(0), 1.0)
    parts = [X[labels == k] for k in range(K)]
    centers = np.stack([part.mean(0) for part in parts])
    away = ((centers[:, None] - centers[None]) ** 2).sum(-1)
    near = np.argsort(away, axis=1, kind="stable")[:, 1 : NEAREST + 1]
    pairs = sorted({(min(a, b), max(a, b)) for a in range(K) for b in near[a].tolist()})
    joined = [pair for pair in pairs if meet(parts[pair[0]], parts[pair[1]])]
    rows, columns = np.array(joined, int).reshape(-1, 2).T
    which = connected_components(coo_matrix((np.ones(len(joined)), (rows, columns)), (K, K)), directed=False)[1]
    groups = [np.flatnonzero(which == one).tolist() for one in range(which.max() + 1)]
    return [group for group in groups if len(group) > 1]


def meet(A: np.ndarray, B: np.ndarray) -> bool:
    """Whether the rows between the centres of two clusters are no fewer at the border than on the rest of the way.

    They are counted along the direction that tells the clusters apart best (Fisher's).
    """
    within = np.cov(np.concatenate([A - A.mean(0), B - B.mean(0)]).T, bias=True).reshape(A.shape[1], -1)
    within = within + 0.1 * max(np.trace(within) / len(within), 1e-9) * np.eye(len(within))
    step = B.mean(0) - A.mean(0)
    along = np.linalg.solve(within, step)
    length = step @ along
    if length <= 0:
        return False
    a, b = ((part - A.mean(0)) @ along / length for part in (A, B))
    border = np.clip((np.quantile(a, 0.95) + np.quantile(b, 0.05)) / 2, WINDOW / 2, 1 - WINDOW / 2)
    way = np.concatenate([a, b])
    way = way[(way > 0) & (way < 1)]
    at_border = int(np.count_nonzero(np.abs(way - border) < WINDOW / 2))
    return len(way) >= FEWEST and at_border >= NO_GAP * WINDOW * len(way)
