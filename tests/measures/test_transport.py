"""Exact transport against POT's network simplex, problem by problem, degenerate ones included."""

import threading

import numpy as np
import ot
import pytest
import torch

from measureflow.measures import Empirical
from measureflow.measures.transport import batches, wasserstein2
from network_simplex import assert_optimal

D = torch.float64


def draw(kind: str, rng: np.random.Generator):
    """Points, atoms and weights of one random problem, n <= 60, k <= 12, d <= 4; half the time k > n is possible."""
    n, k, d = rng.integers(1, 61), rng.integers(1, 13), rng.integers(1, 5)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(k, d))
    w, v = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(k))
    if kind == "uniform":  # integral: every vertex of the polytope is degenerate where k divides n
        w, v = np.full(n, 1 / n), np.full(k, 1 / k)
    if kind == "grid":  # many equal costs
        x, y = rng.integers(-2, 3, (n, d)).astype(float), rng.integers(-2, 3, (k, d)).astype(float)
    if kind == "grid, counts":  # equal costs and subsets of equal mass
        x, y = rng.integers(-1, 2, (n, d)).astype(float), rng.integers(-1, 2, (k, d)).astype(float)
        w, v = np.full(n, 1 / n), rng.multinomial(n, v) / n
    if kind == "duplicates":
        x, y = x[rng.integers(0, n, n)], y[rng.integers(0, k, k)]
    if kind == "zero weights":
        w, v = w * (rng.random(n) < 0.5), v * (rng.random(k) < 0.5)
        w[rng.integers(n)] += 0.1
        v[rng.integers(k)] += 0.1
    if kind == "more atoms":
        x, w = x[:5], w[:5]
    if kind == "same cloud":
        y, v = x[rng.permutation(n)], np.full(n, 1 / n)
        w = v
    if kind == "far away":
        x, y = x + 1e6, y + 1e6
    if kind == "scales":
        x, y, w = x * 10.0 ** rng.integers(-3, 4, (n, 1)), y, w**4
    return x, y, w / w.sum(), v / v.sum()


KINDS = [
    "generic", "uniform", "grid", "grid, counts", "duplicates", "zero weights", "more atoms", "same cloud", "far away",
    "scales",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_network_simplex_on_two_hundred_and_fifty_problems(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(250):
        assert_optimal(*draw(kind, rng), margin=1e-14)


def batch(B: int = 5, n: int = 40, k: int = 4, d: int = 2, seed: int = 0, dtype=D):
    """A batch of problems of no symmetry, so that plan and potentials are unique and the cost is smooth."""
    normal = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(B, m, d, generator=normal, dtype=D) for m in (n, k))
    w, v = (0.2 + torch.rand(B, m, generator=normal, dtype=D) for m in (n, k))
    return [t.to(dtype) for t in (x, y, w, v)]


def cost(x, y, w=None, v=None):
    return wasserstein2(x, y, weights=w, atom_weights=v).cost


def test_a_hand_computed_case():
    W = wasserstein2([[0.0], [1.0], [5.0]], [[0.0], [4.0]], weights=[1, 1, 2], atom_weights=[1, 1])
    assert W.cost.item() == pytest.approx((0 + 1 + 2 * 1) / 4)
    torch.testing.assert_close(W.plan(), torch.tensor([[0.25, 0], [0.25, 0], [0, 0.5]]))
    assert W.assignment().tolist() == [0, 0, 1]


def test_a_point_is_split_when_the_masses_ask_for_it():
    W = wasserstein2(torch.tensor([[0.0], [1.0]], dtype=D), torch.tensor([[0.0], [1.0]], dtype=D), atom_weights=[3, 1])
    torch.testing.assert_close(W.plan(), torch.tensor([[0.5, 0], [0.25, 0.25]], dtype=D))
    assert W.cost.item() == pytest.approx(0.25)


def test_batches_broadcast_and_keep_their_shape():
    x, y, w, v = batch(6)
    W = wasserstein2(x.view(2, 3, 40, 2), y[0], weights=w.view(2, 3, 40), atom_weights=v[0])
    assert W.cost.shape == W.gap.shape == (2, 3)
    assert W.plan().shape == (2, 3, 40, 4)
    alone = torch.stack([cost(x[p], y[0], w[p], v[0]) for p in range(6)]).view(2, 3)
    assert torch.equal(W.cost, alone)
    assert wasserstein2(x[:0], y[:0]).cost.shape == (0,)


def test_empirical_measures_bring_their_weights():
    x, y, w, v = batch()
    assert torch.equal(wasserstein2(Empirical(x, w), Empirical(y, v)).cost, cost(x, y, w, v))
    assert torch.equal(wasserstein2(Empirical(x), y).cost, cost(x, y))


def test_the_answer_does_not_depend_on_the_number_of_threads():
    x, y, w, v = (t.numpy() for t in batch(7, n=300, k=40))
    w, v = w / w.sum(1, keepdims=True), v / v.sum(1, keepdims=True)
    assert x.shape[0] * x.shape[1] * y.shape[1] > batches.SMALL  # or one thread would do all
    one, two, three = (batches.solve_batch(x, y, w, v, 400, threads) for threads in (1, 2, 3))
    for a, b, c in zip(one, two, three, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_one_compilation_serves_every_layout():
    """Compiling takes seconds: uniform weights, views and transposes must not ask for another."""
    x, y, w, v = batch()
    cost(x, y, w, v)
    cost(x, y)
    cost(x[0].mT.contiguous().mT, y[0].expand(3, 4, 2), w[::2, ::1][0], v[0])
    cost(x[:, ::2], y[:, ::3], w[:, ::2], v[:, ::3])
    cost(y, x)
    assert len(batches._share.signatures) == 1


def test_several_callers_at_once_do_not_disturb_each_other():
    x, y, w, v = batch(16, n=400, k=20)
    found, expected = [None] * 4, cost(x, y, w, v)

    def call(p: int) -> None:
        found[p] = cost(x, y, w, v)

    callers = [threading.Thread(target=call, args=(p,)) for p in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert all(torch.equal(value, expected) for value in found)


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (5, 5), (6, 1), (1, 6)])
def test_gradients_are_those_of_the_cost(shape):
    problem = [t.requires_grad_() for t in batch(2, *shape, seed=sum(shape))]
    assert torch.autograd.gradcheck(cost, problem)


def test_gradient_in_float32_is_accurate_far_from_the_origin():
    x, y, *_ = batch(2)
    slopes = []
    for dtype in (torch.float64, torch.float32):
        z = (x.float() + 1000.0).to(dtype).requires_grad_()
        cost(z, (y.float() + 1000.0).to(dtype)).sum().backward()
        slopes.append(z.grad.double())
    torch.testing.assert_close(*slopes, rtol=1e-5, atol=1e-8)  # rounding of one float32 product


def test_float32_is_solved_in_float64():
    x, y, w, v = batch(dtype=torch.float32)
    W = wasserstein2(x, y, weights=w, atom_weights=v)
    assert W.cost.dtype == W.plan().dtype == W.potentials[0].dtype == torch.float32
    assert torch.equal(W.cost, cost(x.double(), y.double(), w, v).float())


def test_counts_are_exact_proportions_even_in_float32():
    """Atoms that want whole numbers of equal points get whole points: nothing is split by rounding."""
    x, y, *_ = batch(1, n=1000, k=7, dtype=torch.float32)
    W = wasserstein2(x, y, atom_weights=[100, 200, 300, 50, 250, 99, 1])
    assert ((W.plan() > 0).sum(-1) == 1).all()


def test_plans_with_cycles_are_returned_whole():
    """All costs equal: any plan is optimal, and one with more entries than a tree must not lose any."""
    n, k = 60, 12
    rng = np.random.default_rng(3)
    w, v = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(k))
    W = wasserstein2(torch.zeros(n, 1, dtype=D), torch.ones(k, 1, dtype=D), weights=w, atom_weights=v)
    torch.testing.assert_close(W.plan().sum(-1), torch.from_numpy(w), rtol=0, atol=1e-14)
    torch.testing.assert_close(W.plan().sum(-2), torch.from_numpy(v), rtol=0, atol=1e-14)
    assert W.cost.item() == pytest.approx(1.0, abs=1e-14)
    x, y = (torch.from_numpy(t).double() for t in (w, v))
    small = batches.solve_batch(*(t[None].numpy() for t in (x[:, None], y[:, None], x, y)), 3, 1)
    full = batches.solve_batch(*(t[None].numpy() for t in (x[:, None], y[:, None], x, y)), n * k, 1)
    assert small.entries == full.entries > 3  # too little room is reported, not overrun
    assert small.cost == full.cost


def test_potentials_of_empty_places_are_the_price_of_filling_them():
    """The cost's slope when a place without mass begins to get some, from one side."""
    x, y, w, v = batch(1, n=9, k=4)
    v[0, 2] = w[0, 5] = 0.0
    _, g = wasserstein2(x, y, weights=w, atom_weights=v).potentials
    f, _ = wasserstein2(x, y, weights=w, atom_weights=v).potentials
    v, w = v / v.sum(), w / w.sum()
    step = 1e-7
    up = (1 - step) * v + step * torch.eye(4, dtype=D)[2]
    assert (cost(x, y, w, up) - cost(x, y, w, v)).item() / step == pytest.approx(
        (g[0, 2] - g[0] @ v[0]).item(), rel=1e-6
    )
    up = (1 - step) * w + step * torch.eye(9, dtype=D)[5]
    assert (cost(x, y, up, v) - cost(x, y, w, v)).item() / step == pytest.approx(
        (f[0, 5] - f[0] @ w[0]).item(), rel=1e-6
    )


def test_many_sources_and_many_atoms():
    rng = np.random.default_rng(0)
    for n, k in ((3000, 8), (150, 150), (400, 60)):
        x, y, w, v = rng.normal(size=(n, 3)), rng.normal(size=(k, 3)), np.full(n, 1 / n), rng.dirichlet(np.ones(k))
        v = w if n == k else v
        peer = ot.emd2(w, v, ot.dist(x, y), numItermax=10**7)
        assert cost(torch.from_numpy(x), torch.from_numpy(y), w, v).item() == pytest.approx(peer, rel=1e-10)


BAD = torch.zeros(3, 2)
NAN, INF = (torch.tensor([[0.0, 1.0], [value, 0.0]]) for value in (torch.nan, torch.inf))


@pytest.mark.parametrize(
    ("arguments", "weights", "words"),
    [
        ((NAN, BAD), {}, "points has 1 non-finite"),
        ((BAD, INF), {}, "atoms has 1 non-finite"),
        ((torch.zeros(3), BAD), {}, "points must have shape"),
        ((BAD, torch.zeros(2)), {}, "atoms must have shape"),
        ((torch.zeros(0, 2), BAD), {}, "points must hold at least one point"),
        ((BAD, torch.zeros(2, 0)), {}, "atoms must hold at least one point"),
        ((BAD, torch.zeros(3, 1)), {}, "atoms must have the dimension of points"),
        ((torch.zeros(2, 3, 2), torch.zeros(4, 3, 2)), {}, "atoms must have a batch"),
        ((BAD, BAD), {"weights": [1, -1, 1]}, "weights must be non-negative"),
        ((BAD, BAD), {"atom_weights": [0, 0, 0]}, "atom_weights must not be all zero"),
        ((BAD, BAD), {"weights": [1, 1]}, "weights must have shape"),
        ((BAD, BAD), {"atom_weights": [1, torch.nan, 1]}, "atom_weights has 1 non-finite"),
        ((Empirical(BAD), BAD), {"weights": [1, 1, 1]}, "weights must be left out"),
        ((BAD.double() + 1e200, BAD), {}, "points must not exceed"),
        (("words", BAD), {}, "points must be an array of numbers"),
    ],
)
def test_bad_input_is_named(arguments, weights, words):
    with pytest.raises(ValueError, match=words):
        wasserstein2(*arguments, **weights)
