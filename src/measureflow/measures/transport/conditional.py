"""Transport that never leaves its slice of time, for masked attention."""

from __future__ import annotations

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
    positions = torch.unique(tau)
    if not torch.equal(positions, torch.unique(sigma)):
        raise ValueError("mu and nu must have the same time marginal: their positions differ")
    total = x.new_zeros(())
    for position in positions:
        here, there = tau == position, sigma == position
        theta = w[here].sum()
        if not torch.isclose(theta, v[there].sum(), rtol=1e-5, atol=1e-9):
            raise ValueError(f"mu and nu must have the same time marginal: masses differ at {float(position):g}")
        total = total + theta * wasserstein2(x[here], y[there], weights=w[here], atom_weights=v[there]).cost
    return total


def _sliced(name: str, mu: Empirical) -> tuple[Tensor, Tensor, Tensor]:
    """Positions, probabilities and places of the points that have mass."""
    if not isinstance(mu, Empirical) or mu.points.ndim != 2 or mu.d < 2:
        raise ValueError(f"{name} must be one Empirical of positions and at least one coordinate, not a batch")
    kept = mu.weights > 0
    return mu.points[kept, 0], mu.probabilities[kept], mu.points[kept, 1:]
