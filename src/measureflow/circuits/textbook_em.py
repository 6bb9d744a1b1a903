"""Algorithm 1 of He 2025 in plain NumPy: the oracle; nothing of the library is imported here."""

from __future__ import annotations

import numpy as np


def nearest(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The index of the nearest centre for each point, the first of equals, eq. (2)."""
    return ((points[:, None] - centers[None]) ** 2).sum(-1).argmin(1)


def cluster_means(points: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """The mean of each cluster; an empty one (0/0 in the paper) gets the grand mean, as the circuits do.

    >>> cluster_means(np.array([[0.0], [2.0], [10.0]]), np.array([0, 0, 2]), 3).ravel()
    array([ 1.,  4., 10.])
    """
    grand = points.mean(0)
    return np.stack([points[labels == j].mean(0) if (labels == j).any() else grand for j in range(k)])


def lloyd_path(points: np.ndarray, centers: np.ndarray, n_iterations: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Algorithm 1: (labels, centres) at the start and after each iteration.

    >>> x = np.array([[0.0], [1.0], [10.0]])
    >>> labels, centres = lloyd_path(x, x[:2], 2)[-1]
    >>> labels, centres.ravel()
    (array([0, 0, 1]), array([ 0.5, 10. ]))
    """
    path = [(nearest(points, centers), centers)]
    for _ in range(n_iterations):
        means = cluster_means(points, path[-1][0], len(centers))
        path.append((nearest(points, means), means))
    return path
