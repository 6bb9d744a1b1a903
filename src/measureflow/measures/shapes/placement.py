"""Where the centres of clusters lie, and how far apart: they are scaled until clusters overlap as much as was drawn."""

from __future__ import annotations

import numpy as np

from measureflow.measures.shapes.catalogue import Rng, directions, pick


def scattered(rng: Rng, K: int, d: int) -> np.ndarray:
    """Normal centres."""
    return rng.standard_normal((K, d))


def filling_a_box(rng: Rng, K: int, d: int) -> np.ndarray:
    """Centres uniform in a cube."""
    return rng.uniform(-1, 1, (K, d))


def in_a_subspace(rng: Rng, K: int, d: int) -> np.ndarray:
    """Centres that differ along a few axes only, so most of what the columns say is noise."""
    r = int(rng.integers(1, min(d, 4) + 1))
    return rng.standard_normal((K, r)) @ rng.standard_normal((r, d))


def in_some_columns(rng: Rng, K: int, d: int) -> np.ndarray:
    """Centres that differ in a few columns only."""
    informative = rng.random(d) < rng.uniform(0.2, 0.8)
    informative[rng.integers(d)] = True
    return rng.standard_normal((K, d)) * informative


def in_families(rng: Rng, K: int, d: int) -> np.ndarray:
    """Groups of clusters far from one another."""
    families = int(rng.integers(2, max(3, K // 2 + 1)))
    return rng.standard_normal((families, d))[rng.integers(families, size=K)] * rng.uniform(2, 6) + scattered(rng, K, d)


def on_a_lattice(rng: Rng, K: int, d: int) -> np.ndarray:
    """The knots of a grid, shaken a little."""
    side = int(np.ceil(K ** (1 / min(d, 3))))
    knots = np.stack(np.meshgrid(*[np.arange(side)] * min(d, 3), indexing="ij"), -1).reshape(-1, min(d, 3))
    centers = np.zeros((K, d))
    centers[:, : knots.shape[1]] = knots[rng.permutation(len(knots))[:K]]
    return centers + rng.uniform(0, 0.2) * scattered(rng, K, d)


def in_a_row(rng: Rng, K: int, d: int) -> np.ndarray:
    """One after the other along a line, or nearly."""
    return np.arange(K)[:, None] * directions(rng, 1, d) + rng.uniform(0, 0.3) * scattered(rng, K, d)


def spread_out(rng: Rng, K: int, d: int) -> np.ndarray:
    """Normal centres that have pushed one another away."""
    centers = scattered(rng, K, d)
    reach = 1.5 * np.sqrt(d)
    for _ in range(10):
        gaps = centers[:, None] - centers[None]
        distances = np.sqrt((gaps**2).sum(-1)) + np.eye(K) * 9 * reach
        push = np.maximum(1 - distances / reach, 0) / distances
        centers = centers + 0.3 * reach * (push[..., None] * gaps).sum(1)
    return centers


# Each placement with how often it is drawn, in parts.
PLACEMENTS = {
    scattered: 25,
    filling_a_box: 15,
    in_a_subspace: 10,
    in_some_columns: 10,
    in_families: 8,
    on_a_lattice: 6,
    in_a_row: 5,
    spread_out: 21,
}


def any_placement(rng: Rng, K: int, d: int) -> np.ndarray:
    """Centres (K, d) by a rule drawn from the list; `moved_apart` sets how far apart they are."""
    return pick(rng, PLACEMENTS)(rng, K, d)


def any_overlap(rng: Rng) -> tuple[float, float]:
    """The share of rows that lie nearer to another centre, and a factor by which centres then move farther apart.

    Two equal normal clouds have two peaks while less than 16 % of the rows are: those that share more are lumps of one.
    """
    if rng.random() < 0.45:
        return 0.01, float(np.exp(rng.uniform(0, np.log(2.5))))
    return 0.01 + 0.14 * float(rng.random()) ** 2, 1.0


def moved_apart(points: np.ndarray, labels: np.ndarray, centers: np.ndarray, overlap: float) -> np.ndarray:
    r"""Centres scaled so that a given share of rows lies nearer to another centre than to its own.

    Row i of cluster a at offset p lies beyond the border with b when
    :math:`p \cdot u_{ab} > S\, |c_b - c_a|\, \sigma_a / (\sigma_a + \sigma_b)` with u the direction from a to b and
    sigma the spread of each cluster along it. So each row has a scale S below which it is on the wrong side of some
    border, and the scale sought is a quantile of these.
    """
    K = len(centers)
    if K < 2:
        return centers
    gaps = centers[None] - centers[:, None]  # (a, b, d)
    distances = np.sqrt((gaps**2).sum(-1)) + 1e-9
    along = np.einsum("abd,nd->nab", gaps / distances[..., None], points)  # (n, a, b)
    mine = np.arange(K)[None] == labels[:, None]  # (n, a)
    size = np.maximum(mine.sum(0), 1)
    spread = np.sqrt(np.einsum("na,nab->ab", mine, along**2) / size[:, None]) + 1e-3
    share = spread / (spread + spread.T)
    own = along[np.arange(len(points)), labels]  # (n, b)
    critical = own / (distances * share)[labels]
    critical[np.arange(len(points)), labels] = -np.inf
    return centers * max(float(np.quantile(critical.max(1), 1 - overlap)), 1e-3)
