"""The estimated mixing measure, between the tokens of the flow and the clusters of maximum likelihood."""

from __future__ import annotations

import numpy as np

from measureflow.measures import wasserstein2
from measureflow.mixtures.rows import Rows
from measureflow.mixtures.search import SearchResult
from measureflow.mixtures.shared_noise import SharedNoise, responsibilities

APART = 1e-3  # share of rows in doubt between clusters below which the clusters alone are the answer
SLIGHT = 0.02  # numbers of clusters less probable than this are left out


def mixing(found: SearchResult, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    r"""Atoms and masses that are expected to be near the true mixing measure in W2.

    The flow's tokens y and the clusters of maximum likelihood err in different ways. A measure between them, along the
    optimal transport from one to the other, errs less than either:

    .. math:: z_i = (1 - \lambda)\, y_i + \lambda \sum_K p(K \mid X)\, T_K(y_i), \qquad \lambda = \frac{d}{d + 4}

    with :math:`T_K(y_i)` the mean of where token i goes among the K clusters of maximum likelihood. With more columns
    each row says more about its cluster, and likelihood is more reliable. The clusters alone are the answer where they
    are far apart and their number is clear, and where only a sample of the rows flowed: their weights are known from
    all rows.
    """
    mixture, flowed = found.mixture, found.flowed
    if flowed is None or found.candidates is None:
        return mixture.centers, mixture.weights
    if not isinstance(mixture, SharedNoise) or mixture.variance <= 0:
        return mixture.centers, mixture.weights
    likely = {K: p for K, p in found.posterior.items() if p >= SLIGHT}
    certain = len(likely) == 1 and in_doubt(mixture, flowed.seen) <= APART
    if certain or len(flowed.seen.weights) < len(rows.weights):
        return mixture.centers, mixture.weights
    tokens, weights = flowed.tree.tokens, flowed.tree.weights
    fits = found.candidates.fits | {len(mixture): mixture}
    goals = sum(p * sent(tokens, weights, fits[K]) for K, p in likely.items()) / sum(likely.values())
    d = tokens.shape[1]
    return tokens + d / (d + 4) * (goals - tokens), weights


def in_doubt(mixture: SharedNoise, rows: Rows) -> float:
    """The share of the rows that a mixture expects to label wrongly."""
    doubt = 1 - responsibilities(rows.points, mixture)[0].max(1)
    return float(rows.weights @ doubt) / rows.mass


def sent(tokens: np.ndarray, weights: np.ndarray, mixture: SharedNoise) -> np.ndarray:
    """The mean target of each token under optimal transport to the clusters of a mixture.

    A token of mass zero stays where it is.

    >>> sent(np.array([[0.0], [1.0], [9.0]]), np.ones(3), SharedNoise(np.array([[0.0], [8.0]]), np.ones(2) / 2, 1.0))
    array([[0.],
           [4.],
           [8.]])
    """
    plan = wasserstein2(tokens, mixture.centers, weights=weights, atom_weights=mixture.weights).plan().numpy()
    mass = plan.sum(1, keepdims=True)  # zero where a token's mass is lost to rounding
    return np.divide(plan @ mixture.centers, mass, out=tokens.copy(), where=mass > 0)
