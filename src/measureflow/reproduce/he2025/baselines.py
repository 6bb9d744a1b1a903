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
    centres = points[rows, first][:, None]
    for _ in range(k - 1):
        far = torch.cdist(points, centres).square().amin(-1)
        drawn = torch.multinomial(far + 1e-12, trials, generator=generator)  # never all zero
        tried = points.gather(1, drawn[..., None].expand(-1, -1, points.shape[-1]))
        left = torch.minimum(far[..., None], torch.cdist(points, tried).square()).sum(1)  # (B, trials)
        best = drawn.gather(1, left.argmin(-1, keepdim=True))[:, 0]
        centres = torch.cat([centres, points[rows, best][:, None]], 1)
    return centres


def lloyd(points: Tensor, centres: Tensor, n_iterations: int) -> Tensor:
    """Labels (B, N) after ``n_iterations`` updates of the centres (B, k, d); an empty cluster keeps its centre."""
    k = centres.shape[1]
    labels = torch.cdist(points, centres).argmin(-1)
    for _ in range(n_iterations):
        member = one_hot(labels, k).to(points)
        count = member.sum(1)[..., None]
        centres = torch.where(count > 0, member.mT @ points / count.clamp_min(1), centres)
        labels = torch.cdist(points, centres).argmin(-1)
    return labels


def lloyd_from_plus_plus(points: Tensor, k: int, generator: torch.Generator, n_iterations: int = 100) -> Tensor:
    """scikit-learn's KMeans with one start: k-means++, then Lloyd to the end."""
    return lloyd(points, plus_plus(points, k, generator), n_iterations)


def spectral(points: Tensor, k: int, generator: torch.Generator, n_iterations: int = 20) -> Tensor:
    """Algorithm 2: Lloyd from k-means++ on the top k eigenvectors of the scatter, not centred, as printed."""
    _, vectors = torch.linalg.eigh(points.mT @ points)
    return lloyd_from_plus_plus(points @ vectors[..., -min(k, points.shape[-1]) :], k, generator, n_iterations)
