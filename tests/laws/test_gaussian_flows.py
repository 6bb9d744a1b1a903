"""Flows of Gaussians against their exact answers: covariances, blow-up times, and what leaves for infinity."""

import math

import numpy as np
import pytest
import torch

from measureflow.attention import (
    Attention,
    DotProduct,
    Exp,
    NegativeSquaredDistance,
    Sinkhorn,
    TimeDependent,
)
from measureflow.flows import Uniform, dopri5, integrate, numerical_rank
from measureflow.measures import Empirical, Gaussian
from problems import (
    LINES,
    blind,
    normal,
    plane_covariance,
    plane_flows,
)


@pytest.mark.parametrize("name", LINES)
def test_a_normal_law_on_a_line_follows_proposition_4_3(name):
    flow = LINES[name]
    T = min(1.0, 0.8 * flow.blow_up_time)
    end = integrate(flow.field, flow.start, Uniform(T, 4), dopri5)[-1]
    # matrices of lists are single precision, so a and v are right to 1e-7
    assert end.covariance.item() == pytest.approx(flow.variance(T), rel=2e-6)
    assert end.mean.item() == pytest.approx(flow.mean(T), rel=2e-6)


@pytest.mark.parametrize("name", LINES)
def test_blow_up_on_a_line_comes_when_proposition_4_3_says(name):
    flow = LINES[name]
    path = integrate(flow.field, flow.start, [min(3.0, 2 * flow.blow_up_time)], dopri5)
    if math.isinf(flow.blow_up_time):
        assert path.blow_up_time.item() == math.inf
        assert path.divergence == "none"
    else:
        assert path.blow_up_time.item() == pytest.approx(flow.blow_up_time, rel=1e-6)
        assert path.divergence == "finite time"


@pytest.mark.parametrize("d", [2, 3])
def test_blow_up_comes_when_proposition_4_4_says(d):
    A, start, times = plane_flows(60, d, seed=d)
    T = 5.0
    path = integrate(Attention(DotProduct(A)), start, [T], dopri5)
    early, late = times < 0.99 * T, times > 1.01 * T
    assert early.sum() >= 30
    assert late.sum() >= 3
    torch.testing.assert_close(path.blow_up_time[early], times[early], rtol=1e-6, atol=0)
    assert torch.isinf(path.blow_up_time[late]).all()
    words = np.array(path.divergence)
    assert set(words[early.numpy()]) == {"finite time"}
    assert set(words[late.numpy()]) == {"none"}


@pytest.mark.parametrize("d", [2, 4])
def test_covariance_follows_proposition_4_4(d):
    A, start, times = plane_flows(30, d, seed=d)
    T = (0.7 * times).clamp_max(2.0)
    path = integrate(Attention(DotProduct(A)), start, Uniform(T, 3), dopri5)
    exact = torch.stack([plane_covariance(A[i], start.covariance[i], T[i].item()) for i in range(30)])
    torch.testing.assert_close(path[-1].covariance, exact, rtol=1e-6, atol=1e-7)  # a hundred steps of 1e-8
    assert torch.equal(path[-1].covariance, path[-1].covariance.mT)  # exactly symmetric


def test_a_commuting_value_follows_proposition_4_4():
    V = torch.diag(torch.tensor([2.0, -0.5], dtype=torch.float64))
    A = torch.diag(torch.tensor([-0.3, 0.9], dtype=torch.float64))
    S0 = torch.diag(torch.tensor([1.5, 0.7], dtype=torch.float64))
    end = integrate(Attention(DotProduct(A), value=V), Gaussian(torch.zeros(2), S0), [1.3], dopri5)[-1]
    exact = torch.linalg.inv(torch.linalg.inv(S0) - 1.3 * (V @ A + A.mT @ V.mT))
    torch.testing.assert_close(end.covariance, exact, rtol=1e-7, atol=1e-9)  # some steps of rtol 1e-8


def test_rank_one_stays_rank_one():
    """[Castin 2025, Lemma 4.6]: and u moves by (u^T A u) V u."""
    A, V, u = 0.5 * normal(3, 3, seed=1), 0.5 * normal(3, 3, seed=2), normal(3, seed=3)
    start = Gaussian(torch.zeros(3), u[:, None] * u)
    path = integrate(Attention(DotProduct(A), value=V), start, Uniform(0.5, 5), dopri5)
    assert numerical_rank(path.covariances).tolist() == [1] * 6

    h = 1e-3  # the same equation for u itself, by a plain fourth-order method

    def slope(u):
        return (u @ A @ u) * (V @ u)

    for _ in range(500):
        k1 = slope(u)
        k2 = slope(u + h / 2 * k1)
        k3 = slope(u + h / 2 * k2)
        k4 = slope(u + h * k3)
        u = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    torch.testing.assert_close(path[-1].covariance, u[:, None] * u, rtol=1e-6, atol=1e-7)  # both are right to 1e-8


def test_distance_attention_diverges_in_infinite_time_and_clusters_when_negative():
    """[Castin 2025, Proposition 4.13], with the time a variance takes, t = (2k^2 log s - 1/s)/(4av) + constant."""
    for q, expected in ((0.9, "infinite time"), (-0.9, "none")):
        field = Attention(NegativeSquaredDistance([[q]], [[0.8]]))
        mu = Gaussian(torch.zeros(1), torch.tensor([[0.6]], dtype=torch.float64))
        path = integrate(field, mu, [1.0, 1000.0], dopri5)
        assert path.divergence == expected
        assert path.blow_up_time.item() == math.inf

        def clock(s, q=q):
            return (2 * 0.8**2 * math.log(s) - 1 / s) / (4 * q * 0.8)

        s = path[1].covariance.item()
        assert clock(s) - clock(0.6) == pytest.approx(1.0, rel=1e-6)  # single precision matrices


def test_sinkhorn_diverges_in_infinite_time_and_moves_its_mean_alone():
    """[Castin 2025, Propositions 4.15 and 4.17]."""
    field = Attention(DotProduct([[0.8]]), Sinkhorn(1.0), [[0.5]])
    mu = Gaussian(torch.tensor([0.7], dtype=torch.float64), torch.tensor([[0.6]], dtype=torch.float64))
    path = integrate(field, mu, [2.0, 300.0], dopri5)
    assert path[1].mean.item() == pytest.approx(0.7 * math.exp(0.5 * 2.0), rel=1e-7)
    assert path.divergence == "infinite time"


def test_mixed_fates_in_one_batch():
    A = torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64).reshape(3, 1, 1)
    mu = Gaussian(torch.zeros(3, 1), torch.ones(3, 1, 1, dtype=torch.float64))
    path = integrate(Attention(DotProduct(A)), mu, [0.25, 0.25, 0.25, 0.25], dopri5)
    assert path.divergence == ["finite time", "none", "none"]
    assert path.blow_up_time[0].item() == pytest.approx(0.5, rel=1e-6)
    # what blew up keeps its last finite state, the others go on
    assert torch.isfinite(path.covariances).all()
    torch.testing.assert_close(path.covariances[:, 1, 0, 0], 1 / (1 + 2 * torch.arange(5) / 4).double())
    assert (path.covariances[:, 2] == 1).all()


def test_a_start_far_from_the_origin_is_no_blow_up():
    x = 1e9 * normal(4, 2, seed=1)
    path = integrate(blind(), x, [1.0], dopri5)
    assert path.divergence == "none"
    exact = x.mean(0) + math.exp(-1) * (x - x.mean(0))
    torch.testing.assert_close(path[-1], exact, rtol=0, atol=100.0)  # a dozen steps of rtol 1e-8


def test_particles_can_blow_up_too():
    """One point on a line under linear attention: x' = x^3, gone at 1/(2 x^2)."""
    from measureflow.attention import Identity

    x = torch.tensor([[2.0]], dtype=torch.float64)
    path = integrate(Attention(normaliser=Identity()), x, [1.0], dopri5)
    assert path.blow_up_time.item() == pytest.approx(1 / 8, rel=1e-6)


def test_layers_of_their_own_are_a_field_of_time():
    """A transformer with distinct layers: layer l acts on [l, l + 1)."""
    layers = [Attention(value=normal(2, 2, seed=s)) for s in (1, 2, 3)]
    x = normal(5, 2, seed=4)
    path = integrate(TimeDependent(lambda t: layers[int(t)]), x, [1.0] * 3)
    for layer in layers:
        x = x + layer(x)
    torch.testing.assert_close(path[-1], x, rtol=0, atol=0)


def test_exp_attention_blows_up_before_it_is_large():
    """In one dimension x' = x e^{x^2} for a single point; the time left is the integral of e^{-x^2}/x."""
    start, (nodes, weights) = 1.0, np.polynomial.legendre.leggauss(200)
    x = start + (nodes + 1) / 2 * 6.0  # beyond 7 the integrand is below 1e-21
    expected = float(3.0 * (weights * np.exp(-(x**2)) / x).sum())
    path = integrate(
        Attention(normaliser=Exp()), Empirical(torch.tensor([[start]], dtype=torch.float64)), [0.05] * 20, dopri5
    )
    assert path.divergence == "finite time"
    assert float(path.blow_up_time) == pytest.approx(expected, rel=1e-6)
    assert torch.isfinite(path.points).all()
