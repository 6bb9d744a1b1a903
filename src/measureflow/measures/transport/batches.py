"""Batches of exact transport problems: integer masses, costs, certificates, a share of the work for each thread."""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import njit

from measureflow.measures.transport.costs import cheapest, inlined, squared_distances
from measureflow.measures.transport.levels import make_levels, solve

UNITS = 1 << 50  # mass one: coarser than the rounding of float64 weights, so that equal masses stay equal
EPS = np.finfo(np.float64).eps
SMALL = 1 << 16  # cost entries below which a second thread takes longer to start than to help


class Solutions(NamedTuple):
    """Costs and gaps (B,), potentials (B, n), (B, k), plans: ``entries`` (B,) cells i k + j and their amounts."""

    cost: np.ndarray
    gap: np.ndarray
    f: np.ndarray
    g: np.ndarray
    cells: np.ndarray
    amounts: np.ndarray
    entries: np.ndarray


@inlined
def _rounding(x, y):
    """The rounding error of the largest cost, bounded by the box around all points; costs that differ by less tie."""
    square = 0.0
    for t in range(x.shape[0]):
        low = high = y[t, 0]
        for i in range(x.shape[1]):
            low, high = min(low, x[t, i]), max(high, x[t, i])
        for j in range(y.shape[1]):
            low, high = min(low, y[t, j]), max(high, y[t, j])
        square += (high - low) ** 2
    return 8 * EPS * square


@inlined
def _feasible(cost, b, f, g, home):
    """Duals with f_i + g_j <= c_ij from g alone; an atom of mass zero gets the highest feasible value."""
    cheapest(cost, g, f, home)
    for j in range(g.size):
        if b[j] == 0:
            g[j] = np.inf
            for i in range(f.size):
                g[j] = min(g[j], cost[j, i] - f[i])


@inlined
def _mean(values, weights):
    mean = 0.0
    for i in range(values.size):
        mean += values[i] * weights[i]
    return mean


@inlined
def _center(f, g, w, v):
    """Shift the duals, which leaves their sums alone, until both have the same mean; return that of the sums."""
    on_points, on_atoms = _mean(f, w), _mean(g, v)
    shift = (on_points - on_atoms) / 2
    for i in range(f.size):
        f[i] -= shift
    for j in range(g.size):
        g[j] += shift
    return on_points + on_atoms


@inlined
def _write_plan(ship, total, cells, amounts):
    """Write the plan's entries as far as they fit, then zeros; return its cost and their number."""
    k, cost, m = ship.size.size, 0.0, 0
    for j in range(k):
        for p in range(ship.size[j]):
            i = ship.member[j, p]
            mass = ship.held[j, p] / total
            cost += mass * ship.cost[j, i]
            if m < cells.size:
                cells[m], amounts[m] = i * k + j, mass
            m += 1
    for p in range(m, cells.size):
        cells[p], amounts[p] = 0, 0.0
    return cost, m


@njit(cache=True, nogil=True)
def _share(first, step, x, y, w, v, a, b, total, out):
    """Problems first, first + step, ... of the batch: x (B, d, n), y (B, d, k), masses also as units a, b."""
    n, k = x.shape[2], y.shape[2]  # buffers serve all problems: fresh memory would cost more than the work
    levels = make_levels(n, k)
    ship, home = levels[-1].ship, levels[-1].choices.home
    for p in range(first, x.shape[0], step):
        f, g = out.f[p], out.g[p]
        squared_distances(x[p], y[p], ship.cost)
        solve(levels, a[p], b[p], g, _rounding(x[p], y[p]))
        out.cost[p], out.entries[p] = _write_plan(ship, total, out.cells[p], out.amounts[p])
        _feasible(ship.cost, b[p], f, g, home)
        out.gap[p] = out.cost[p] - _center(f, g, w[p], v[p])


def in_units(weights: np.ndarray, total: int) -> np.ndarray:
    """Probabilities (B, n) as integers that sum to ``total``; the largest takes the units that rounding leaves over.

    >>> in_units(np.array([[0.3, 0.7, 0.0], [1 / 3, 1 / 3, 1 / 3]]), 10)
    array([[3, 7, 0],
           [4, 3, 3]])
    """
    if weights.strides[0] == 0 and len(weights) > 1:  # one row, broadcast
        return np.broadcast_to(in_units(weights[:1], total), weights.shape).copy()
    units = np.rint(weights * total).astype(np.int64)
    units[np.arange(len(units)), weights.argmax(-1)] += total - units.sum(-1)
    return units


def solve_batch(x, y, w, v, capacity: int, threads: int) -> Solutions:
    """Transport from x (B, n, d) of probabilities w (B, n) to y (B, k, d) of probabilities v (B, k), in float64.

    The answer does not depend on ``threads``: every problem is solved by one of them.
    """
    B, n, k = *x.shape[:2], y.shape[1]
    total = UNITS // (n * k) * (n * k)  # uniform masses on either side are then whole numbers
    duals, plans = (np.empty((B, n)), np.empty((B, k))), (np.empty((B, capacity), np.int64), np.empty((B, capacity)))
    out = Solutions(np.empty(B), np.empty(B), *duals, *plans, np.zeros(B, np.int64))
    columns = x.swapaxes(1, 2).copy(), y.swapaxes(1, 2).copy()
    w, v = np.ascontiguousarray(w), np.ascontiguousarray(v)  # another memory layout would be compiled again
    problem = (*columns, w, v, in_units(w, total), in_units(v, total), total, out)
    threads = min(threads, B) if B * n * k > SMALL else 1
    if threads == 1:
        _share(0, 1, *problem)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda first: _share(first, threads, *problem), range(threads)))
    return out
