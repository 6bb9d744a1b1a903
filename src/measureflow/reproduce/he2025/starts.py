"""Lloyd's algorithm from several starts, of which each set keeps the best: scikit-learn's ``n_init``."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from measureflow.reproduce.he2025.baselines import lloyd_from_plus_plus


def best_lloyd(points: Tensor, k: int, generator: torch.Generator, n_starts: int) -> Tensor:
    """Labels (B, N): of several k-means++ starts the one whose sum of squares is least."""
    tried = torch.stack([lloyd_from_plus_plus(points, k, generator) for _ in range(n_starts)])
    best = torch.stack([sum_of_squares(points, labels, k) for labels in tried]).argmin(0)
    return tried[best, torch.arange(len(points))]


def sum_of_squares(points: Tensor, labels: Tensor, k: int) -> Tensor:
    """Squared distances to the means of the clusters, summed over each set, (B,)."""
    member = one_hot(labels, k).to(points)
    means = member.mT @ points / member.sum(1)[..., None].clamp_min(1)
    return (points - member @ means).square().sum((-2, -1))
