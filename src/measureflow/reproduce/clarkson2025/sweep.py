r"""The sweep behind Figure 4: soft k-means at inverse temperature gamma beside Lloyd's algorithm, on the authors' grid.

Data and settings are those of the script that the authors published (see ``published/README.md``): k centres uniform in
[0, 1]^d, n // k points of standard deviation 0.1 at each, every column then stretched to [0, scale]; the first k of the
shuffled rows are the start. Gamma acts in the encoder's cross-attention alone and the decoder is linear, so that ten
layers are ten steps of soft k-means,

.. math:: c_j \leftarrow \sum_i p_{ij} x_i \Big/ \sum_i p_{ij}, \qquad p_{ij} \propto_j e^{-\gamma |x_i - c_j|^2}.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib.resources import files

import numpy as np
import pandas as pd
from numba import njit

from measureflow.mixtures.shared_noise import expectation

CLUSTERS, DIMENSIONS, SCALES = tuple(range(5, 55, 5)), tuple(range(1, 11)), tuple(range(1, 11))
POINTS = (100, 278, 774, 2154, 5994, 16681, 46415, 129154, 359381, 1_000_000)
GAMMAS = (1, 10, 100)
LAYERS = 10
CELL = ["k", "d", "n", "scale"]


def cells(n: int, clusters: tuple, dimensions: tuple, scales: tuple, draws: int = 1) -> Iterator[dict]:
    """One row for each k, d and scale: the mean difference of the log objectives at every gamma."""
    for k in clusters:
        for d in dimensions:
            for scale in scales:
                found = pd.DataFrame([differences(draw(k, d, n, scale, i), k) for i in range(draws)])
                yield {"k": k, "d": d, "n": n, "scale": scale} | found.mean().to_dict()  # without the nan


def differences(X: np.ndarray, k: int) -> dict[str, float]:
    """Log objective of the transformer's centres after ten layers minus that of Lloyd's, at every gamma.

    It is nan where Lloyd's algorithm meets an empty cluster, as in the authors' file.
    """
    C, empty = _lloyd(X, X[:k], LAYERS)
    exact = math.nan if empty else math.log(objective(X, C))
    soft = {f"gamma {gamma}": steps(X, X[:k], float(gamma), LAYERS) for gamma in GAMMAS}
    return {name: math.log(objective(X, C)) - exact for name, C in soft.items()}


def draw(k: int, d: int, n: int, scale: float, number: int = 0) -> np.ndarray:
    """The points of one draw of a cell, (k * (n // k), d)."""
    rng = np.random.default_rng([k, d, n, round(scale), number])
    centers = rng.uniform(size=(k, 1, d))
    X = (centers + 0.1 * rng.normal(size=(k, n // k, d))).reshape(-1, d)
    X -= X.min(0)
    return rng.permutation(X / X.max(0) * scale)


def steps(X: np.ndarray, C: np.ndarray, gamma: float, layers: int) -> np.ndarray:
    """Centres after some steps of soft k-means, of Lloyd's algorithm if gamma is infinite.

    The soft step is EM's for equal masses and a variance of 1 / (2 gamma).
    """
    if math.isinf(gamma):
        return _lloyd(X, C, layers)[0]
    ones, masses = np.ones(len(X)), np.ones(len(C))
    for _ in range(layers):
        _, won, moved, _ = map(np.asarray, expectation(X, ones, C, masses, 0.5 / gamma))
        C = np.where(won[:, None] > 0, moved / np.where(won > 0, won, 1.0)[:, None], C)
    return C


@njit(cache=True)
def _lloyd(X, C, layers):
    """Centres after some iterations of Lloyd's algorithm, and whether a cluster was empty, which keeps its centre."""
    n, d = X.shape
    C, k, empty = C.copy(), len(C), False
    for _ in range(layers):
        mass, moved = np.zeros(k), np.zeros((k, d))
        for i in range(n):
            nearest, least = 0, np.inf
            for j in range(k):
                gap = 0.0
                for a in range(d):
                    gap += (X[i, a] - C[j, a]) ** 2
                if gap < least:
                    nearest, least = j, gap
            mass[nearest] += 1
            for a in range(d):
                moved[nearest, a] += X[i, a]
        for j in range(k):
            if mass[j] > 0:
                C[j] = moved[j] / mass[j]
            else:
                empty = True
    return C, empty


@njit(cache=True)
def objective(X, C):
    """The k-means objective: the sum of squared distances to the nearest centre."""
    total = 0.0
    for i in range(len(X)):
        least = np.inf
        for j in range(len(C)):
            gap = 0.0
            for a in range(X.shape[1]):
                gap += (X[i, a] - C[j, a]) ** 2
            least = min(least, gap)
        total += least
    return total


def published() -> pd.DataFrame:
    """The authors' losses: one row for each cell, a column for each gamma; nan where theirs is."""
    path = files("measureflow.reproduce") / "published" / "clarkson2025-sweep.csv.xz"
    with path.open("rb") as file:
        return pd.read_csv(file, compression="xz")
