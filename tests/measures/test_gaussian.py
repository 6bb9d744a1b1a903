"""Normal measures."""

import math

import pytest
import torch
from scipy.stats import multivariate_normal

from measureflow.measures import Gaussian
from measureflow.measures.gaussian import matrix_sqrt
from problems import normal, random_covariance


@pytest.mark.parametrize("d", [1, 2, 5])
def test_entropy_equals_scipy(d):
    S = random_covariance(3, d=d, seed=d)
    mu = Gaussian(normal(3, d, seed=9), S)
    expected = [multivariate_normal(mu.mean[i].numpy(), S[i].numpy()).entropy() for i in range(3)]
    torch.testing.assert_close(mu.entropy(), torch.tensor(expected, dtype=torch.float64))


def test_entropy_of_a_degenerate_law_is_minus_infinity():
    assert Gaussian(torch.zeros(2), torch.diag(torch.tensor([1.0, 0.0]))).entropy().item() == -math.inf


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_square_root_squares_to_the_matrix(rank):
    u = normal(4, 3, rank, seed=rank)
    S = u @ u.mT
    root = matrix_sqrt(S)
    torch.testing.assert_close(root @ root, S, rtol=1e-12, atol=1e-12)  # rounding
    torch.testing.assert_close(root, root.mT, rtol=0, atol=1e-14)
    assert (torch.linalg.eigvalsh(root) > -1e-7).all()  # the square root of rounding


def test_samples_have_its_moments(generator):
    mu = Gaussian(normal(2, 3, seed=1), random_covariance(2, d=3, seed=2))
    sample = mu.sample(50_000, generator)
    assert sample.points.shape == (2, 50_000, 3)
    # entries of about one have standard errors of about 1 / sqrt(50000) = 0.0045
    torch.testing.assert_close(sample.mean, mu.mean, rtol=0, atol=0.03)
    torch.testing.assert_close(sample.covariance, mu.covariance, rtol=0, atol=0.04)


def test_samples_of_a_flat_law_are_flat_and_seeded():
    u = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    mu = Gaussian(torch.zeros(2), u @ u.mT)
    x, again = (mu.sample(10, torch.Generator().manual_seed(1)).points for _ in range(2))
    assert torch.equal(x, again)
    assert (x[:, 1] - 2 * x[:, 0]).abs().max() < 1e-7  # the square root of rounding


def test_mean_and_covariance_broadcast():
    mu = Gaussian(torch.zeros(4, 2), torch.eye(2))
    assert mu.covariance.shape == (4, 2, 2)
    assert Gaussian(torch.zeros(2), torch.eye(2).expand(3, 2, 2)).mean.shape == (3, 2)
    assert repr(mu) == "Gaussian(4 of d=2)"
    assert mu.to(torch.float64).covariance.dtype == torch.float64
