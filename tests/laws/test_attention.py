"""Every score with every normaliser, as a field on measures."""

import pytest
import torch

from measureflow.attention import Attention, Softmax, field, fused
from measureflow.attention.fused import softmax_means
from measureflow.measures import Empirical
from members import EXACT, NORMALISERS, RANDOM, ROW_BY_ROW, SCORES, SMOOTH
from problems import masses, normal
from rounding import allowed, distance

ROUNDING = {"rtol": 1e-11, "atol": 1e-11}  # float64 sums of a few dozen terms, scores of up to a hundred


def attention(score: str, normaliser: str, d: int = 2) -> Attention:
    Q, K, V = normal(3, d, d, seed=9)
    return Attention(SCORES[score](Q, K), NORMALISERS[normaliser](), V)


def explicit(member: Attention, x, mu, u=None):
    """The definition: normalised scores times values, the whole matrix at once."""
    scores = member.score(x, mu.points)
    w = mu.weights[..., None, :]
    z = member.normaliser(scores, w, u) if member.normaliser.couples_queries else member.normaliser(scores, w)
    return z @ member.value(mu.points)


@pytest.mark.parametrize("normaliser", NORMALISERS)
@pytest.mark.parametrize("score", SCORES)
def test_field_is_normalised_scores_times_values(score, normaliser):
    mu, x = Empirical(normal(8, 2, seed=1), masses(8, seed=2)), normal(5, 2, seed=3)
    expected = explicit(attention(score, normaliser), x, mu)
    torch.testing.assert_close(attention(score, normaliser).at(x, mu), expected, **ROUNDING)


@pytest.mark.parametrize("normaliser", NORMALISERS)
@pytest.mark.parametrize("score", SCORES)
def test_a_batch_is_its_elements_one_by_one(score, normaliser):
    y, w = normal(2, 3, 6, 2, seed=1), masses(2, 3, 6, seed=2)
    together = attention(score, normaliser)(Empirical(y, w))
    assert together.shape == y.shape
    assert torch.isfinite(together).all()
    if normaliser in RANDOM:  # a batch draws other numbers than its elements
        return
    for i in range(2):
        for j in range(3):
            alone = attention(score, normaliser)(Empirical(y[i, j], w[i, j]))
            torch.testing.assert_close(together[i, j], alone, **ROUNDING)


@pytest.mark.parametrize("normaliser", EXACT)
@pytest.mark.parametrize("score", SCORES)
def test_tokens_are_a_measure_of_equal_masses(score, normaliser):
    x = normal(7, 2, seed=1)
    member = attention(score, normaliser)
    weighted = member(Empirical(x, torch.full((7,), 1 / 7, dtype=torch.float64)))
    torch.testing.assert_close(member(x), weighted, **ROUNDING)
    torch.testing.assert_close(member(Empirical(x)), weighted, **ROUNDING)


@pytest.mark.parametrize("normaliser", EXACT)
@pytest.mark.parametrize("score", SCORES)
def test_point_twice_is_mass_two_and_mass_zero_is_no_point(score, normaliser):
    x = normal(4, 2, seed=1)
    w = torch.tensor([2.0, 1.0, 0.0, 1.0], dtype=torch.float64)
    repeated = Empirical(x[[0, 0, 1, 3]], torch.ones(4, dtype=torch.float64))
    member = attention(score, normaliser)
    at = x[[0, 1, 3]]
    if member.normaliser.couples_queries:  # where queries count, they must be repeated too
        once = member(Empirical(x, w))[[0, 1, 3]]
        torch.testing.assert_close(once, member(repeated)[[0, 2, 3]], **ROUNDING)
    else:
        torch.testing.assert_close(member.at(at, Empirical(x, w)), member.at(at, repeated), **ROUNDING)


@pytest.mark.parametrize("normaliser", EXACT)
@pytest.mark.parametrize("score", SCORES)
def test_the_order_of_tokens_does_not_matter(score, normaliser, generator):
    x, w = normal(7, 2, seed=1), masses(7, seed=2)
    order = torch.randperm(7, generator=generator)
    member = attention(score, normaliser)
    torch.testing.assert_close(member(Empirical(x[order], w[order])), member(Empirical(x, w))[order], **ROUNDING)


@pytest.mark.parametrize("normaliser", ROW_BY_ROW)
@pytest.mark.parametrize("score", SCORES)
def test_blocks_of_rows_change_nothing(score, normaliser, monkeypatch):
    mu = Empirical(normal(9, 2, seed=1), masses(9, seed=2))
    whole = attention(score, normaliser)(mu)
    monkeypatch.setattr(field, "BLOCK", 18)  # two rows of nine keys at a time, the last block one row
    torch.testing.assert_close(attention(score, normaliser)(mu), whole, **ROUNDING)


def test_blocks_are_small_enough(monkeypatch):
    """No score matrix larger than BLOCK is ever asked for."""
    seen = []

    class Watched(SCORES["dot product"]):
        def forward(self, x, y):
            scores = super().forward(x, y)
            seen.append(scores.numel())
            return scores

    monkeypatch.setattr(field, "BLOCK", 200)
    Attention(Watched(), NORMALISERS["hardmax"]())(normal(3, 20, 2, seed=1))
    assert max(seen) <= 200
    assert sum(seen) == 3 * 20 * 20


@pytest.mark.parametrize("normaliser", SMOOTH)
@pytest.mark.parametrize("score", SCORES)
def test_gradient_in_queries_keys_and_masses(score, normaliser):
    x, y, w = normal(2, 2, seed=1), normal(3, 2, seed=2), masses(3, seed=3)
    member = attention(score, normaliser)

    def velocity(x, y, w):
        return member.at(x, Empirical.trusted(y, w))

    assert torch.autograd.gradcheck(velocity, tuple(t.requires_grad_() for t in (x, y, w)))


# ---------------------------------------------------------------------------------------------- the fused softmax

FUSED_CASES = {
    "plain": lambda: Empirical(normal(40, 2, seed=1)),
    "masses": lambda: Empirical(normal(40, 2, seed=1), masses(40, seed=2)),
    "batch": lambda: Empirical(normal(2, 3, 40, 2, seed=1), masses(2, 3, 40, seed=2)),
    "deep batch": lambda: Empirical(normal(2, 1, 2, 2, 9, 2, seed=1)),
    "one point": lambda: Empirical(normal(1, 2, seed=1)),
    "no mass at first": lambda: Empirical(normal(1200, 2, seed=1), (torch.arange(1200) >= 700).double()),
}


@pytest.mark.parametrize("case", FUSED_CASES)
@pytest.mark.parametrize("value", [None, normal(2, 2, seed=7), normal(5, 2, seed=7), normal(1, 2, seed=7)])
@pytest.mark.parametrize("score", SCORES)
def test_fused_softmax_equals_the_explicit_matrix(score, value, case):
    mu = FUSED_CASES[case]()
    member = Attention(SCORES[score](normal(3, 2, seed=5), normal(3, 2, seed=6)), Softmax(0.8), value)
    torch.testing.assert_close(member(mu), explicit(member, mu.points, mu), **ROUNDING)


@pytest.mark.parametrize("score", SCORES)
def test_fused_softmax_gives_finite_gradients_to_padded_points(score):
    y = normal(5, 2, seed=1).requires_grad_()
    w = torch.tensor([1.0, 1.0, 0.0, 1.0, 0.0], dtype=torch.float64, requires_grad=True)
    Attention(SCORES[score]()).at(y, Empirical.trusted(y, w)).square().sum().backward()
    assert torch.isfinite(y.grad).all()
    assert torch.isfinite(w.grad).all()


@pytest.mark.parametrize("offset", [0.0, 100.0, 1e4])
def test_distance_softmax_keeps_its_digits_far_from_the_origin(offset):
    """In single precision it loses little more than averaging the points does, by weights that are exact."""
    x = (offset + normal(200, 2, seed=1)).float()
    member = Attention(SCORES["negative squared distance"](), Softmax(2.0))
    weights = torch.softmax(-2 * torch.cdist(x.double(), x.double()).square(), -1)
    assert distance(member(x), weights @ x.double()) <= allowed(weights.float() @ x, weights @ x.double())


def test_matrices_take_the_precision_of_the_points():
    member = Attention(value=[[2.0, 0.0], [0.0, 2.0]])  # a list becomes single precision
    assert member(normal(4, 2)).dtype == torch.float64
    assert member(normal(4, 2).float()).dtype == torch.float32


def test_fused_softmax_passes_gradients_through_means_and_log_density():
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 2, 5, 3), (2, 2, 7, 3), (2, 2, 7, 4))
    q, k, v = (torch.randn(s, generator=generator, dtype=torch.float64, requires_grad=True) for s in shapes)
    assert torch.autograd.gradcheck(softmax_means, (q, k, v))
    means, log_density = softmax_means(q, k, v)
    torch.testing.assert_close(log_density, torch.logsumexp(q @ k.mT, -1), rtol=0, atol=1e-12)
    torch.testing.assert_close(means, torch.softmax(q @ k.mT, -1) @ v, rtol=0, atol=1e-12)


def test_softmax_means_are_the_same_without_the_private_kernel(monkeypatch):
    """A torch may not have the kernel, or have it with other arguments: then the mathematics runs as it is."""
    inputs = [normal(2, 2, n, e, seed=e).requires_grad_() for n, e in ((5, 3), (7, 3), (7, 4))]

    def values_and_gradients():
        means, log_density = softmax_means(*inputs)
        with torch.no_grad():
            without_graph = softmax_means(*inputs)
        loss = means.sin().sum() + log_density.square().sum()
        return means, log_density, *without_graph, *torch.autograd.grad(loss, inputs)

    usual = values_and_gradients()
    monkeypatch.setattr(fused, "_forward", fused._private("_scaled_dot_product_flash_attention_for_cpu", "query key"))
    assert fused._forward is None
    torch.testing.assert_close(values_and_gradients(), usual, rtol=0, atol=1e-12)
    monkeypatch.undo()
    monkeypatch.setattr(fused, "_backward", fused._private("_no_such_operator", "query key"))
    assert fused._backward is None
    torch.testing.assert_close(values_and_gradients(), usual, rtol=0, atol=1e-12)


def test_the_private_kernel_is_used_where_torch_has_it():
    assert fused._forward is not None  # every torch from 2.6 to the one that the lock pins has it
    assert fused._backward is not None
