"""What each normaliser declares about itself, and what it must be equal to."""

import math

import pytest
import torch

from measureflow.attention import (
    Exp,
    GumbelSoftmax,
    Hardmax,
    Linear,
    ReLU,
    Sigmoid,
    Sinkhorn,
    Softmax,
    SoftmaxExpansion,
)
from members import EXACT, NORMALISERS, SMOOTH
from problems import masses, normal, seeded

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
    with pytest.warns(RuntimeWarning, match="max_iter=3") as caught:
        Sinkhorn(0.05, max_iter=3)(normal(5, 5, seed=1))
    assert caught[0].filename == __file__  # the caller, not torch, which called the normaliser
