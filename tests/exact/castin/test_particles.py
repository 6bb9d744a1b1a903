"""Particles under Castin's flows: how fast their support grows, and when they blow up."""

import math

import pytest
import torch

from measureflow.attention import (
    Attention,
    DotProduct,
    NegativeSquaredDistance,
    TimeDependent,
)
from measureflow.flows import Uniform, dopri5, integrate, support_radius
from measureflow.measures import Empirical
from problems import TIGHT, seeded

F64 = torch.float64


@pytest.mark.parametrize("score", [DotProduct, NegativeSquaredDistance])
def test_support_grows_no_faster_than_the_bound(score):
    """Theorem 3.1: |x| <= exp(int |V(s)| ds) R0, with V(t) that turns and grows."""

    def value(t):
        t = torch.as_tensor(float(t), dtype=F64)
        return (0.5 + t) * torch.stack([torch.stack([t.cos(), -t.sin()]), torch.stack([t.sin(), t.cos()])])

    field = TimeDependent(lambda t: Attention(score(), value=value(t)))
    x = torch.randn(50, 2, generator=seeded(15), dtype=F64)
    path = integrate(field, Empirical(x), Uniform(1.5, 6), dopri5)
    for t, mu in zip(path.times, path, strict=True):
        t = float(torch.as_tensor(t))
        assert support_radius(mu) <= math.exp(0.5 * t + t * t / 2) * support_radius(path[0]) * (1 + 1e-9)
    one = Empirical(x[:1])  # a single token feels V alone: the bound is reached up to the turning
    straight = integrate(Attention(score(), value=0.7 * torch.eye(2, dtype=F64)), one, [2.0], TIGHT)
    assert float(support_radius(straight[-1]) / support_radius(one)) == pytest.approx(math.exp(1.4), rel=1e-8)


@pytest.mark.parametrize("attention", ["relu", "linear"])
def test_blow_up_of_particles_is_an_event_with_a_time(attention):
    from measureflow.simulate import simulate

    path = simulate(attention, n=20, time=50.0, n_layers=5)
    assert path.divergence == "finite time"
    assert 0 < float(path.blow_up_time) < 50
    assert torch.isfinite(path.points).all()
