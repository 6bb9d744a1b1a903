"""Optimal transport within each position, for masked attention."""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor

from measureflow.measures.empirical import Empirical
from measureflow.measures.transport.exact import wasserstein2


def conditional_wasserstein2(mu: Empirical, nu: Empirical) -> Tensor:
    r"""Squared conditional W2 of measures on positions and space [Castin 2025, Definition 3.2].

    .. math:: d(\bar\mu, \bar\nu)^2 = \int_0^1 W_2(\mu^\tau, \nu^\tau)^2\, d\theta(\tau)

    The first coordinate is the position tau; both measures must give each position the same mass theta. Points at
    equal positions form a slice, and each slice is transported exactly. One measure at a time, not a batch.

    >>> mu = Empirical([[0.0, 0.0], [1.0, 0.0]])
    >>> conditional_wasserstein2(mu, Empirical([[0.0, 3.0], [1.0, 4.0]]))
    tensor(12.5000)
    """
    (tau, w, x), (sigma, v, y) = _sliced("mu", mu), _sliced("nu", nu)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"nu must have the dimension of mu, {x.shape[-1] + 1}, got {y.shape[-1] + 1}")
    total = x.new_zeros(())
    for here, there in _stacks(tau, w, sigma, v):
        cost = wasserstein2(x[here], y[there], weights=w[here], atom_weights=v[there]).cost
        total = total + (w[here].sum(-1) * cost).sum()
    return total


def _stacks(tau: Tensor, w: Tensor, sigma: Tensor, v: Tensor):
    """Indices (s, n), (s, m) of the slices of mu and nu at s positions, for each pair of sizes (n, m) that occurs."""
    (positions, mine), (others, yours) = _slices(tau), _slices(sigma)
    if not torch.equal(positions, others):
        raise ValueError("mu and nu must have the same time marginal: their positions differ")
    stacks = defaultdict(list)
    for position, here, there in zip(positions, mine, yours, strict=True):
        if not torch.isclose(w[here].sum(), v[there].sum(), rtol=1e-5, atol=1e-9):  # sums of float32 probabilities
            raise ValueError(f"mu and nu must have the same time marginal: masses differ at {float(position):g}")
        stacks[len(here), len(there)].append((here, there))
    return [tuple(map(torch.stack, zip(*pairs, strict=True))) for pairs in stacks.values()]


def _slices(tau: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The distinct positions, and for each the indices of the points there."""
    positions, counts = torch.unique(tau, return_counts=True)
    return positions, tau.argsort(stable=True).split(counts.tolist())


def _sliced(name: str, mu: Empirical) -> tuple[Tensor, Tensor, Tensor]:
    """Positions, probabilities and places of the points that have mass."""
    if not isinstance(mu, Empirical) or mu.points.ndim != 2 or mu.d < 2:
        raise ValueError(f"{name} must be one Empirical of positions and at least one coordinate, not a batch")
    kept = mu.weights > 0
    return mu.points[kept, 0].detach(), mu.probabilities[kept], mu.points[kept, 1:]
