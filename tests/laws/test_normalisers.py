"""What each normaliser declares about itself, and what it must be equal to."""

import math
import warnings

import numpy as np
import pytest
import torch
from entmax import normmax_bisect, sparsemax
from scipy.optimize import linprog, minimize

from measureflow.attention import (
    Exp,
    GumbelSoftmax,
    Hardmax,
    Linear,
    NormMax,
    ReLU,
    Sigmoid,
    Sinkhorn,
    Softmax,
    SoftmaxExpansion,
    Sparsemax,
    TopK,
)
from members import EXACT, NORMALISERS, SMOOTH, seeded
from problems import masses, normal

ROUNDING = {"rtol": 1e-12, "atol": 1e-12}  # float64 sums of a dozen terms of order one
SHAPES = {"one": (6, 9), "batch": (4, 3, 6, 9)}
WEIGHTS = {
    "counting": lambda m: None,
    "probability": lambda m: torch.full((m,), 1 / m, dtype=torch.float64),
    "masses": lambda m: masses(m, seed=3),
}


def apply(name: str, scores, weights=None):
    return NORMALISERS[name]()(scores, weights)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("name", NORMALISERS)
def test_rows_are_what_is_declared(name, weights, shape):
    member, scores = NORMALISERS[name](), normal(*shape, seed=1)
    z = member(scores, weights(shape[-1]))
    assert z.shape == scores.shape
    assert z.dtype == scores.dtype
    assert not member.non_negative or (z >= 0).all()
    if member.sums_to_one:
        torch.testing.assert_close(z.sum(-1), torch.ones_like(z[..., 0]), **ROUNDING)
    else:
        assert (z.sum(-1) - 1).abs().max() > 0.1  # else it should declare that it does


@pytest.mark.parametrize("name", NORMALISERS)
def test_shifts_of_a_row_change_nothing_where_declared(name):
    scores, w = normal(6, 9, seed=1), masses(9, seed=3)
    shift = normal(6, 1, seed=2)
    change = (apply(name, scores + shift, w) - apply(name, scores, w)).abs().max()
    if NORMALISERS[name]().shift_invariant:
        assert (
            change < 1e-10
        )  # the shift costs a digit or two of a score; a softmax with gamma = 20 feels it twentyfold
    else:
        assert change > 1e-3


@pytest.mark.parametrize("name", EXACT)
def test_order_of_keys_and_queries_does_not_matter(name, generator):
    scores, w = normal(6, 9, seed=1), masses(9, seed=3)
    keys, queries = torch.randperm(9, generator=generator), torch.randperm(6, generator=generator)
    z = apply(name, scores, w)[queries][:, keys]
    torch.testing.assert_close(apply(name, scores[queries][:, keys], w[keys]), z, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("probability", [False, True], ids=["counting", "probability"])
@pytest.mark.parametrize("name", EXACT)
def test_mass_two_is_a_key_twice(name, probability):
    scores = normal(6, 5, seed=1)
    w = torch.tensor([2.0, 1.0, 3.0, 1.0, 0.0], dtype=torch.float64)
    repeated = scores[:, [0, 0, 1, 2, 2, 2, 3]]
    unit = 1 / 7 if probability else 1.0
    z = apply(name, repeated, torch.full((7,), unit, dtype=torch.float64))
    merged = torch.stack([z[:, :2].sum(1), z[:, 2], z[:, 3:6].sum(1), z[:, 6], torch.zeros(6)], 1)
    torch.testing.assert_close(apply(name, scores, unit * w), merged, rtol=1e-10, atol=1e-12)
    if not probability:
        torch.testing.assert_close(apply(name, repeated), z, **ROUNDING)  # None means masses of one


@pytest.mark.parametrize("name", EXACT)
def test_each_query_may_see_masses_of_its_own(name):
    scores, w = normal(6, 9, seed=1), masses(6, 9, seed=3)
    if NORMALISERS[name]().couples_queries:
        with pytest.raises(ValueError, match="couples all queries"):
            apply(name, scores, w)
        return
    rows = [apply(name, scores[i : i + 1], w[i]) for i in range(6)]
    torch.testing.assert_close(apply(name, scores, w), torch.cat(rows), **ROUNDING)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradient_in_scores_and_masses(name):
    scores = normal(2, 3, 4, seed=1).requires_grad_()
    w = masses(2, 1, 4, seed=3).requires_grad_()
    member = NORMALISERS[name]()
    assert torch.autograd.gradcheck(member, (scores, w))
    assert torch.autograd.gradcheck(member, (scores,))


@pytest.mark.parametrize("name", SMOOTH)
def test_keys_of_no_mass_leave_gradients_finite(name):
    scores = normal(3, 4, seed=1).requires_grad_()
    w = torch.tensor([0.4, 0.0, 0.6, 0.0], dtype=torch.float64, requires_grad=True)
    (apply(name, scores, w) * normal(3, 4, seed=2)).sum().backward()
    assert torch.isfinite(scores.grad).all()
    assert torch.isfinite(w.grad).all()
    assert (scores.grad[:, [1, 3]].abs() < 1e-15).all()  # Sinkhorn solves a linear system, which rounds


@pytest.mark.parametrize("name", EXACT)
def test_single_precision_follows_double(name):
    scores, w = normal(50, 80, seed=1), masses(80, seed=3)
    single = apply(name, scores.float(), w.float())
    assert single.dtype == torch.float32
    if name in ("hardmax", "normmax inf", "top k"):  # steps: a score within rounding of the step may fall elsewhere
        assert ((single - apply(name, scores, w)).abs().amax(-1) > 1e-5).float().mean() <= 0.02
    else:
        scale = apply(name, scores, w).abs().max()
        assert (single - apply(name, scores, w)).abs().max() < 1e-4 * scale  # 24 bits, times gamma |s| of up to 100


# ------------------------------------------------------------------------------------------------- known answers


def test_softmax_of_two_keys_by_hand():
    s, w = torch.tensor([[0.3, -0.4]], dtype=torch.float64), torch.tensor([1.0, 3.0], dtype=torch.float64)
    first = 1 / (1 + 3 * math.exp(-2 * 0.7))
    torch.testing.assert_close(Softmax(2.0)(s, w), torch.tensor([[first, 1 - first]], dtype=torch.float64), **ROUNDING)


@pytest.mark.parametrize(
    ("member", "function"),
    [
        (Exp(), math.exp),
        (Sigmoid(), lambda s: 1 / (1 + math.exp(-s))),
        (ReLU(), lambda s: max(s, 0.0)),
        (SoftmaxExpansion(0.5), lambda s: 2.0 + s - (0.25 * 0.3 + 0.75 * -0.4)),
        (Linear(), lambda s: s / (0.25 * 0.3 + 0.75 * -0.4)),
    ],
    ids=lambda part: type(part).__name__,
)
def test_formulas_by_hand(member, function):
    s = torch.tensor([[0.3, -0.4]], dtype=torch.float64)
    w = torch.tensor([0.25, 0.75], dtype=torch.float64)
    expected = torch.tensor([[0.25 * function(0.3), 0.75 * function(-0.4)]], dtype=torch.float64)
    torch.testing.assert_close(member(s, w), expected, **ROUNDING)


def test_linear_spreads_a_row_that_sums_to_zero():
    s = torch.tensor([[1.0, -1.0], [0.0, 0.0]], dtype=torch.float64)
    assert Linear()(s).tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_softmax_goes_to_hardmax_ties_included():
    scores = torch.tensor([[1.0, 0.0, 1.0, -2.0], [0.5, 0.5, 0.5, 0.5]], dtype=torch.float64)
    w = torch.tensor([1.0, 5.0, 3.0, 1.0], dtype=torch.float64)
    gaps = [(Softmax(gamma)(scores, w) - Hardmax()(scores, w)).abs().max().item() for gamma in (5.0, 10.0, 20.0)]
    assert gaps[0] < 5 / 4 * math.exp(-5) * 1.01  # the loser's share is at most w_1 e^-gamma / (w_0 + w_2)
    assert gaps[1] < gaps[0] * math.exp(-4.9)
    assert gaps[2] < gaps[1] * math.exp(-9.9)
    assert Hardmax()(scores, w).tolist() == [[0.25, 0.0, 0.75, 0.0], [0.1, 0.5, 0.3, 0.1]]


def test_hardmax_never_picks_a_key_of_no_mass():
    scores = torch.tensor([[9.0, 1.0]], dtype=torch.float64)
    assert Hardmax()(scores, torch.tensor([0.0, 2.0], dtype=torch.float64)).tolist() == [[0.0, 1.0]]


def test_cold_gumbel_draws_keys_by_their_softmax():
    scores = torch.tensor([0.3, -1.0, 0.9], dtype=torch.float64)
    w = torch.tensor([1.0, 4.0, 0.5], dtype=torch.float64)
    n = 40_000
    z = GumbelSoftmax(0.0, generator=seeded(1))(scores.expand(n, 3), w)
    assert ((z == 0) | (z == 1)).all()
    p = Softmax()(scores[None], w)[0]
    assert ((z.mean(0) - p).abs() < 4 * (p * (1 - p) / n).sqrt()).all()  # four standard errors of a frequency


def test_gumbel_cools_down_to_its_draw():
    scores = normal(200, 7, seed=1)
    cold = GumbelSoftmax(0.0, generator=seeded(2))(scores)
    gaps = [(GumbelSoftmax(T, generator=seeded(2))(scores) - cold).abs().mean().item() for T in (1.0, 0.1, 0.01, 0.001)]
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3]
    assert gaps[3] < 1e-3  # only rows whose two best are within 0.001 of each other still mix: one in a thousand


def test_a_seed_fixes_the_gumbel_draw():
    scores = normal(5, 7, seed=1)
    first, again, other = (GumbelSoftmax(generator=seeded(s))(scores) for s in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


# ----------------------------------------------------------------------------------- maps with a threshold, weighed


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


# ---------------------------------------------------------------------------------------------- doubly stochastic


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_sinkhorn_gives_queries_and_keys_all_their_mass(epsilon):
    scores, w, u = normal(2, 6, 9, seed=1), masses(9, seed=3), masses(6, 1, seed=4)
    z = Sinkhorn(epsilon, tol=1e-13)(scores, w, u)
    torch.testing.assert_close(z.sum(-1), torch.ones(2, 6, dtype=torch.float64), **ROUNDING)
    columns = (u / u.sum() * z).sum(-2)
    # the last change of a potential is below tol, so a column misses its mass by a multiple of that
    torch.testing.assert_close(columns, (w / w.sum()).expand(2, 9), rtol=1e-10, atol=0)


def test_sinkhorn_is_softmax_rows_and_columns_in_turn():
    """The plain iteration of [Castin 2025, (2.4)], on the kernel itself."""
    scores, w, u = normal(4, 5, seed=1), masses(5, seed=3), masses(4, 1, seed=4)
    p, r = w / w.sum(), u / u.sum()
    kernel = scores.exp()
    for _ in range(500):
        kernel = kernel / (r * kernel).sum(0, keepdim=True)
        kernel = kernel / (kernel * p).sum(1, keepdim=True)
    torch.testing.assert_close(Sinkhorn(1.0, tol=1e-13)(scores, w, u), kernel * p, rtol=1e-10, atol=0)


def test_a_query_of_mass_two_is_a_query_twice_for_sinkhorn():
    scores, w = normal(3, 5, seed=1), masses(5, seed=3)
    member = Sinkhorn(1.0, tol=1e-13)
    u = torch.tensor([[2.0], [1.0], [0.0]], dtype=torch.float64)
    torch.testing.assert_close(member(scores, w, u)[:2], member(scores[[0, 0, 1]], w)[[0, 2]], rtol=1e-10, atol=0)


def test_sinkhorn_says_when_it_has_not_converged():
    with pytest.warns(RuntimeWarning, match="max_iter=3"):
        Sinkhorn(0.05, max_iter=3)(normal(5, 5, seed=1))
