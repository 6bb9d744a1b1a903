"""Cross entropy for clusters in any order: one linear assignment for each set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from torch.nn.functional import one_hot

from measureflow.measures.he_mixtures import LabelledSets

Start = Callable[[Tensor, int], Tensor]  # points (B, N, d), k -> first labels (B, N)


def pair_costs(logits: Tensor, labels: Tensor) -> Tensor:
    r"""The cost of calling class c by output l, :math:`C_{cl} = -\frac1N \sum_{i: z_i = c} \log p_{il}`, (\*b, k, k).

    A permutation's cross entropy is :math:`\sum_c C_{c\pi(c)}`: it is a sum over pairs.
    """
    k = logits.shape[-1]
    if labels.shape != logits.shape[:-1]:
        raise ValueError(f"labels must have shape {tuple(logits.shape[:-1])}, got {tuple(labels.shape)}")
    if labels.numel() and (int(labels.min()) < 0 or int(labels.max()) >= k):
        raise ValueError(f"labels must lie in 0..{k - 1}, the outputs there are, got up to {int(labels.max())}")
    member = one_hot(labels, k).to(logits.dtype)
    return -member.mT @ torch.log_softmax(logits, -1) / logits.shape[-2]


def best_names(costs: Tensor) -> Tensor:
    r"""The permutation :math:`\pi` of least :math:`\sum_c C_{c\pi(c)}` for each matrix, (\*b, k)."""
    flat = costs.detach().reshape(-1, *costs.shape[-2:]).double().cpu().numpy()
    names = np.stack([linear_sum_assignment(c)[1] for c in flat])
    return torch.as_tensor(names, device=costs.device).reshape(costs.shape[:-1])


def assignment_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    r"""The least cross entropy over all namings [He 2025, 4], :math:`\min_\pi -\frac1N \sum_i \log p_{i\pi(z_i)}`.

    ``logits`` (\*b, N, k), ``labels`` (\*b, N); the result has shape (\*b). The minimum over k! permutations is one
    linear assignment of the `pair_costs`, exact for every k.

    >>> logits = torch.tensor([[9.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    >>> [round(float(assignment_cross_entropy(logits, torch.tensor(z))), 6) for z in ([0, 0, 1], [1, 1, 0])]
    [0.000123, 0.000123]
    """
    costs = pair_costs(logits, labels)
    names = best_names(costs)
    return costs.gather(-1, names[..., None]).sum((-2, -1))


def naming_loss(model: nn.Module, sets: LabelledSets, start: Start | None = None) -> Tensor:
    """The mean `assignment_cross_entropy` of the sets; ``start`` makes the first labels of a model with context."""
    first = None if start is None else start(sets.points, sets.centers.shape[1])
    return assignment_cross_entropy(model(sets.points, first), sets.labels).mean()
