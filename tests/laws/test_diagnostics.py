"""Numbers that describe a flow, against known values."""

import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from measureflow.attention import Attention, DotProduct, Softmax
from measureflow.flows import (
    Uniform,
    cluster_count,
    entropy,
    integrate,
    interaction_energy,
    numerical_rank,
    rk4,
    support_radius,
)
from measureflow.measures import Empirical, Gaussian
from problems import masses, normal, random_covariance


@pytest.mark.parametrize("d", [1, 2, 3])
def test_entropy_of_a_gaussian_is_exact_and_that_of_its_sample_near(d, generator):
    mu = Gaussian(torch.zeros(d), random_covariance(d=d, seed=1))
    exact = 0.5 * math.log(np.linalg.det(2 * math.pi * math.e * mu.covariance.numpy()))
    assert entropy(mu).item() == pytest.approx(exact, rel=1e-12)
    sample = mu.sample(4000, generator)
    # the estimate's standard error is about sqrt(d/2 + 1/k) / sqrt(n) < 0.022, plus a bias of that size in 3-d
    assert entropy(sample).item() == pytest.approx(exact, abs=0.08)


def test_entropy_follows_masses(generator):
    """Points drawn from N(0, 4) and weighed as N(0, 1) have the entropy of N(0, 1)."""
    x = 2 * torch.randn(8000, 1, generator=generator, dtype=torch.float64)
    w = torch.exp(-(x**2) / 2 + x**2 / 8).squeeze(-1)
    exact = 0.5 * math.log(2 * math.pi * math.e)
    assert entropy(Empirical(x, w)).item() == pytest.approx(exact, abs=0.06)  # standard error about 0.02
    assert abs(entropy(Empirical(x)).item() - exact) > 0.5  # without masses it is that of N(0, 4)


def test_entropy_on_the_circle_counts_length(generator):
    angle = 2 * math.pi * torch.rand(4000, generator=generator, dtype=torch.float64)
    x = torch.stack([angle.cos(), angle.sin()], -1)
    assert entropy(Empirical(x), sphere=True).item() == pytest.approx(math.log(2 * math.pi), abs=0.05)


def test_entropy_scales_and_batches(generator):
    x = torch.randn(3, 200, 2, generator=generator, dtype=torch.float64)
    values = entropy(Empirical(x))
    assert values.shape == (3,)
    torch.testing.assert_close(entropy(Empirical(5 * x)) - values, torch.full((3,), 2 * math.log(5)).double())
    torch.testing.assert_close(values[1], entropy(Empirical(x[1])))


def test_entropy_of_coincident_points_is_minus_infinity_and_padding_has_no_say():
    assert entropy(Empirical(torch.zeros(6, 2))).item() == -math.inf
    clouds = [normal(20, 2, seed=1), normal(30, 2, seed=2)]
    torch.testing.assert_close(entropy(Empirical.ragged(clouds))[0], entropy(Empirical(clouds[0])))


def test_interaction_energy_is_half_a_double_sum():
    x, w = normal(2, 7, 2, seed=1), masses(2, 7, seed=2)
    energy = interaction_energy(Empirical(x, w), lambda a, b: DotProduct()(a, b).exp())
    for b in range(2):
        total = sum(w[b, i] * w[b, j] * math.exp(x[b, i] @ x[b, j]) for i in range(7) for j in range(7))
        assert energy[b].item() == pytest.approx(float(total) / 2, rel=1e-12)


@pytest.mark.parametrize("rank", [0, 1, 3, 4])
def test_numerical_rank_of_products(rank):
    u = normal(5, 4, rank, seed=rank)
    assert numerical_rank(u @ u.mT).tolist() == [rank] * 5


def test_numerical_rank_of_a_small_matrix_counts_what_is_left_of_one():
    assert numerical_rank(1e-9 * torch.eye(3)).item() == 0
    assert numerical_rank(1e9 * torch.diag(torch.tensor([1.0, 1e-5, 1e-7])).double()).item() == 2


def brute_force_count(x: np.ndarray, radius: float) -> int:
    """Groups by repeated merging."""
    near, labels = cdist(x, x) <= radius, np.arange(len(x))
    while (new := np.where(near, labels, len(x)).min(1)).tolist() != labels.tolist():
        labels = new
    return len(set(labels.tolist()))


@pytest.mark.parametrize("radius", [0.05, 0.5, 1.0, 10.0])
def test_cluster_count_equals_brute_force_on_a_grid(radius):
    """On multiples of a tenth of the radius nothing is snapped, so the count is exact."""
    cells = (normal(3, 60, 2, seed=1) * 10 / radius).round()
    counts = [brute_force_count(cloud, 10.0) for cloud in cells.numpy()]
    assert cluster_count(Empirical(cells * radius / 10), radius).tolist() == counts


def test_cluster_count_leaves_out_points_of_no_mass():
    mu = Empirical([[0.0], [5.0], [9.0]], weights=[1.0, 0.0, 1.0])
    assert cluster_count(mu, 1.0).item() == 2


@pytest.mark.parametrize("scale", [1.0, -1.0])
def test_support_grows_no_faster_than_the_norm_of_v(scale):
    """R(t) <= e^{|V| t} R(0) [Castin 2025, Theorem 3.1]."""
    V = scale * normal(2, 2, seed=3)
    path = integrate(Attention(DotProduct(), Softmax(), V), Empirical(normal(4, 20, 2, seed=1)), Uniform(2.0, 40), rk4)
    speed = torch.linalg.matrix_norm(V, 2).item()
    for t, state in zip(path.times, path, strict=True):
        assert (support_radius(state) <= support_radius(path[0]) * math.exp(speed * t) * (1 + 1e-9)).all()  # rounding


def test_support_radius_leaves_out_points_of_no_mass():
    assert support_radius(Empirical([[3.0, 4.0], [30.0, 40.0]], weights=[1.0, 0.0])).item() == 5.0
