"""What every transport distance must obey, over the list of all of them."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from measureflow.measures import Empirical, Gaussian
from measureflow.measures.transport import (
    bures_wasserstein2,
    conditional_wasserstein2,
    entropic_bures,
    sinkhorn,
    wasserstein2,
)

D = torch.float64


@dataclass(frozen=True)
class Distance:
    """A squared distance of weighted clouds, and which laws it claims beyond those that hold for all."""

    of: Callable[[Empirical, Empirical], Tensor]
    regular: bool = False  # with entropy: a measure is at a positive distance from itself
    tolerance: float = 1e-12  # rounding, of costs of about one


def gaussian(mu: Empirical) -> Gaussian:
    """The normal measure of the same mean and covariance."""
    return Gaussian(mu.mean, mu.covariance)


def at_one_time(mu: Empirical) -> Empirical:
    return Empirical(torch.cat([torch.full_like(mu.points[:, :1], 0.5), mu.points], -1), mu.weights)


DISTANCES = {
    "exact": Distance(lambda mu, nu: wasserstein2(mu, nu).cost),
    "conditional": Distance(lambda mu, nu: conditional_wasserstein2(at_one_time(mu), at_one_time(nu))),
    "bures": Distance(lambda mu, nu: bures_wasserstein2(gaussian(mu), gaussian(nu))),
    "sinkhorn": Distance(lambda mu, nu: sinkhorn(mu, nu, epsilon=0.8, tol=1e-13).regularised, True, 1e-10),
    "entropic bures": Distance(lambda mu, nu: entropic_bures(gaussian(mu), gaussian(nu), 0.8), True),
}


@pytest.fixture(params=DISTANCES.values(), ids=DISTANCES.keys())
def distance(request) -> Distance:
    return request.param


def cloud(n: int, seed: int, d: int = 3) -> Empirical:
    draw = torch.Generator().manual_seed(seed)
    points = torch.randn(n, d, dtype=D, generator=draw) @ torch.randn(d, d, dtype=D, generator=draw)
    return Empirical(points, 0.2 + torch.rand(n, dtype=D, generator=draw))


MU, NU = cloud(9, 1), cloud(5, 2)


def close(distance: Distance, found: Tensor, expected) -> None:
    torch.testing.assert_close(found, torch.as_tensor(expected, dtype=D), rtol=1e-11, atol=distance.tolerance * 10)


def test_symmetry(distance):
    close(distance, distance.of(MU, NU), distance.of(NU, MU))


def test_nothing_to_move_costs_nothing(distance):
    found = distance.of(MU, MU)
    if distance.regular:
        assert found > 0.1
    else:
        close(distance, found, 0.0)


def test_it_is_positive_between_different_measures(distance):
    assert distance.of(MU, NU) > 0.1


def test_order_does_not_matter(distance):
    order = torch.randperm(MU.n, generator=torch.Generator().manual_seed(0))
    close(distance, distance.of(Empirical(MU.points[order], MU.weights[order]), NU), distance.of(MU, NU))


def test_a_mass_of_two_is_a_point_twice_and_of_zero_no_point(distance):
    heavy, light = MU.weights.clone(), MU.weights.clone()
    heavy[3] *= 2
    twice = Empirical(torch.cat([MU.points, MU.points[3:4]]), torch.cat([MU.weights, MU.weights[3:4]]))
    close(distance, distance.of(Empirical(MU.points, heavy), NU), distance.of(twice, NU))
    light[3] = 0
    without = [i for i in range(MU.n) if i != 3]
    close(
        distance,
        distance.of(Empirical(MU.points, light), NU),
        distance.of(Empirical(MU.points[without], light[without]), NU),
    )


def test_only_proportions_of_weights_matter(distance):
    close(distance, distance.of(Empirical(MU.points, 7 * MU.weights), NU), distance.of(MU, NU))


def test_rigid_motions_change_nothing(distance):
    turn = torch.linalg.qr(torch.randn(3, 3, dtype=D, generator=torch.Generator().manual_seed(5))).Q
    shift = torch.tensor([1.0, -2.0, 0.5], dtype=D)
    moved = [Empirical(m.points @ turn + shift, m.weights) for m in (MU, NU)]
    close(distance, distance.of(*moved), distance.of(MU, NU))


def test_shifting_one_side_adds_the_shift_of_the_means(distance):
    """|x + t - y|^2 integrates to |x - y|^2 + |t|^2 + 2 t (mean x - mean y) for every plan."""
    t = torch.tensor([0.3, -1.0, 2.0], dtype=D)
    expected = distance.of(MU, NU) + t @ t + 2 * t @ (MU.mean - NU.mean)
    close(distance, distance.of(Empirical(MU.points + t, MU.weights), NU), expected)


def test_a_point_mass_is_reached_in_one_way(distance):
    y = Empirical(torch.ones(1, 3, dtype=D))
    expected = (MU.probabilities * (MU.points - 1).square().sum(-1)).sum()
    close(distance, distance.of(MU, y), expected)


@pytest.mark.parametrize("name", [name for name in DISTANCES if name != "sinkhorn"])  # its own is at convergence only
def test_gradients_in_points_and_weights(name):
    distance = DISTANCES[name]
    x, w = MU.points.clone().requires_grad_(), MU.weights.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x, w: distance.of(Empirical(x, w), NU), (x, w), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["exact", "conditional", "bures"])
def test_roots_obey_the_triangle_inequality(name):
    measures = [cloud(6, seed) for seed in range(3, 9)]
    root = (
        torch.stack([torch.stack([DISTANCES[name].of(a, b) for b in measures]) for a in measures]).clamp_min(0).sqrt()
    )
    assert (root[:, None, :] <= root[:, :, None] + root[None, :, :] + 1e-6).all()  # 1e-6: roots of rounding errors


def test_moments_alone_bound_the_exact_distance_from_below():
    """Gelbrich: among all measures of given means and covariances the normal ones are nearest."""
    for seed in range(20):
        mu, nu = cloud(8, seed), cloud(6, seed + 50)
        assert DISTANCES["bures"].of(mu, nu) <= DISTANCES["exact"].of(mu, nu) + 1e-12


def test_on_the_line_the_exact_plan_keeps_the_order():
    draw = torch.Generator().manual_seed(4)
    x, y = (torch.randn(20, 50, 1, dtype=D, generator=draw) for _ in range(2))
    expected = (x.sort(-2).values - y.sort(-2).values).square().mean((-2, -1))
    torch.testing.assert_close(wasserstein2(x, y).cost, expected, rtol=1e-12, atol=1e-14)


def test_more_entropy_costs_more():
    for name, of in {
        "clouds": lambda e: sinkhorn(MU, NU, epsilon=e, tol=1e-12, max_iter=100_000).regularised,
        "normal": lambda e: entropic_bures(gaussian(MU), gaussian(NU), e),
    }.items():
        values = [float(of(e)) for e in (0.2, 1.0, 5.0, 50.0)]
        exact = DISTANCES["exact" if name == "clouds" else "bures"].of(MU, NU)
        assert float(exact) < values[0] < values[1] < values[2] < values[3], name


def test_hardly_any_entropy_is_none():
    W = sinkhorn(MU, NU, epsilon=1e-5)
    assert W.converged
    assert W.error < 1e-8
    assert 0 <= W.regularised - wasserstein2(MU, NU).cost < 1e-4  # at most epsilon times the entropy of the weights


def test_entropic_bures_is_the_value_at_the_printed_coupling():
    """Theorem A.3's C, put into the objective: tr S + tr T - 2 tr C + epsilon I(x; y)."""
    mu, nu, epsilon = gaussian(MU), gaussian(NU), 0.8
    S, T, e = mu.covariance, nu.covariance, epsilon / 2  # theirs divides |x - y|^2 by 2 epsilon
    values, vectors = torch.linalg.eigh(T)
    half, inverse = ((vectors * values.pow(p)) @ vectors.mT for p in (0.5, -0.5))
    inner = half @ S @ half + e**2 / 4 * torch.eye(3, dtype=D)
    values, vectors = torch.linalg.eigh(inner)
    C = half @ (vectors * values.sqrt()) @ vectors.mT @ inverse - e / 2 * torch.eye(3, dtype=D)
    joint = torch.cat([torch.cat([S, C.mT], 1), torch.cat([C, T], 1)])
    information = 0.5 * (torch.logdet(S) + torch.logdet(T) - torch.logdet(joint))
    value = (mu.mean - nu.mean).square().sum() + torch.trace(S + T - 2 * C) + epsilon * information
    torch.testing.assert_close(entropic_bures(mu, nu, epsilon), value, rtol=1e-11, atol=0)


def test_gaussian_distances_have_gradients_where_eigenvalues_coincide_or_vanish():
    zero = torch.zeros(2, dtype=D)
    for S in (torch.eye(2, dtype=D), torch.ones(2, 2, dtype=D)):
        for of in (bures_wasserstein2, lambda a, b: entropic_bures(a, b, 0.5)):
            free = S.clone().requires_grad_()
            of(Gaussian(zero, free), Gaussian(zero, torch.diag(torch.tensor([1.0, 4.0], dtype=D)))).backward()
            assert torch.isfinite(free.grad).all()
    free = torch.eye(2, dtype=D).requires_grad_()
    bures_wasserstein2(Gaussian(zero, free), Gaussian(zero, torch.diag(torch.tensor([1.0, 4.0], dtype=D)))).backward()
    torch.testing.assert_close(free.grad, torch.diag(torch.tensor([0.0, -1.0], dtype=D)))  # identity minus the map


def test_a_measure_of_low_rank_is_at_no_distance_from_itself():
    v = torch.randn(4, 5, 1, dtype=D, generator=torch.Generator().manual_seed(1))
    mu = Gaussian(torch.zeros(4, 5, dtype=D), v @ v.mT)
    torch.testing.assert_close(bures_wasserstein2(mu, mu), torch.zeros(4, dtype=D), rtol=0, atol=1e-13)


def test_many_slices_of_time_are_many_transports():
    """One token a position, as masked attention has it; and slices of different sizes."""
    draw = torch.Generator().manual_seed(2)
    tau = torch.linspace(0, 1, 200, dtype=D)[:, None]
    x, y = (torch.randn(200, 3, dtype=D, generator=draw) for _ in range(2))
    mu, nu = (Empirical(torch.cat([tau, z], 1)) for z in (x, y))
    torch.testing.assert_close(conditional_wasserstein2(mu, nu), (x - y).square().sum(-1).mean())
    split = Empirical(
        torch.cat([mu.points, mu.points[:50]]), torch.cat([mu.weights[:50] / 2, mu.weights[50:], mu.weights[:50] / 2])
    )
    torch.testing.assert_close(conditional_wasserstein2(split, nu), (x - y).square().sum(-1).mean())
