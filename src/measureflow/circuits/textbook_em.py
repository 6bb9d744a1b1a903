"""Algorithms 1 and 2 of He 2025 in plain NumPy: the oracles; nothing of the library is imported here."""

from __future__ import annotations

import numpy as np


def nearest(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The index of the nearest centre for each point, the first of equals, eq. (2)."""
    return ((points[:, None] - centres[None]) ** 2).sum(-1).argmin(1)


def cluster_means(points: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """The mean of each cluster; an empty one (0/0 in the paper) gets the grand mean, as the circuits do.

    >>> cluster_means(np.array([[0.0], [2.0], [10.0]]), np.array([0, 0, 2]), 3).ravel()
    array([ 1.,  4., 10.])
    """
    grand = points.mean(0)
    return np.stack([points[labels == j].mean(0) if (labels == j).any() else grand for j in range(k)])


def lloyd_path(points: np.ndarray, centres: np.ndarray, n_iterations: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Algorithm 1: (labels, centres) at the start and after each iteration.

    >>> x = np.array([[0.0], [1.0], [10.0]])
    >>> labels, centres = lloyd_path(x, x[:2], 2)[-1]
    >>> labels, centres.ravel()
    (array([0, 0, 1]), array([ 0.5, 10. ]))
    """
    path = [(nearest(points, centres), centres)]
    for _ in range(n_iterations):
        means = cluster_means(points, path[-1][0], len(centres))
        path.append((nearest(points, means), means))
    return path


def lloyd(points: np.ndarray, centres: np.ndarray, n_iterations: int) -> np.ndarray:
    """The labels after Algorithm 1."""
    return lloyd_path(points, centres, n_iterations)[-1][0]


def plus_plus(points: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """k of the points by k-means++: the next is drawn by its squared distance from those chosen."""
    chosen = [int(rng.integers(len(points)))]
    for _ in range(k - 1):
        far = ((points[:, None] - points[chosen][None]) ** 2).sum(-1).min(1)
        chosen.append(
            int(rng.choice(len(points), p=far / far.sum())) if far.sum() > 0 else int(rng.integers(len(points)))
        )
    return points[chosen]


def spectral_start(points: np.ndarray, k: int, rng: np.random.Generator, n_iterations: int = 20) -> np.ndarray:
    """Algorithm 2: project on the top k eigenvectors of the scatter, then k-means++ and Lloyd there; labels.

    As printed the scatter is not centred. The projection has min(k, d) columns.
    """
    _, vectors = np.linalg.eigh(points.T @ points)
    projected = points @ vectors[:, ::-1][:, :k]
    return lloyd(projected, plus_plus(projected, k, rng), n_iterations)
