"""Squared distances, and the cheapest atoms of every source at given duals."""

from typing import NamedTuple

import numpy as np
from numba import njit

BLOCK = 256  # sources searched together, so that their two cheapest atoms stay in the cache


# Inlined by LLVM: a call that passes arrays costs more than the few instructions it would run. No NaN ever occurs,
# and saying so lets the plain loops use vector instructions; a sum does where its order is free ("reassoc").
def inlined_with(*freedoms: str):
    """The decorator of inlined functions; ``freedoms`` are further fast-math flags for the compiler."""
    return njit(cache=True, nogil=True, forceinline=True, fastmath={"nnan", "nsz", *freedoms}, error_model="numpy")


inlined = inlined_with()


class Choices(NamedTuple):
    """The two cheapest atoms of every source, (n,) each: their prices ``c_ij - g_j``, and which they are."""

    price: np.ndarray
    second: np.ndarray
    home: np.ndarray
    other: np.ndarray


@inlined
def squared_distances(x, y, cost):
    """|x_i - y_j|^2 into ``cost`` (k, n), from differences: no cancellation far from the origin. x is (d, n)."""
    for j in range(y.shape[1]):
        for i in range(x.shape[1]):
            cost[j, i] = 0.0
        for t in range(x.shape[0]):
            for i in range(x.shape[1]):
                step = x[t, i] - y[t, j]
                cost[j, i] += step * step


@inlined
def cheapest(cost, g, price, home):
    """The c-transform price_i = min_j c_ij - g_j, and the atom where it is attained."""
    for i in range(price.size):
        price[i], home[i] = np.inf, 0
    for j in range(g.size):
        for i in range(price.size):
            here = cost[j, i] - g[j]
            cheaper = here < price[i]
            price[i] = here if cheaper else price[i]
            home[i] = j if cheaper else home[i]


@inlined
def two_cheapest(cost, g, choices):
    """Fill in the choices at duals g, a block of sources at a time."""
    n = choices.price.size
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        price, second = choices.price[start:stop], choices.second[start:stop]
        home, other = choices.home[start:stop], choices.other[start:stop]
        for i in range(stop - start):
            price[i], second[i], home[i], other[i] = np.inf, np.inf, 0, 0
        for j in range(g.size):
            row, dual = cost[j, start:stop], g[j]
            for i in range(stop - start):
                here, least, least_at = row[i] - dual, price[i], home[i]
                cheaper = here < least
                price[i] = here if cheaper else least
                home[i] = j if cheaper else least_at
                rest = least if cheaper else here
                rest_at = least_at if cheaper else j
                closer = rest < second[i]
                second[i] = rest if closer else second[i]
                other[i] = rest_at if closer else other[i]
