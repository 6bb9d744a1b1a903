"""The corrected Theorem 2.1 of Zimin 2025: entropy along the flow on the sphere."""

import numpy as np
import pytest
import torch
from scipy.interpolate import CubicSpline

from measureflow.measures import Empirical
from measureflow.reproduce import reproduce
from measureflow.reproduce.zimin2025 import theorem2_1 as theorem


def circle(n=200):
    s, density = theorem.circle_start(n)
    return s, density, Empirical(torch.stack([s.cos(), s.sin()], -1), density * 2 * torch.pi / n)


@pytest.mark.parametrize("beta", [0.0, 1e-6])
def test_equality_on_the_circle_as_beta_goes_to_zero(beta):
    """The rate of the entropy of the density itself, differentiated in time, is -2 (E[mu] - E[sigma])."""
    s, density, mu = circle()
    path = theorem.flow(mu, beta, 0.4, 80)
    times = [float(t) for t in path.times]
    entropies = [float(theorem.circle_entropy(state, s, density)) for state in path]
    rates = CubicSpline(times, entropies)(times, 1)[10:-10]  # the spline is off near its ends
    bounds = np.array([float(theorem.bound(state, beta)) for state in path])[10:-10]
    assert np.abs(rates - bounds).max() < 1e-6
    assert (rates < 0).all()  # the printed bound is positive


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("beta", [0.0, 0.5, 3.0])
def test_rate_is_below_the_bound_on_particles(d, beta):
    x = torch.randn(40, d, generator=torch.Generator().manual_seed(d), dtype=torch.float64)
    x[:, 0] += 1
    mu = Empirical(x / x.norm(dim=-1, keepdim=True))
    rate, bound = float(theorem.entropy_rate(mu, beta)), float(theorem.bound(mu, beta))
    assert rate <= bound + 1e-12
    assert bound < 0
    assert beta or rate == pytest.approx(bound, abs=1e-12)  # equality for K(z) = z in every dimension


@pytest.mark.parametrize("d", [2, 3, 4])
def test_uniform_energy(d):
    """c_0 against a large sample of the sphere."""
    x = torch.randn(200_000, d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    z = x[:, 0] / x.norm(dim=-1)
    assert float(theorem.kernel(z, 2.0).mean()) == pytest.approx(theorem.uniform_mean(2.0, d), abs=0.02)


def test_reproduction(tmp_path):
    files = reproduce("zimin2025", "theorem2.1", "tiny", tmp_path)
    assert "it falls" in files[-1].read_text(encoding="utf-8")
