"""Castin 2025, section 5: attention as a gradient flow."""

import numpy as np
import pytest
import torch
from scipy.integrate import dblquad

from measureflow.attention import Attention, DotProduct, Sinkhorn
from measureflow.flows import (
    GradientFlow,
    InteractionEnergy,
    SinkhornEnergy,
    Uniform,
    curvature_at_dirac,
    integrate,
    rk4,
)
from measureflow.flows.state import velocity
from measureflow.measures import Empirical, Gaussian
from measureflow.reproduce.castin2025 import section5

F64 = torch.float64


def draw(seed, d=3):
    g = torch.Generator().manual_seed(seed)
    A, X = (torch.randn(d, d, generator=g, dtype=F64) for _ in range(2))
    return (A + A.T) / 2, Gaussian(torch.randn(d, generator=g, dtype=F64), X @ X.T / d + 0.1 * torch.eye(d, dtype=F64))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_bures_wasserstein_flow_is_the_sinkhorn_flow(epsilon):
    """(5.12) with V = -A = -A^T: the gradient of F_eps, with the sign and the factor 2 that (5.9) drops."""
    A, mu = draw(1)
    attention = Attention(DotProduct(A), Sinkhorn(epsilon), -A / epsilon)
    flow = GradientFlow(SinkhornEnergy(A, epsilon))
    torch.testing.assert_close(velocity(mu, attention), velocity(mu, flow), rtol=1e-5, atol=1e-12)
    ends = [integrate(field, mu, Uniform(0.5, 20), rk4)[-1].covariance for field in (attention, flow)]
    assert torch.allclose(*ends, atol=1e-10)


def test_twisted_metric_makes_softmax_a_gradient_flow():
    """(5.14) on centred Gaussians of the line: s' = -F'(s) / M(s) is 2 v a s^2, M being the metric of the distance."""
    a, v, s, h = -0.8, 0.9, 0.7, 1e-4
    metric = (section5.twisted_distance(s - h, s + h, a, v) / (2 * h)) ** 2
    slope = (section5.interaction(s + h, a) - section5.interaction(s - h, a)) / (2 * h)
    one = Attention(DotProduct(torch.tensor([[a]], dtype=F64)), value=torch.tensor([[v]], dtype=F64))
    speed = velocity(Gaussian(torch.zeros(1, dtype=F64), torch.tensor([[s]], dtype=F64)), one)[1]
    assert float(speed) == pytest.approx(-slope / metric, rel=1e-6)
    assert float(speed) == pytest.approx(2 * v * a * s**2, rel=1e-12)


def test_twisted_distance_is_a_distance_along_the_line():
    ab, bc, ac = (section5.twisted_distance(*pair, -0.8, 0.9) for pair in ((0.2, 0.5), (0.5, 0.9), (0.2, 0.9)))
    assert ab + bc == pytest.approx(ac, rel=1e-10)
    assert section5.twisted_distance(0.5, 0.2, -0.8, 0.9) == pytest.approx(ab, rel=1e-10)
    near_zero = section5.twisted_distance(1e-4, 4e-4, -0.8, 0.9)  # there the metric is that of W2 over b
    assert near_zero == pytest.approx((0.02 - 0.01) / (0.9 / 0.8) ** 0.5, rel=1e-3)


def test_an_implicit_step_lowers_the_energy_and_follows_the_flow():
    A, mu = draw(1, d=2)
    energy, centred = SinkhornEnergy(A, 1.0), Gaussian(torch.zeros(2, dtype=F64), mu.covariance)
    flow = Attention(DotProduct(A), Sinkhorn(1.0), -A)
    off = []
    for tau in (0.02, 0.01):
        step = section5.bures_step(mu.covariance, tau, energy)
        assert energy(Gaussian(centred.mean, step)) < energy(centred)
        off.append(float((step - integrate(flow, centred, Uniform(tau, 4), rk4)[-1].covariance).norm()))
    assert 3 < off[0] / off[1] < 5  # one step of order one errs as tau^2


def test_sinkhorn_energy_on_points_tends_to_that_of_the_gaussian():
    A, mu = draw(2, d=1)
    x, w = np.polynomial.hermite_e.hermegauss(40)
    points = mu.mean + torch.tensor(x)[:, None] * mu.covariance.sqrt()
    cloud = Empirical(points, torch.tensor(w / w.sum()))
    energy = SinkhornEnergy(A, 1.0)
    assert float(energy(cloud)) == pytest.approx(float(energy(mu)), abs=1e-8)


def test_sinkhorn_energy_falls_along_its_flow():
    A, mu = draw(3)
    energy = SinkhornEnergy(A, 1.0)
    flow = Attention(DotProduct(A), Sinkhorn(1.0), -A)
    values = torch.stack([energy(state) for state in integrate(flow, mu, Uniform(2.0, 40), rk4)])
    assert (values.diff() < 0).all()
    cloud = integrate(flow, mu.sample(60, torch.Generator().manual_seed(0)), Uniform(1.0, 20), rk4)
    assert (torch.stack([energy(state) for state in cloud]).diff() < 0).all()


def test_interaction_energy_against_quadrature():
    a, s, m = 0.4, 0.9, 0.3

    def density(x, y):
        return 0.5 * np.exp(a * x * y - ((x - m) ** 2 + (y - m) ** 2) / (2 * s)) / (2 * np.pi * s)

    exact = dblquad(density, -14, 14, -14, 14, epsabs=1e-11)[0]
    F = InteractionEnergy(torch.tensor([[a]], dtype=F64))
    mu = Gaussian(torch.tensor([m], dtype=F64), torch.tensor([[s]], dtype=F64))
    assert float(F(mu)) == pytest.approx(exact, abs=1e-9)
    assert torch.isinf(F(Gaussian(mu.mean, 3 * mu.covariance)))  # a s > 1: the printed |det| would give a number


def test_interaction_energy_is_the_printed_one_where_finite():
    g = torch.Generator().manual_seed(5)
    A = 0.2 * torch.randn(3, 3, generator=g, dtype=F64)
    _, mu = draw(6)
    alpha, P = mu.mean, torch.linalg.inv(mu.covariance)
    middle = (A + P).T @ torch.linalg.inv(P - A @ mu.covariance @ A.T) @ (A + P) - P
    det = torch.linalg.det(torch.eye(3, dtype=F64) - A @ mu.covariance @ A.T @ mu.covariance)
    assert torch.allclose(InteractionEnergy(A)(mu), 0.5 * (0.5 * alpha @ middle @ alpha).exp() / det.sqrt(), rtol=1e-10)


def test_interaction_energy_falls_along_softmax():
    """A symmetric, B = -V A^-1 symmetric positive definite: here V = -B A with B = I."""
    A, mu = draw(7, d=2)
    A = A / 4
    mu = Gaussian(mu.mean / 2, mu.covariance / 2)
    F, field = InteractionEnergy(A), Attention(DotProduct(A), value=-A)
    values = torch.stack([F(state) for state in integrate(field, mu, Uniform(2.0, 40), rk4)])
    assert (values.diff() < 0).all()
    cloud = integrate(field, mu.sample(80, torch.Generator().manual_seed(1)), Uniform(2.0, 40), rk4)
    assert (torch.stack([F(state) for state in cloud]).diff() < 0).all()


def test_curvature_at_a_dirac():
    """Proposition 5.4: against the energy along the geodesic x' = Bp / (2g), p' = (p.Bp) grad g / (4 g^2)."""
    V = torch.diag(torch.tensor([1.0, 2.0], dtype=F64))
    B = torch.diag(torch.tensor([0.5, 1.5], dtype=F64))
    A = -torch.linalg.inv(B) @ V  # symmetric, with B = -V A^-T

    def energy(s, x, p, steps=200):
        h = s / steps

        def slope(x, p):
            g = torch.exp(A @ x @ x)
            return B @ p / (2 * g), (p @ B @ p) * (2 * A @ x) / (4 * g)

        for _ in range(steps):
            dx, dp = slope(x, p)
            dx, dp = slope(x + h / 2 * dx, p + h / 2 * dp)
            x, p = x + h * dx, p + h * dp
        return 0.5 * torch.exp(A @ x @ x)

    for x, p in (([0.0, 0.0], [1.0, -0.4]), ([0.3, -0.2], [0.5, 1.0])):
        x, p = torch.tensor(x, dtype=F64), torch.tensor(p, dtype=F64)
        h = 1e-2
        second = (energy(h, x, p) - 2 * energy(0.0, x, p) + energy(-h, x, p)) / h**2
        assert float(curvature_at_dirac(A, V, x, p)) == pytest.approx(float(second), abs=1e-4)  # h^2 of the difference
    assert curvature_at_dirac(A, V, torch.zeros(2, dtype=F64), p) < 0
