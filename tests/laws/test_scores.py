"""Scores against their formulas, entry by entry."""

import pytest
import torch

from measureflow.attention import DotProduct, NegativeSquaredDistance
from members import SCORES
from problems import normal

FORMULAS = {
    "dot product": lambda q, k: float(q @ k),
    "negative squared distance": lambda q, k: -float((q - k) @ (q - k)),
}
MATRICES = {
    "plain": (None, None),
    "query only": (normal(3, 3, seed=1), None),
    "key only": (None, normal(3, 3, seed=2)),
    "both, to two dimensions": (normal(2, 3, seed=1), normal(2, 3, seed=2)),
}


@pytest.mark.parametrize("matrices", MATRICES.values(), ids=MATRICES)
@pytest.mark.parametrize("name", SCORES)
def test_entries_follow_the_formula(name, matrices):
    x, y = normal(4, 3, seed=3), normal(5, 3, seed=4)
    Q, K = (torch.eye(3, dtype=torch.float64) if M is None else M for M in matrices)
    entries = [[FORMULAS[name](Q @ a, K @ b) for b in y] for a in x]
    expected = torch.tensor(entries, dtype=torch.float64)
    torch.testing.assert_close(SCORES[name](*matrices)(x, y), expected, rtol=1e-12, atol=1e-12)  # rounding


@pytest.mark.parametrize("matrices", MATRICES.values(), ids=MATRICES)
@pytest.mark.parametrize("name", SCORES)
def test_lifted_points_give_the_score_up_to_a_term_of_the_query(name, matrices):
    x, y = normal(2, 4, 3, seed=3), normal(2, 5, 3, seed=4)
    score = SCORES[name](*matrices)
    q, k, bias = score.lifted(x, y)
    rest = score(x, y) - q @ k.mT - (0 if bias is None else bias[..., None, :])
    assert (rest - rest[..., :1]).abs().max() < 1e-12  # rounding


@pytest.mark.parametrize("name", SCORES)
def test_gradient_in_points_and_matrices(name):
    x, y = normal(2, 3, 2, seed=3).requires_grad_(), normal(2, 4, 2, seed=4).requires_grad_()
    Q, K = normal(2, 2, 2, seed=5).requires_grad_()

    def scores(x, y, Q, K):
        member = SCORES[name](Q, K)
        member.Q.M, member.K.M = Q, K
        return member(x, y)

    assert torch.autograd.gradcheck(scores, (x, y, Q, K))


@pytest.mark.parametrize("name", SCORES)
def test_gradient_is_finite_where_points_coincide(name):
    x = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    SCORES[name]()(x, x).sum().backward()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("name", SCORES)
def test_values_are_the_same_with_and_without_gradients(name):
    x, y = normal(4, 3, seed=3), normal(5, 3, seed=4)
    plain = SCORES[name]()(x, y)
    with_graph = SCORES[name]()(x.requires_grad_(), y)
    torch.testing.assert_close(with_graph.detach(), plain, rtol=1e-12, atol=1e-12)  # rounding


def test_distances_survive_a_far_origin_in_single_precision():
    """Points a unit apart at 1e4 from the origin: |x|^2 - 2 xy + |y|^2 there would lose every digit."""
    x = (1e4 + normal(30, 2, seed=3)).float()
    exact = NegativeSquaredDistance()(x.double(), x.double())
    # float32 holds 1e4 to 1e-3, so the data are exact and only differences round
    assert (NegativeSquaredDistance()(x, x) - exact).abs().max() < 1e-5
    lifted = NegativeSquaredDistance()(x.clone().requires_grad_(), x).detach()
    assert (lifted - exact).abs().max() < 1e-2  # the mean key is held to 1e-3 only


def test_matrices_are_buffers_by_hand_and_parameters_when_learned():
    eye = torch.eye(2)
    assert not list(DotProduct(eye, eye).parameters())
    assert set(DotProduct(eye, eye).state_dict()) == {"Q.M", "K.M"}
    assert {name for name, _ in DotProduct(eye, eye, learn=True).named_parameters()} == {"Q.M", "K.M"}


def test_learned_matrices_are_copies_of_the_one_they_begin_as():
    M = torch.eye(2)
    score = DotProduct(M, M, learn=True)
    with torch.no_grad():
        score.Q.M += 1
    assert torch.equal(score.K.M, torch.eye(2))
    assert torch.equal(M, torch.eye(2))
