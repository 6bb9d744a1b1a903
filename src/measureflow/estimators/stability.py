"""How stable a clustering is: which clusters are found again in fits to parts of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SHARE = 0.8  # of the rows in each part
RECOVERED = 0.75  # least Jaccard similarity of a cluster that counts as found again [Hennig 2007]


@dataclass(frozen=True)
class Stability:
    """The results of fits to parts of the rows."""

    n_clusters: dict[int, float]  # the share of the fits that found so many clusters
    clusters: np.ndarray  # (K,): the share of the fits in which each cluster was found again
    similarity: np.ndarray  # (K,): its mean Jaccard similarity to the cluster most like it


def stability(fit_predict, X: np.ndarray, labels: np.ndarray, w: np.ndarray, n_fits: int, seed: int) -> Stability:
    """The stability of labelled rows under ``n_fits`` fits to parts drawn without replacement.

    ``fit_predict(X, w)`` labels rows of weights w. Rows labelled -1 belong to no cluster.
    """
    rng, K = np.random.default_rng(seed), int(labels.max(initial=-1)) + 1
    found, alike = [], np.zeros((n_fits, K))
    for number in range(n_fits):
        part = np.sort(rng.permutation(len(X))[: max(2, round(SHARE * len(X)))])
        again = fit_predict(X[part], w[part])
        found.append(int(again.max(initial=-1)) + 1)
        alike[number] = _jaccard(labels[part], again, w[part], K)
    numbers, times = np.unique(found, return_counts=True)
    shares = dict(zip(numbers.tolist(), (times / n_fits).tolist(), strict=True))
    return Stability(shares, (alike >= RECOVERED).mean(0), alike.mean(0))


def _jaccard(labels: np.ndarray, again: np.ndarray, w: np.ndarray, K: int) -> np.ndarray:
    """The largest Jaccard similarity of each cluster with any of another clustering of the same rows."""
    both = (labels >= 0) & (again >= 0)
    shared = np.zeros((K, int(again.max(initial=-1)) + 1))
    np.add.at(shared, (labels[both], again[both]), w[both])
    here = np.bincount(labels[labels >= 0], w[labels >= 0], minlength=K)
    there = np.bincount(again[again >= 0], w[again >= 0], minlength=shared.shape[1])
    joined = here[:, None] + there - shared
    return (shared / np.maximum(joined, 1e-300)).max(1, initial=0.0)
