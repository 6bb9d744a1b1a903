"""Duals from samples and from Newton's steps: they may save time, and must never cost the answer."""

import numpy as np
import pytest
from numba import njit

from measureflow.measures.transport.costs import two_cheapest
from measureflow.measures.transport.duals import _too_much, improve
from measureflow.measures.transport.levels import make_level
from network_simplex import assert_optimal

N, K = 700, 6  # enough sources for every level


def draw(kind: str, rng: np.random.Generator):
    """Points, atoms and weights for which sampling every 4th or 16th source says little, or something wrong."""
    x, y = rng.normal(size=(N, 2)), rng.normal(size=(K, 2))
    w, v = rng.dirichlet(np.ones(N)), rng.dirichlet(np.ones(K))
    if kind == "no mass where the samples are":
        w[::4] = 0.0
    if kind == "mass only where the samples are":
        w[np.arange(N) % 16 > 0] = 0.0
    if kind == "samples from elsewhere":
        x[::4] += 30.0
    if kind == "one point far off":
        x[5] = 1e6
    if kind == "one atom far off":
        y[2] = 1e4
    if kind == "atoms on top of each other":
        y[1:4] = y[0]
    if kind == "all costs equal":
        x, y = np.zeros_like(x), np.ones_like(y)
    if kind == "grid":
        x, y = rng.integers(-1, 2, x.shape).astype(float), rng.integers(-1, 2, y.shape).astype(float)
    if kind == "one atom wants all":
        v = np.eye(K)[3]
    if kind == "one atom wants nearly nothing":
        v[0] = 1e-12
    if kind == "uneven":
        w, v = w**6, v**6
    return x, y, w / w.sum(), v / v.sum()


KINDS = [
    "generic", "no mass where the samples are", "mass only where the samples are", "samples from elsewhere",
    "one point far off", "one atom far off", "atoms on top of each other", "all costs equal", "grid",
    "one atom wants all", "one atom wants nearly nothing", "uneven",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_bad_samples_do_not_change_the_answer(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    unit = N * 2.0**-50  # the heaviest takes what rounding to units leaves over, half a unit a point at most
    for _ in range(8):
        assert_optimal(*draw(kind, rng), margin=unit)


@njit
def step(cost, a, b, g):
    """The excess before and after one call of `improve`, and the atoms it says are cheapest."""
    n, k = len(a), len(b)
    level = make_level(n, k, 1)
    two_cheapest(cost, g, level.choices)
    before = _too_much(a, b, level.choices.home, level.newton.excess)
    improve(cost, a, b, g, level.choices, level.newton)
    return before, _too_much(a, b, level.choices.home, level.newton.excess), level.choices.home


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_of_newton_never_makes_the_excess_larger(kind):
    rng = np.random.default_rng(100 + KINDS.index(kind))
    for _ in range(20):
        x, y, w, v = draw(kind, rng)
        a, b = (np.rint(masses * 2**40).astype(np.int64) for masses in (w, v))
        g = 0.1 * rng.normal(size=K)
        cost = np.ascontiguousarray(((x[:, None] - y) ** 2).sum(-1).T)
        before, after, home = step(cost, a, b, g)
        assert after <= before
        assert np.isfinite(g).all()
        assert np.array_equal(home, (cost - g[:, None]).argmin(0))


def test_a_step_of_newton_halves_a_small_excess():
    """Near the optimum the dual is smooth as far as the sources are many: here ten times those of the tests above."""
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(20):
        x, y = rng.normal(size=(10 * N, 2)), rng.normal(size=(K, 2))
        cost = np.ascontiguousarray(((x[:, None] - y) ** 2).sum(-1).T)
        true = 0.3 * rng.normal(size=K)
        a = np.full(10 * N, 2**30)
        b = np.bincount((cost - true[:, None]).argmin(0), minlength=K) * 2**30
        g = true + 0.05 * rng.normal(size=K)
        before, after, _ = step(cost, a, b, g)
        ratios.append(after / before)
    assert np.median(ratios) < 0.5
