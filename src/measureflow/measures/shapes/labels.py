"""How many clusters a set has, and how large each is."""

from __future__ import annotations

import numpy as np

from measureflow.measures.shapes.catalogue import Rng

FEW = {
    1: 0.15,
    2: 0.19,
    3: 0.16,
    4: 0.12,
    5: 0.1,
    6: 0.08,
    7: 0.06,
    8: 0.04,
}  # chances of so many clusters; the rest ...
MANY = (9, 22)  # ... goes to numbers between these, evenly on a logarithmic scale
MOST_CLUSTERS = 60
SMALLEST = 0.02  # the least share of a cluster, unless half an even share is less: smaller ones are outliers


def any_number(rng: Rng, n: int, d: int, rows_per_cluster: int) -> int:
    """A number of clusters for n rows in d columns, of which each cluster has so many at least on average."""
    most = max(1, n // rows_per_cluster)
    K = int(rng.choice([*FEW, 0], p=[*FEW.values(), 1 - sum(FEW.values())])) or between(rng, *MANY)
    if n >= 200 and rng.random() < 0.14:
        K = between(rng, 8, max(9, min(MOST_CLUSTERS, most)))
    return min(K, most, 8 if d == 1 else MOST_CLUSTERS)


def any_labels(rng: Rng, n: int, K: int) -> np.ndarray:
    """Labels whose shares are equal or drawn from a Dirichlet law, even or uneven; none is a crumb."""
    evenness = rng.choice([0.5, 1.0, 2.0, 5.0, 20.0, np.inf])
    shares = np.full(K, 1 / K) if np.isinf(evenness) else rng.dirichlet(np.full(K, evenness))
    least = min(max(4 / n, SMALLEST), 0.5 / K)
    shares = np.maximum(shares, least) / np.maximum(shares, least).sum()
    labels = rng.choice(K, n, p=shares)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def between(rng: Rng, least: int, most: int) -> int:
    """A whole number between two, evenly on a logarithmic scale."""
    return int(np.exp(rng.uniform(np.log(least), np.log(most + 1))))
