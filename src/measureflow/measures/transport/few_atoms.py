"""Exact transport of many sources to few atoms: shortest augmenting paths on the graph of the atoms.

Every source starts at its cheapest atom under the duals; excess mass then moves along shortest paths to atoms that lack
mass. The edge from atom j to atom l costs the least ``c_il - c_ij`` over the sources i now at j, so a path is searched
among k nodes, not n + k. Masses are integers: they are conserved exactly, and every path moves at least one unit of the
excess, so the search ends. Each move costs the rounding error of a cost extra. So of equally short paths one with
fewest edges is taken, which keeps their number polynomial where many costs tie (Edmonds and Karp), and the plan is
optimal up to that rounding error.
"""

from typing import NamedTuple

import numpy as np

from measureflow.measures.transport.costs import inlined


class Shipments(NamedTuple):
    """Which source is where: ``member[j, :size[j]]`` lie at atom j, in amounts ``held[j, :size[j]]``."""

    cost: np.ndarray  # (k, n)
    member: np.ndarray  # (k, n)
    held: np.ndarray  # (k, n) integer masses
    size: np.ndarray  # (k,)
    parts: np.ndarray  # (n,) at how many atoms a source lies
    excess: np.ndarray  # (k,) mass held minus mass wanted
    least: np.ndarray  # (k, k) the cheapest move from j to l, the least c_il - c_ij
    place: np.ndarray  # (k, k) the place in the list of j of the source that makes it


class Search(NamedTuple):
    """The tree of shortest paths: each atom's distance, the same while it may still change, its parent, and who
    moves."""

    far: np.ndarray
    open: np.ndarray
    parent: np.ndarray
    mover: np.ndarray  # the place of the source that moves from the parent


@inlined
def _rescan(ship, j, l):
    """Find anew the cheapest move from atom j to atom l."""
    best, place = np.inf, -1
    for p in range(ship.size[j]):
        i = ship.member[j, p]
        move = ship.cost[l, i] - ship.cost[j, i]
        if move < best:
            best, place = move, p
    ship.least[j, l], ship.place[j, l] = best, place


@inlined
def _append(ship, i, j, amount):
    """Put ``amount`` of source i, of which nothing is there yet, at the end of the list of atom j."""
    ship.member[j, ship.size[j]], ship.held[j, ship.size[j]] = i, amount
    ship.size[j] += 1
    ship.parts[i] += 1


@inlined
def _leave(ship, j, p, amount):
    """Take ``amount`` of the p-th source at atom j away; if that is all of it, the last source takes its place."""
    ship.held[j, p] -= amount
    if ship.held[j, p] == 0:
        ship.parts[ship.member[j, p]] -= 1
        ship.size[j] -= 1
        last = ship.size[j]
        ship.member[j, p], ship.held[j, p] = ship.member[j, last], ship.held[j, last]
        for l in range(ship.size.size):
            if ship.place[j, l] == p:
                _rescan(ship, j, l)
            elif ship.place[j, l] == last:
                ship.place[j, l] = p


@inlined
def _join(ship, i, j, amount):
    """Put ``amount`` of source i at atom j, where a part of it may already be."""
    p = 0 if ship.parts[i] > 0 else ship.size[j]
    while p < ship.size[j] and ship.member[j, p] != i:
        p += 1
    if p < ship.size[j]:
        ship.held[j, p] += amount
    else:
        _append(ship, i, j, amount)
        for l in range(ship.size.size):
            move = ship.cost[l, i] - ship.cost[j, i]
            if move < ship.least[j, l]:
                ship.least[j, l], ship.place[j, l] = move, p


@inlined
def _start(ship, home, a, b):
    """Send every source whole to its home."""
    for j in range(b.size):
        ship.size[j], ship.excess[j] = 0, -b[j]
    for i in range(a.size):
        ship.parts[i] = 0
        if a[i] > 0:
            _append(ship, i, home[i], a[i])
            ship.excess[home[i]] += a[i]
    for j in range(b.size):
        for l in range(b.size):
            if l != j:
                _rescan(ship, j, l)
        ship.least[j, j], ship.place[j, j] = -np.inf, -1  # no source offers a move to where it is


@inlined
def _first_least(values):
    """The first index of the least value."""
    best = np.inf
    for l in range(values.size):
        best = min(best, values[l])
    l = 0
    while values[l] != best:
        l += 1
    return l


@inlined
def _relax(least, g, search, j, there):
    """Shorten the paths to all atoms by those through atom j, where a move costs ``there`` - g_l plus ``least``."""
    here = search.far[j]
    for l in range(g.size):
        far = max(here + (least[l] + there - g[l]), here)
        nearer = far < search.far[l]
        search.far[l] = far if nearer else search.far[l]
        search.open[l] = far if nearer else search.open[l]
        search.parent[l] = j if nearer else search.parent[l]


@inlined
def _shortest_path(ship, search, g, slack, toll):
    """Dijkstra from all atoms with excess to the nearest that lacks mass, or -1; g then makes the path cost nothing."""
    end = -1
    for l in range(g.size):
        search.far[l] = search.open[l] = np.inf
        search.parent[l] = -1
        if ship.excess[l] > slack:
            search.far[l] = search.open[l] = 0.0
            end = l
    while end >= 0 and ship.excess[end] >= 0:
        search.open[end] = np.inf
        _relax(ship.least[end], g, search, end, g[end] + toll)
        end = _first_least(search.open)
    if end >= 0:
        for l in range(g.size):
            g[l] -= max(search.far[end] - search.far[l], 0.0)
    return end


@inlined
def _straighten(ship, search, end):
    """Let no source move twice on the path: moves from j to l and later from m to r become one, which costs no more."""
    r = end
    while search.parent[r] >= 0:
        l = search.parent[r]
        search.mover[r] = ship.place[l, r]
        source = ship.member[l, ship.place[l, r]]
        while search.parent[l] >= 0:
            j = search.parent[l]
            if ship.member[j, ship.place[j, l]] == source:
                search.parent[r], search.mover[r] = j, ship.place[j, l]
            l = j
        r = search.parent[r]
    return r


@inlined
def _augment(ship, search, end):
    """Send along the path as much as the excess at its beginning, the lack at its end and its sources allow."""
    begin = _straighten(ship, search, end)
    amount = min(-ship.excess[end], ship.excess[begin])
    l = end
    while l != begin:
        amount = min(amount, ship.held[search.parent[l], search.mover[l]])
        l = search.parent[l]
    ship.excess[begin] -= amount
    ship.excess[end] += amount
    l = end
    while l != begin:  # backwards: a list is left before it is joined, so places stay valid
        j, p = search.parent[l], search.mover[l]
        source = ship.member[j, p]
        _leave(ship, j, p, amount)
        _join(ship, source, l, amount)
        l = j


@inlined
def repair(ship, search, home, a, b, g, slack, toll):
    """Shipments from integer masses a (n,) to b (k,) of the same total, optimal once no atom's excess is beyond slack.

    ``home`` is the cheapest atom of every source at the potentials g (k,), which become optimal too. Where an atom's
    potential is -inf nothing is sent to it.
    """
    _start(ship, home, a, b)
    end = _shortest_path(ship, search, g, slack, toll)
    while end >= 0:
        _augment(ship, search, end)
        end = _shortest_path(ship, search, g, slack, toll)
