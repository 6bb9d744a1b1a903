"""Weighted points."""

import numpy as np
import pytest
import torch

from measureflow.measures import Empirical
from problems import masses, normal


def test_moments_equal_numpy():
    x, w = normal(3, 7, 2, seed=1), masses(3, 7, seed=2)
    mu = Empirical(x, w)
    torch.testing.assert_close(mu.mass, w.sum(-1))
    torch.testing.assert_close(mu.probabilities.sum(-1), torch.ones(3, dtype=torch.float64))
    for b in range(3):
        mean = np.average(x[b], axis=0, weights=w[b])
        covariance = np.cov(x[b].T, aweights=w[b], ddof=0)
        np.testing.assert_allclose(mu.mean[b], mean, rtol=1e-12, atol=1e-12)  # rounding
        np.testing.assert_allclose(mu.covariance[b], covariance, rtol=1e-12, atol=1e-12)


def test_masses_default_to_one_nth_and_broadcast():
    assert Empirical(normal(2, 4, 3)).weights.tolist() == [[0.25] * 4] * 2
    assert Empirical(normal(2, 4, 3)).uniform
    assert Empirical(normal(2, 4, 3), 1.0).weights.tolist() == [[1.0] * 4] * 2
    assert Empirical(normal(2, 4, 3), [1, 2, 3, 4]).weights[1].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("points", "dtype"),
    [
        ([[1, 2], [3, 4]], torch.float32),
        (np.ones((2, 2)), torch.float64),
        (np.ones((2, 2), dtype=np.float32), torch.float32),
        (torch.ones(2, 2, dtype=torch.int64), torch.float32),
        (torch.ones(2, 2, dtype=torch.bfloat16), torch.bfloat16),
    ],
    ids=["lists", "float64", "float32", "integers", "bfloat16"],
)
def test_numbers_of_any_kind_become_floats(points, dtype):
    mu = Empirical(points, weights=[1, 3])
    assert mu.points.dtype == mu.weights.dtype == dtype


def test_ragged_pads_by_points_of_no_mass():
    clouds = [normal(n, 2, seed=n) for n in (3, 1, 5)]
    mu = Empirical.ragged(clouds, weights=[[1, 2, 3], [4], [1, 1, 1, 1, 2]])
    assert mu.points.shape == (3, 5, 2)
    for i, x in enumerate(clouds):
        assert torch.equal(mu.points[i, : len(x)], x)
        assert (mu.weights[i, len(x) :] == 0).all()
    assert mu.mass.tolist() == [6, 4, 6]
    torch.testing.assert_close(Empirical.ragged(clouds).mean[0], clouds[0].mean(0))


def test_moved_keeps_masses():
    mu = Empirical(normal(4, 2), [1.0, 2.0, 3.0, 4.0])
    assert torch.equal(mu.moved(mu.points + 1).weights, mu.weights)
    assert Empirical(normal(4, 2)).moved(normal(4, 2)).uniform


def test_to_changes_both_parts():
    single = Empirical(normal(4, 2), masses(4)).to(torch.float32)
    assert single.points.dtype == single.weights.dtype == torch.float32
    assert Empirical(normal(4, 2)).to(torch.float32).uniform


def test_repr_says_what_it_is():
    assert repr(Empirical(normal(3, 5, 2))) == "Empirical(3 of n=5, d=2, uniform)"
    assert repr(Empirical(normal(5, 2), 1.0)) == "Empirical(n=5, d=2)"
