r"""Duals to start from: Newton's method on the dual, whose second derivative is the mass at the borders of the atoms.

The dual :math:`\sum_i a_i \min_j (c_{ij} - g_j) + \sum_j b_j g_j` has the slope :math:`b_j` minus the mass whose
cheapest atom is j. At the border of atoms j and l lie the sources for which these two are cheapest and differ by less
than h; when :math:`g_l - g_j` grows by u, a share u / 2h of their mass changes sides. So minus the second derivative is
the Laplacian of the graph of the atoms whose edges weigh these masses over 2h [Kitagawa, Merigot and Thibert 2019].
"""

from typing import NamedTuple

import numpy as np

from measureflow.measures.transport.costs import inlined, inlined_with, two_cheapest

WIDTH = 0.3  # h, in mean differences of the two cheapest: enough sources to count, and no other border among them
REACH = 6.0  # widths that a dual may move at most
RIDGE = 0.1  # of the mean diagonal: the Laplacian is blind to a common shift, and nearly so to an atom of few sources

summed = inlined_with("reassoc")


class Newton(NamedTuple):
    """Buffers of a step: the Laplacian (k, k), the step (k,), the duals before it, and mass held minus mass wanted."""

    laplacian: np.ndarray
    step: np.ndarray
    before: np.ndarray
    excess: np.ndarray
    border: np.ndarray  # (n,) the sources at the borders


@inlined
def improve(cost, a, b, g, choices, newton):
    """One Newton step from the duals g, undone if it makes the excess larger; the choices are those at the final g."""
    two_cheapest(cost, g, choices)
    width = WIDTH * _mean_gap(choices.price, choices.second)
    excess = _too_much(a, b, choices.home, newton.excess)
    if excess == 0 or width == 0:
        return
    for j in range(g.size):
        newton.before[j] = g[j]
    _step(a, g, choices, newton, width)
    two_cheapest(cost, g, choices)
    if _too_much(a, b, choices.home, newton.excess) > excess:
        for j in range(g.size):
            g[j] = newton.before[j]
        two_cheapest(cost, g, choices)


@inlined
def _too_much(a, b, home, excess):
    """The mass whose home is each atom minus the atom's own mass, and the sum of the positive differences."""
    for j in range(b.size):
        excess[j] = -b[j]
    for i in range(a.size):
        excess[home[i]] += a[i]
    total = 0
    for j in range(b.size):
        total += max(excess[j], 0)
    return total


@summed
def _mean_gap(price, second):
    """The mean difference of the two cheapest prices."""
    total = 0.0
    for i in range(price.size):
        total += second[i] - price[i]
    return total / price.size


@inlined
def _step(a, g, choices, newton, width):
    """Move g by the solution u of Laplacian u = -excess, by no more than REACH widths."""
    L, u, k = newton.laplacian, newton.step, g.size
    for j in range(k):
        u[j] = -newton.excess[j]
        for l in range(k):
            L[j, l] = 0.0
    m = 0
    for i in range(a.size):
        newton.border[m] = i
        m += choices.second[i] - choices.price[i] < width
    for p in range(m):
        i = newton.border[p]
        L[choices.home[i], choices.other[i]] -= a[i] / (2 * width)
    ridge = _symmetrise(L) * RIDGE / k
    if ridge > 0:
        for j in range(k):
            L[j, j] += ridge
        _solve(L, u)
        scale = min(1.0, REACH * width / _largest(u))
        for j in range(k):
            g[j] += scale * u[j]


@inlined
def _largest(u):
    """The largest absolute value of an entry."""
    largest = 0.0
    for j in range(u.size):
        largest = max(largest, abs(u[j]))
    return largest


@inlined
def _symmetrise(L):
    """Add the transpose, put minus the sums of the rows on the diagonal, and return its sum."""
    total = 0.0
    for j in range(len(L)):
        for l in range(j):
            L[j, l] = L[l, j] = L[j, l] + L[l, j]
    for j in range(len(L)):
        for l in range(len(L)):
            if l != j:
                L[j, j] -= L[j, l]
        total += L[j, j]
    return total


@inlined
def _solve(A, u):
    """Overwrite u by the solution of A u = u, A being symmetric and positive definite: elimination without pivots."""
    k = u.size
    for j in range(k):
        for l in range(j + 1, k):
            factor = A[l, j] / A[j, j]
            if factor != 0.0:
                for m in range(j, k):
                    A[l, m] -= factor * A[j, m]
                u[l] -= factor * u[j]
    for j in range(k - 1, -1, -1):
        for l in range(j + 1, k):
            u[j] -= A[j, l] * u[l]
        u[j] /= A[j, j]
