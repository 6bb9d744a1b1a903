"""Sets of points inside a ball, for the constructed transformers."""

import numpy as np

from measureflow.circuits.textbook_em import cluster_means


def separated(seed: int, k: int, d: int, n: int, separation: float = 14.0, sigma: float = 0.05):
    """Points (n, d) of k clusters, ``separation`` sigma or more apart and 0.65 from the origin; labels; the rng."""
    rng = np.random.default_rng(seed)
    while True:
        centres = rng.normal(size=(k, d))
        centres *= 0.65 / np.linalg.norm(centres, axis=1, keepdims=True)
        if min(np.linalg.norm(centres[i] - centres[j]) for i in range(k) for j in range(i)) > separation * sigma:
            break
    labels = rng.permutation(np.arange(n) % k)
    return centres[labels] + sigma * rng.normal(size=(n, d)), labels, rng


def good_start(seed: int, k: int, d: int, n: int, **settings):
    """Points, and first centres two sigma off the means of their clusters."""
    x, labels, rng = separated(seed, k, d, n, **settings)
    return x, cluster_means(x, labels, k) + 0.1 * rng.normal(size=(k, d))


def moving_start(seed: int, k: int, d: int, n: int, *, sigma: float = 0.05):
    """Points, and first centres from which Lloyd's first iteration moves labels while all gaps stay wide after it.

    Of the two nearest clusters one has its centre so far behind it that the border between the two cuts it half a sigma
    before its mean: a third of its points get the other's label at first, and their own after one iteration.
    """
    x, labels, _ = separated(seed, k, d, n, sigma=sigma)
    start = cluster_means(x, labels, k)
    pairs = [(i, j) for i in range(k) for j in range(i)]
    a, b = min(pairs, key=lambda pair: np.linalg.norm(start[pair[0]] - start[pair[1]]))
    way = start[b] - start[a]
    start[b] += way * (1 - sigma / np.linalg.norm(way))
    return x, start


def rough_start(seed: int, k: int, d: int, n: int):
    """Overlapping clusters and first centres that are points drawn at random: Lloyd needs several iterations."""
    x, _, rng = separated(seed, k, d, n, separation=7.0, sigma=0.12)
    return x, x[rng.choice(n, k, replace=False)]


def at_separation(seed: int, n: int, separation: float, sigma: float = 0.08):
    """Points and centres: three clusters at the corners of an equilateral triangle of side ``separation`` sigma."""
    rng = np.random.default_rng(seed)
    corners = np.array([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]]) / 3**0.5
    centres = separation * sigma * corners
    return centres[np.arange(n) % 3] + sigma * rng.normal(size=(n, 2)).clip(-3, 3), centres
