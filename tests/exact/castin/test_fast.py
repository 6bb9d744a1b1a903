"""The fast field against the exact one, its error estimate against the error."""

import pytest
import torch

from measureflow.attention import Attention, DotProduct, Fast, NegativeSquaredDistance, Sigmoid, Softmax
from measureflow.measures import Empirical, Gaussian
from rounding import allowed, distance, moved_by_rounding

F64 = torch.float64


def cloud(n, d, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=F64)


def clusters(n, d):
    """Four clumps and a far point: boxes that are empty, and a query that no other key is near."""
    g = torch.Generator().manual_seed(3)
    centers = 3 * torch.randn(4, d, generator=g, dtype=F64)
    x = centers[torch.arange(n) % 4] + 0.2 * torch.randn(n, d, generator=g, dtype=F64)
    x[0] = 6.0
    return x


CASES = {
    "l2 in one dimension": (NegativeSquaredDistance(), 1.0, lambda: cloud(2500, 1)),
    "l2 in the plane": (NegativeSquaredDistance(), 1.0, lambda: cloud(2500, 2)),
    "dot in the plane": (DotProduct(), 1.0, lambda: cloud(2500, 2)),
    "sharp l2": (NegativeSquaredDistance(), 20.0, lambda: cloud(2500, 2)),
    "sharp dot": (DotProduct(), 4.0, lambda: cloud(2500, 2)),
    "against itself": (DotProduct(torch.eye(2), -torch.eye(2)), 1.0, lambda: cloud(2500, 2)),
    "clusters": (NegativeSquaredDistance(), 3.0, lambda: clusters(2500, 2)),
    "in space": (NegativeSquaredDistance(), 0.5, lambda: cloud(4000, 3)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("tol", [1e-4, 1e-9])
def test_error_is_within_the_estimate_and_the_estimate_within_the_tolerance(name, tol):
    score, gamma, make = CASES[name]
    x = make()
    exact = Attention(score.double(), Softmax(gamma))
    fast = Fast(exact, tol)
    scale = (x - x.mean(0)).norm(dim=-1).max()
    error = (fast(x) - exact(x)).norm(dim=-1).max() / scale
    assert fast.report.estimate <= tol
    assert error <= max(fast.report.estimate, 1e-13)


def test_it_is_fast_where_it_should_be():
    fast = Fast(Attention(NegativeSquaredDistance()))
    fast(cloud(3000, 2))
    assert fast.report.side > 0
    assert fast.report.exact == 0


def test_weights_values_and_dtype():
    x, w = cloud(3000, 2), torch.rand(3000, generator=torch.Generator().manual_seed(1), dtype=F64)
    w[:100] = 0
    exact = Attention(DotProduct(), value=torch.tensor([[0.3, -1.0], [2.0, 0.1]], dtype=F64))
    mu = Empirical(x, w)
    assert torch.allclose(Fast(exact, 1e-9)(mu), exact(mu), atol=1e-8)
    single = Fast(Attention(NegativeSquaredDistance()))(x.float())
    assert single.dtype == torch.float32
    plain = Attention(NegativeSquaredDistance())
    assert distance(single, plain(x)) <= allowed(plain(moved_by_rounding(x.float())), plain(x))


def test_heads_batches_and_other_queries():
    Q = torch.stack([torch.eye(2), -0.5 * torch.eye(2)]).double()
    heads = Attention(DotProduct(Q, torch.eye(2).double()))
    x = torch.stack([cloud(2200, 2, s) for s in (0, 1)])
    x = x[:, None]  # two clouds for each of two heads
    assert torch.allclose(Fast(heads, 1e-9)(x), heads(x), atol=1e-8)
    exact, probe = Attention(NegativeSquaredDistance()), 2 * cloud(2200, 2, 5)
    mu = Empirical(cloud(2200, 2))
    assert torch.allclose(Fast(exact, 1e-9).at(probe, mu), exact.at(probe, mu), atol=1e-8)


def test_queries_far_from_every_key_are_done_exactly():
    exact, fast = Attention(NegativeSquaredDistance()), Fast(Attention(NegativeSquaredDistance()), 1e-9)
    probe = cloud(2200, 2)
    probe[:3] = torch.tensor([[30.0, 0.0], [0.0, -25.0], [18.0, 18.0]], dtype=F64)
    mu = Empirical(cloud(2200, 2, 4))
    assert torch.allclose(fast.at(probe, mu), exact.at(probe, mu), atol=1e-8)
    assert fast.report.exact >= 3


def test_gradients_take_the_exact_road():
    x = cloud(2200, 2).requires_grad_()
    fast = Fast(Attention(DotProduct()))
    fast(x).sum().backward()
    assert fast.report.exact == 2200
    assert torch.isfinite(x.grad).all()


def test_gaussians_and_refusals():
    fast = Fast(Attention(DotProduct()))
    assert torch.equal(fast(Gaussian(torch.zeros(2), torch.eye(2))).M, torch.eye(2))
    with pytest.raises(ValueError, match="Softmax"):
        Fast(Attention(DotProduct(), Sigmoid()))
    with pytest.raises(ValueError, match="tol"):
        Fast(Attention(DotProduct()), tol=0.0)
    with pytest.raises(ValueError, match="at most 3"):
        fast(cloud(2200, 4))
