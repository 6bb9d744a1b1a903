"""Normalisers with a threshold, on measures: against entmax, linear programmes and sorting."""

import math
import warnings

import numpy as np
import pytest
import torch
from entmax import normmax_bisect, sparsemax
from scipy.optimize import linprog, minimize

from measureflow.attention import (
    Hardmax,
    NormMax,
    Sparsemax,
    TopK,
)
from problems import masses, normal

ROUNDING = {"rtol": 1e-12, "atol": 1e-12}  # float64 sums of a dozen terms of order one


@pytest.mark.parametrize("gamma", [0.05, 1.0, 30.0])
def test_sparsemax_equals_entmax(gamma):
    scores = normal(200, 60, seed=1)
    torch.testing.assert_close(Sparsemax(gamma)(scores), sparsemax(gamma * scores, dim=-1), **ROUNDING)


@pytest.mark.parametrize("gamma", [0.2, 1.0, 10.0])
@pytest.mark.parametrize("alpha", [1.5, 2.0, 4.0])
def test_normmax_equals_entmax(alpha, gamma):
    scores = normal(100, 40, seed=1)
    oracle = normmax_bisect(gamma * scores, alpha=alpha, dim=-1, n_iter=200)
    # bisection stops at a threshold within rounding, which a small power q - 1 = 1/3 at alpha = 4 blows up near zero
    torch.testing.assert_close(NormMax(alpha, gamma)(scores), oracle, rtol=0, atol=1e-8 if alpha < 3 else 1e-5)


def objective(alpha: float, s: np.ndarray, w: np.ndarray):
    r"""What NormMax maximises, with the weighted norm of the density, and its limit of a maximum."""
    if math.isinf(alpha):
        return lambda z: s @ z - np.max(z / w)
    return lambda z: s @ z - (w @ (z / w) ** alpha) ** (1 / alpha)


def best_value(function, z: np.ndarray) -> float:
    """The maximum over the simplex, by a general solver from several starts."""
    m, values = z.size, []
    on_simplex = {"type": "eq", "fun": lambda p: p.sum() - 1}
    for start in (z, np.full(m, 1 / m), *np.eye(m)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the solver tries points outside its bounds
            found = minimize(
                lambda p: -function(np.clip(p, 1e-15, None)), 0.9 * start + 0.1 / m, bounds=[(0, 1)] * m,
                constraints=on_simplex, options={"ftol": 1e-14, "maxiter": 500},
            )  # fmt: skip
        p = np.clip(found.x, 0, None)
        values.append(function(p / p.sum()))
    return max(values)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [1.5, 2.0, 5.0])
def test_normmax_is_the_best_of_its_objective(alpha, seed):
    s, w = normal(1, 5, seed=seed), masses(5, seed=seed + 10)
    z = NormMax(alpha, gamma=2.0)(s, w)[0].numpy()
    value = objective(alpha, 2 * s[0].numpy(), w.numpy())
    # nobody finds better, and a general solver finds as good to its own accuracy
    assert 0 <= value(z) - best_value(value, z) + 1e-9 < 1e-5


@pytest.mark.parametrize("seed", range(6))
def test_normmax_at_infinity_is_a_linear_programme(seed):
    s, w = 2 * normal(5, seed=seed).numpy(), masses(5, seed=seed + 10).numpy()
    z = NormMax(math.inf, gamma=2.0)(normal(1, 5, seed=seed), torch.from_numpy(w))[0].numpy()
    # maximise <s, z> - t with z_j <= t w_j on the simplex
    best = linprog(
        np.append(-s, 1.0), A_ub=np.c_[np.eye(5), -w], b_ub=np.zeros(5), A_eq=[[1.0] * 5 + [0.0]], b_eq=[1.0]
    )
    assert objective(math.inf, s, w)(z) == pytest.approx(-best.fun, abs=1e-9)  # the programme's own tolerance


def test_normmax_of_large_alpha_nears_infinity_and_of_small_alpha_nears_arg_max():
    scores, w = normal(50, 6, seed=1), masses(6, seed=2)
    limit = NormMax(math.inf)(scores, w)
    gaps = [(NormMax(alpha)(scores, w) - limit).abs().mean().item() for alpha in (10.0, 100.0, 1000.0, 10000.0)]
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3]
    assert gaps[3] < 1e-3
    # at alpha = 1 the norm is constant on the simplex, and only the scores are left: the best key takes all
    assert (NormMax(1.01)(scores, w) - Hardmax()(scores, w)).abs().mean() < 0.05


@pytest.mark.parametrize("seed", range(4))
def test_sparsemax_is_the_nearest_point_of_the_simplex(seed):
    r"""Projection with masses: the z on the simplex nearest to w s in the norm :math:`\sum_j z_j^2 / w_j`."""
    s, w = normal(1, 5, seed=seed), masses(5, seed=seed + 10)
    z = Sparsemax(2.0)(s, w)[0].numpy()
    target, mass = 2 * (w * s[0]).numpy(), w.numpy()

    def nearness(p):
        return -0.5 * np.sum((p - target) ** 2 / mass)

    assert 0 <= nearness(z) - best_value(nearness, z) + 1e-9 < 1e-6


def test_on_a_probability_measure_gamma_n_gives_the_textbook_map():
    scores, w = normal(20, 8, seed=1), torch.full((8,), 1 / 8, dtype=torch.float64)
    torch.testing.assert_close(Sparsemax(8.0)(scores, w), Sparsemax(1.0)(scores), **ROUNDING)


@pytest.mark.parametrize("k", [1, 3, 8])
def test_top_k_of_a_list_is_what_sorting_gives(k):
    scores = normal(30, 8, seed=1)
    expected = torch.zeros_like(scores).scatter(-1, scores.topk(k).indices, 1 / k)
    torch.testing.assert_close(TopK(k)(scores), expected, **ROUNDING)


@pytest.mark.parametrize("seed", range(6))
def test_top_k_is_a_linear_programme(seed):
    s, w = normal(6, seed=seed).numpy(), masses(6, seed=seed + 10).numpy()
    k = 0.4 * w.sum()
    z = TopK(k)(torch.from_numpy(s)[None], torch.from_numpy(w))[0].numpy()
    best = linprog(-s, A_eq=[np.ones(6)], b_eq=[1.0], bounds=[(0, mass / k) for mass in w])
    assert s @ z == pytest.approx(-best.fun, abs=1e-9)  # the programme's own tolerance
    assert (z <= w / k + 1e-12).all()


def test_top_k_shares_ties_by_mass():
    s, w = torch.tensor([[2.0, 1.0, 1.0, 0.0]]), torch.tensor([1.0, 1.0, 3.0, 1.0])
    assert TopK(2)(s, w).tolist() == [[0.5, 0.125, 0.375, 0.0]]


@pytest.mark.parametrize("n", [3, 7, 10, 11, 49])
def test_top_k_of_all_the_mass_survives_rounding(n):
    """Masses of 1/n may add up to just below one, and padding has no mass to make up for it."""
    w = torch.cat([torch.full((n,), 1 / n), torch.zeros(2)])
    for scores in (torch.arange(n + 2.0), -torch.arange(n + 2.0)):  # the padding looks best, or worst
        z = TopK(1.0)(scores[None], w)
        torch.testing.assert_close(z, w[None], rtol=0, atol=2e-7)  # the last key gets what is left of one
