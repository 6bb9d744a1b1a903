"""What the trained model is held against: Lloyd's algorithm and the spectral start, for a batch of sets at once."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import one_hot


def plus_plus(points: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """First centres (B, k, d) by k-means++ from points (B, N, d), greedy as scikit-learn's.

    Of 2 + log k points drawn by their squared distance from the centres so far, the one that lowers the sum of
    squared distances most is taken.
    """
    rows, trials = torch.arange(len(points)), 2 + int(math.log(k))
    first = torch.randint(points.shape[1], (len(points),), generator=generator)
    centers = points[rows, first][:, None]
    for _ in range(k - 1):
        far = torch.cdist(points, centers).square().amin(-1)
        drawn = torch.multinomial(far + 1e-12, trials, generator=generator)  # never all zero
        tried = points.gather(1, drawn[..., None].expand(-1, -1, points.shape[-1]))
        left = torch.minimum(far[..., None], torch.cdist(points, tried).square()).sum(1)  # (B, trials)
        best = drawn.gather(1, left.argmin(-1, keepdim=True))[:, 0]
        centers = torch.cat([centers, points[rows, best][:, None]], 1)
    return centers


def lloyd(points: Tensor, centers: Tensor, n_iterations: int) -> Tensor:
    """Labels (B, N) after ``n_iterations`` updates of the centres (B, k, d); an empty cluster keeps its centre."""
    k = centers.shape[1]
    labels = torch.cdist(points, centers).argmin(-1)
    for _ in range(n_iterations):
        member = one_hot(labels, k).to(points)
        count = member.sum(1)[..., None]
        centers = torch.where(count > 0, member.mT @ points / count.clamp_min(1), centers)
        before, labels = labels, torch.cdist(points, centers).argmin(-1)
        if torch.equal(before, labels):  # all sets are at rest
            break
    return labels


def lloyd_from_plus_plus(points: Tensor, k: int, generator: torch.Generator, n_iterations: int = 100) -> Tensor:
    """scikit-learn's KMeans with one start: k-means++, then Lloyd to the end."""
    return lloyd(points, plus_plus(points, k, generator), n_iterations)


def best_lloyd(points: Tensor, k: int, generator: torch.Generator, n_starts: int) -> Tensor:
    """scikit-learn's KMeans with several starts: each set keeps the labels with the least sum of squares."""
    tried = torch.stack([lloyd_from_plus_plus(points, k, generator) for _ in range(n_starts)])
    best = torch.stack([sum_of_squares(points, labels, k) for labels in tried]).argmin(0)
    return tried[best, torch.arange(len(points))]


def sum_of_squares(points: Tensor, labels: Tensor, k: int) -> Tensor:
    """Squared distances to the means of the clusters, summed over each set, (B,)."""
    member = one_hot(labels, k).to(points)
    means = member.mT @ points / member.sum(1)[..., None].clamp_min(1)
    return (points - member @ means).square().sum((-2, -1))


def spectral(points: Tensor, k: int, generator: torch.Generator, n_iterations: int = 20) -> Tensor:
    """Algorithm 2: Lloyd from k-means++ on the top k eigenvectors of the scatter, not centred, as printed."""
    _, vectors = torch.linalg.eigh(points.mT @ points)
    return lloyd_from_plus_plus(points @ vectors[..., -min(k, points.shape[-1]) :], k, generator, n_iterations)
