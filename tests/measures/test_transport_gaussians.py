"""Entropic, Gaussian and conditional transport against each other and against what is known exactly."""

import math

import pytest
import torch

from measureflow.measures import Empirical, Gaussian
from measureflow.measures.transport.bures import bures_wasserstein2, entropic_bures
from measureflow.measures.transport.conditional import conditional_wasserstein2
from measureflow.measures.transport.entropic import sinkhorn
from measureflow.measures.transport.exact import wasserstein2

D = torch.float64


def cloud(*shape, seed=0):
    return torch.randn(*shape, dtype=D, generator=torch.Generator().manual_seed(seed))


def gaussian(d: int, seed: int) -> Gaussian:
    A = cloud(d, d, seed=seed)
    return Gaussian(cloud(d, seed=seed + 100), A @ A.mT / d)


def on_grid(s: float, half_width: float = 7.0, n: int = 401) -> tuple[torch.Tensor, torch.Tensor]:
    """A one-dimensional normal of variance s as masses on a fine grid: exact to rounding for smooth integrands."""
    x = torch.linspace(-half_width, half_width, n, dtype=D) * math.sqrt(s)
    w = torch.exp(-x.square() / (2 * s))
    return x[:, None], w / w.sum()


def test_sinkhorn_has_the_right_margins_and_reports_them():
    w, v = cloud(7, seed=1).exp(), cloud(3, seed=2).exp()
    W = sinkhorn(cloud(7, 2), cloud(3, 2, seed=3), epsilon=0.5, weights=w, atom_weights=v)
    assert W.converged
    torch.testing.assert_close(W.plan().sum(-1), w / w.sum(), rtol=0, atol=1e-8)
    torch.testing.assert_close(W.plan().sum(-2), v / v.sum(), rtol=0, atol=1e-12)
    assert W.error < 1e-8


def test_sinkhorn_tends_to_the_exact_cost():
    x, y, w = cloud(6, 2), cloud(3, 2, seed=3), cloud(6, seed=5).exp()  # unequal masses: one optimal plan
    exact = wasserstein2(x, y, weights=w).cost
    gaps = [float(sinkhorn(x, y, weights=w, epsilon=eps, max_iter=100_000).cost - exact) for eps in (3.0, 1.0, 0.3)]
    assert gaps[0] > gaps[1] > gaps[2] >= -1e-9
    assert gaps[2] < 0.1 * gaps[0]


def test_sinkhorn_gradient_is_that_of_its_objective():
    x, y = cloud(5, 2).requires_grad_(), cloud(3, 2, seed=3)
    objective = lambda x: sinkhorn(x, y, epsilon=0.7, tol=1e-13).regularised  # noqa: E731
    # the entropy is held fixed in the graph, so compare with differences of the whole objective
    objective(x).backward()
    step, slope = 1e-5, torch.zeros_like(x)
    for i in range(5):
        for j in range(2):
            e = torch.zeros_like(x)
            e[i, j] = step
            slope[i, j] = (objective((x + e).detach()) - objective((x - e).detach())) / (2 * step)
    torch.testing.assert_close(x.grad, slope, rtol=1e-6, atol=1e-8)


def test_sinkhorn_says_when_it_has_not_converged():
    with pytest.warns(RuntimeWarning, match="max_iter=2") as caught:
        W = sinkhorn(cloud(6, 2), cloud(3, 2, seed=3), epsilon=0.01, max_iter=2)
    assert not W.converged
    assert caught[0].filename == __file__


@pytest.mark.parametrize("d", [1, 2, 5])
def test_bures_is_a_squared_distance(d):
    a, b = gaussian(d, 1), gaussian(d, 2)
    torch.testing.assert_close(bures_wasserstein2(a, b), bures_wasserstein2(b, a))
    assert abs(bures_wasserstein2(a, a)) < 1e-7  # the root of a rounding error of 1e-16
    shifted = Gaussian(a.mean + 2.0, a.covariance)
    torch.testing.assert_close(bures_wasserstein2(a, shifted), torch.tensor(4.0 * d, dtype=D), rtol=0, atol=1e-6)


def test_bures_of_commuting_covariances_is_that_of_their_roots():
    s, t = torch.tensor([1.0, 4.0, 0.0], dtype=D), torch.tensor([9.0, 0.25, 1.0], dtype=D)  # one of low rank
    zero = torch.zeros(3, dtype=D)
    expected = (s.sqrt() - t.sqrt()).square().sum()
    torch.testing.assert_close(bures_wasserstein2(Gaussian(zero, s.diag()), Gaussian(zero, t.diag())), expected)


def test_bures_is_batched():
    a = Gaussian(torch.zeros(4, 2, dtype=D), torch.eye(2, dtype=D))
    assert bures_wasserstein2(a, gaussian(2, 3)).shape == (4,)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_entropic_bures_equals_sinkhorn_on_a_fine_grid(epsilon):
    (x, w), (y, v) = on_grid(1.0), on_grid(2.5)
    W = sinkhorn(x, y, epsilon=epsilon, weights=w, atom_weights=v, tol=1e-12)
    zero = torch.zeros(1, dtype=D)
    closed = entropic_bures(Gaussian(zero, torch.eye(1, dtype=D)), Gaussian(zero, 2.5 * torch.eye(1, dtype=D)), epsilon)
    torch.testing.assert_close(closed, W.regularised, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("d", [1, 3])
def test_entropic_bures_tends_to_bures_and_to_the_product(d):
    a, b = gaussian(d, 1), gaussian(d, 2)
    torch.testing.assert_close(entropic_bures(a, b, 1e-7), bures_wasserstein2(a, b), rtol=0, atol=1e-4)
    apart = (a.mean - b.mean).square().sum() + torch.trace(a.covariance) + torch.trace(b.covariance)
    torch.testing.assert_close(entropic_bures(a, b, 1e7), apart, rtol=1e-5, atol=0)


def test_conditional_distance_is_the_exact_one_slice_by_slice():
    tau = torch.tensor([0.0, 0.0, 0.5, 0.5, 0.5, 1.0], dtype=D)
    x, y = cloud(6, 2), cloud(6, 2, seed=4)
    w = torch.tensor([1.0, 2.0, 1.0, 1.0, 1.0, 3.0], dtype=D)
    mu, nu = (Empirical(torch.cat([tau[:, None], z], 1), w) for z in (x, y))
    expected = sum(
        w[s].sum() / w.sum() * wasserstein2(x[s], y[s], weights=w[s], atom_weights=w[s]).cost
        for s in (slice(0, 2), slice(2, 5), slice(5, 6))
    )
    torch.testing.assert_close(conditional_wasserstein2(mu, nu), expected)
    free = wasserstein2(mu.points[:, 1:], nu.points[:, 1:], weights=w, atom_weights=w).cost
    assert conditional_wasserstein2(mu, nu) >= free - 1e-12  # it has fewer plans to choose from


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: sinkhorn(cloud(3, 2), cloud(2, 2), epsilon=0.0), "epsilon"),
        (lambda: sinkhorn(cloud(3, 2) * torch.nan, cloud(2, 2), epsilon=1.0), "points"),
        (lambda: entropic_bures(gaussian(2, 1), gaussian(2, 2), -1.0), "epsilon"),
        (lambda: bures_wasserstein2(gaussian(2, 1), gaussian(3, 1)), "dimension"),
        (lambda: bures_wasserstein2(cloud(3, 2), gaussian(3, 1)), "mu"),
        (lambda: conditional_wasserstein2(Empirical(cloud(3, 1)), Empirical(cloud(3, 1))), "mu"),
        (lambda: conditional_wasserstein2(Empirical(cloud(3, 2)), Empirical(cloud(3, 2, seed=9))), "time marginal"),
        (
            lambda: conditional_wasserstein2(
                Empirical([[0.0, 1.0], [1.0, 1.0]], [1, 3]), Empirical([[0.0, 1.0], [1.0, 1.0]], [3, 1])
            ),
            "time marginal",
        ),
    ],
)
def test_bad_input_is_named(call, word):
    with pytest.raises(ValueError, match=word):
        call()
