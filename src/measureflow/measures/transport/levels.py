"""From few sources to all: every 16th source gives duals for every 4th, and these for all of them.

Good duals leave little to repair. On each level those of the level before are improved by Newton's steps, then
shortest paths repair what is left; on the last that makes them, and the shipments, optimal.
"""

from typing import NamedTuple

import numpy as np

from measureflow.measures.transport.costs import Choices, inlined
from measureflow.measures.transport.duals import Newton, improve
from measureflow.measures.transport.few_atoms import Search, Shipments, repair

STRIDES = (16, 4, 1)


class Level(NamedTuple):
    """Some of the sources: their masses in integer units (m,), and buffers for them."""

    units: np.ndarray
    ship: Shipments
    search: Search
    choices: Choices
    newton: Newton


@inlined
def make_level(n, k, stride):
    """Buffers for every ``stride``-th of n sources; for none if these are too few for k atoms."""
    m = (n + stride - 1) // stride if stride == 1 or n >= 2 * stride * k else 0
    ship = Shipments(
        np.empty((k, m)),
        np.empty((k, m), np.int32),
        np.empty((k, m), np.int64),
        np.empty(k, np.int64),
        np.empty(m, np.int32),
        np.empty(k, np.int64),
        np.empty((k, k)),
        np.empty((k, k), np.int64),
    )
    search = Search(np.empty(k), np.empty(k), np.empty(k, np.int64), np.empty(k, np.int64))
    choices = Choices(np.empty(m), np.empty(m), np.empty(m, np.int64), np.empty(m, np.int64))
    newton = Newton(np.empty((k, k)), np.empty(k), np.empty(k), np.empty(k, np.int64), np.empty(m, np.int64))
    return Level(np.empty(m, np.int64), ship, search, choices, newton)


@inlined
def make_levels(n, k):
    """A level for each stride; a tuple of known length, as numba wants it."""
    return make_level(n, k, STRIDES[0]), make_level(n, k, STRIDES[1]), make_level(n, k, STRIDES[2])


@inlined
def _sample(level, cost, a, stride, total):
    """Costs and masses of every ``stride``-th source, grown to the total; whether there is any mass to grow."""
    units, sampled, most = level.units, 0, 0
    for i in range(units.size):
        units[i] = a[i * stride]
        sampled += units[i]
        most = i if units[i] > units[most] else most
    if sampled == 0:
        return False
    left = total
    for i in range(units.size):
        units[i] = int(units[i] * (total / sampled))
        left -= units[i]
    units[most] += left  # units lost to rounding: without them excess and lack would not match
    for j in range(len(cost)):
        for i in range(units.size):
            level.ship.cost[j, i] = cost[j, i * stride]
    return True


@inlined
def solve(levels, a, b, g, toll):
    """Optimal shipments on the last level, whose costs are given, and potentials g (k,), for masses a (n,) and b (k,).

    An atom of mass zero gets the potential -inf, so that nothing is sent to it.
    """
    total = b.sum()
    cost = levels[-1].ship.cost
    for j in range(b.size):
        g[j] = 0.0 if b[j] > 0 else -np.inf
    for r in range(len(STRIDES)):
        level, stride = levels[r], STRIDES[r]
        if stride == 1:
            for i in range(a.size):
                level.units[i] = a[i]
        elif level.units.size == 0 or not _sample(level, cost, a, stride, total):
            continue
        improve(level.ship.cost, level.units, b, g, level.choices, level.newton)
        slack = 0 if stride == 1 else total * stride // a.size
        repair(level.ship, level.search, level.choices.home, level.units, b, g, slack, toll)
