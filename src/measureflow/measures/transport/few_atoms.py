"""Exact transport of many sources to few atoms: shortest augmenting paths on the graph of the atoms.

Every source starts at the atom its dual prefers; what an atom holds too much then moves along shortest paths to atoms
that hold too little. The edge from atom j to atom l costs the least ``c_il - c_ij`` over the sources i now at j, so a
path is found among k nodes, not n + k. Masses are integers: they are conserved exactly, no source is ever left with a
crumb, and every path moves at least one unit of the excess, so the search ends.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, prange

UNITS = 1 << 50  # mass one, in integer units: coarser than the rounding of a float64 weight, finer than 1e-15


class Shipments(NamedTuple):
    """Who is where. Sources ``member[j, :size[j]]`` lie at atom j, in amounts ``held[j, :size[j]]``."""

    cost: np.ndarray  # (n, k)
    member: np.ndarray  # (k, n)
    held: np.ndarray  # (k, n) integer masses
    size: np.ndarray  # (k,)
    parts: np.ndarray  # (n,) at how many atoms a source lies
    excess: np.ndarray  # (k,) mass held minus mass wanted
    least: np.ndarray  # (k, k) cheapest move j -> l: least c_il - c_ij over the sources i at j
    via: np.ndarray  # (k, k) the source that attains it


class Search(NamedTuple):
    """Scratch of the path search: distance, number of edges, predecessor, finality, who moves and from which place."""

    far: np.ndarray
    hops: np.ndarray
    parent: np.ndarray
    final: np.ndarray
    mover: np.ndarray
    place: np.ndarray


@njit(cache=True, nogil=True)
def squared_distances(x, y):
    """The cost matrix |x_i - y_j|^2, (n, k), from differences: no cancellation far from the origin."""
    n, k = x.shape[0], y.shape[0]
    cost = np.zeros((n, k))
    columns = y.T.copy()
    for i in range(n):
        for t in range(x.shape[1]):
            for j in range(k):
                step = x[i, t] - columns[t, j]
                cost[i, j] += step * step
    return cost


@njit(cache=True, nogil=True)
def in_units(masses, total):
    """Masses as integers that sum to ``total``; what rounding leaves over goes to the first sources, one unit each."""
    scale = total / masses.sum()
    units = np.empty(masses.size, np.int64)
    for i in range(masses.size):
        units[i] = np.int64(np.rint(masses[i] * scale))
    left = total - units.sum()
    sign = np.int64(1) if left > 0 else np.int64(-1)
    while left != 0:
        for i in range(masses.size):
            if left != 0 and masses[i] > 0 and units[i] + sign >= 0:
                units[i] += sign
                left -= sign
    return units


@njit(cache=True, nogil=True)
def _rescan(ship, j, l):
    """Find anew the cheapest move from atom j to atom l."""
    best, who = np.inf, -1
    for p in range(ship.size[j]):
        i = ship.member[j, p]
        move = ship.cost[i, l] - ship.cost[i, j]
        if move < best:
            best, who = move, i
    ship.least[j, l] = best
    ship.via[j, l] = who


@njit(cache=True, nogil=True)
def _place(ship, i, j):
    """Where source i stands in the list of atom j, or the end of the list."""
    p = 0
    while p < ship.size[j] and ship.member[j, p] != i:
        p += 1
    return p


@njit(cache=True, nogil=True)
def _leave(ship, j, p, amount):
    """Take ``amount`` of the p-th source at atom j away."""
    ship.held[j, p] -= amount
    if ship.held[j, p] > 0:
        return
    i = ship.member[j, p]
    ship.size[j] -= 1
    ship.parts[i] -= 1
    ship.member[j, p] = ship.member[j, ship.size[j]]
    ship.held[j, p] = ship.held[j, ship.size[j]]
    for l in range(ship.size.size):
        if ship.via[j, l] == i:
            _rescan(ship, j, l)


@njit(cache=True, nogil=True)
def _join(ship, i, j, amount):
    """Put ``amount`` of source i at atom j."""
    p = ship.size[j] if ship.parts[i] == 0 else _place(ship, i, j)
    if p < ship.size[j]:
        ship.held[j, p] += amount
        return
    ship.member[j, p] = i
    ship.held[j, p] = amount
    ship.size[j] += 1
    ship.parts[i] += 1
    base = ship.cost[i, j]
    for l in range(ship.size.size):
        move = ship.cost[i, l] - base
        if move < ship.least[j, l]:
            ship.least[j, l] = move
            ship.via[j, l] = i


@njit(cache=True, nogil=True)
def _start(ship, sources, masses, wanted, g):
    """Every source goes whole to the atom of least c_ij - g_j."""
    k = g.size
    ship.size[:] = 0
    ship.least[:] = np.inf
    ship.via[:] = -1
    for j in range(k):
        ship.excess[j] = -wanted[j]
    for s in range(sources.size):
        i = sources[s]
        best, home = np.inf, 0
        for j in range(k):
            price = ship.cost[i, j] - g[j]
            if price < best:
                best, home = price, j
        ship.parts[i] = 0
        ship.excess[home] += masses[s]
        _join(ship, i, home, masses[s])


@njit(cache=True, nogil=True)
def _shortest_path(ship, search, g, slack, tie):
    """Dijkstra from all atoms with excess to the nearest that lacks mass; of equal paths, one of fewest edges."""
    k = g.size
    for j in range(k):
        search.final[j] = False
        search.parent[j] = -1
        search.hops[j] = 0
        search.far[j] = 0.0 if ship.excess[j] > slack else np.inf
    while True:
        j = -1
        for l in range(k):
            if not search.final[l] and (
                j < 0
                or search.far[l] < search.far[j]
                or (search.far[l] == search.far[j] and search.hops[l] < search.hops[j])
            ):
                j = l
        if ship.excess[j] < 0:
            return j
        search.final[j] = True
        for l in range(k):
            if not search.final[l]:
                extra = ship.least[j, l] + g[j] - g[l]
                far = search.far[j] + extra if extra > tie else search.far[j]
                if far < search.far[l] or (far == search.far[l] and search.hops[j] + 1 < search.hops[l]):
                    search.far[l], search.hops[l], search.parent[l] = far, search.hops[j] + 1, j


@njit(cache=True, nogil=True)
def _straighten(ship, search, end):
    """Let no source move twice on the path: from j to l and later from m to r is from j to r, and no dearer."""
    r = end
    while search.parent[r] >= 0:
        m = search.parent[r]
        i = ship.via[m, r]
        search.mover[r] = i
        l = m
        while search.parent[l] >= 0:
            j = search.parent[l]
            if ship.via[j, l] == i:
                search.parent[r] = j
            l = j
        r = search.parent[r]
    return r


@njit(cache=True, nogil=True)
def _augment(ship, search, end):
    """Send along the path to ``end`` as much as its first excess, its last lack and the sources on it allow."""
    begin = _straighten(ship, search, end)
    amount = min(-ship.excess[end], ship.excess[begin])
    l = end
    while l != begin:
        j = search.parent[l]
        search.place[l] = _place(ship, search.mover[l], j)
        amount = min(amount, ship.held[j, search.place[l]])
        l = j
    ship.excess[begin] -= amount
    ship.excess[end] += amount
    l = end
    while l != begin:  # backwards: a list is left before it is joined, so the places stay true
        j = search.parent[l]
        _leave(ship, j, search.place[l], amount)
        _join(ship, search.mover[l], l, amount)
        l = j


@njit(cache=True, nogil=True)
def _balance(ship, search, g, slack, tie):
    """Repair every excess above ``slack``; g stays a dual for which all shipments are cheapest."""
    while ship.excess.max() > slack:
        end = _shortest_path(ship, search, g, slack, tie)
        for j in range(g.size):
            if search.final[j]:
                g[j] -= search.far[end] - search.far[j]
        _augment(ship, search, end)


@njit(cache=True, nogil=True)
def _solve(cost, a, b):
    """Optimal shipments and atom potentials for integer masses a (n,), b (k,) of equal totals, all positive.

    The duals come from every 16th source, then every 4th: a good dual leaves little to repair.
    """
    n, k = cost.shape
    ship = Shipments(
        cost,
        np.empty((k, n), np.int32),
        np.empty((k, n), np.int64),
        np.zeros(k, np.int64),
        np.zeros(n, np.int32),
        np.zeros(k, np.int64),
        np.empty((k, k)),
        np.empty((k, k), np.int32),
    )
    search = Search(
        np.empty(k),
        np.empty(k, np.int64),
        np.empty(k, np.int64),
        np.empty(k, np.bool_),
        np.empty(k, np.int64),
        np.empty(k, np.int64),
    )
    g = np.zeros(k)
    total = b.sum()
    tie = (
        4 * np.finfo(np.float64).eps * cost.max()
    )  # nearer than rounding is a tie: paths of equal cost stay equal
    for stride in (16, 4, 1):
        sources = np.arange(0, n, stride)
        if stride == 1:
            _start(ship, sources, a, b, g)
            _balance(ship, search, g, 0, tie)
        elif sources.size >= 2 * k:
            masses = in_units(a[sources].astype(np.float64), total)
            _start(ship, sources, masses, b, g)
            _balance(ship, search, g, total // (2 * sources.size), tie)
    return ship, g


@njit(cache=True, nogil=True)
def _c_transform(cost, g, use):
    """f_i = min_j c_ij - g_j over the atoms in use."""
    f = np.full(cost.shape[0], np.inf)
    for i in range(f.size):
        for j in use:
            f[i] = min(f[i], cost[i, j] - g[j])
    return f


@njit(cache=True, nogil=True)
def _report(ship, sources, atoms, total, rows, columns, masses):
    """Write the plan as (row, column, mass) and return its cost and its length."""
    value, m = 0.0, 0
    for j in range(atoms.size):
        for p in range(ship.size[j]):
            i = ship.member[j, p]
            mass = ship.held[j, p] / total
            value += mass * ship.cost[i, j]
            if m < rows.size:
                rows[m], columns[m], masses[m] = sources[i], atoms[j], mass
            m += 1
    return value, m


@njit(cache=True, nogil=True)
def _one(x, y, a, b, total, f, g, rows, columns, masses):
    """Solve one problem among the points and atoms that have mass; extend the duals to those that have none."""
    a_units, b_units = in_units(a, total), in_units(b, total)
    sources, atoms = np.nonzero(a_units)[0], np.nonzero(b_units)[0]
    cost = squared_distances(x, y)
    whole = sources.size == a.size and atoms.size == b.size
    part = cost if whole else squared_distances(x[sources], y[atoms])
    ship, dual = _solve(part, a_units[sources], b_units[atoms])
    g[:] = 0.0
    g[atoms] = dual
    f[:] = _c_transform(cost, g, atoms)
    if atoms.size < b.size:
        g[:] = _c_transform(cost.T, f, np.arange(a.size))
    return _report(ship, sources, atoms, total, rows, columns, masses)


def _batch(x, y, a, b, capacity):
    """Solve a batch: costs (B,), potentials (B, n), (B, k), plan entries (B, capacity) and their number (B,)."""
    B, n, k = x.shape[0], x.shape[1], y.shape[1]
    total = UNITS // (n * k) * (n * k)  # uniform weights on either side are then whole numbers
    value, count = np.empty(B), np.empty(B, np.int64)
    f, g = np.empty((B, n)), np.empty((B, k))
    rows, columns = np.zeros((B, capacity), np.int64), np.zeros((B, capacity), np.int64)
    masses = np.zeros((B, capacity))
    for p in prange(B):
        value[p], count[p] = _one(x[p], y[p], a[p], b[p], total, f[p], g[p], rows[p], columns[p], masses[p])
    return value, f, g, rows, columns, masses, count


solve_in_parallel = njit(cache=True, nogil=True, parallel=True)(_batch)
solve_in_turn = njit(cache=True, nogil=True)(_batch)
