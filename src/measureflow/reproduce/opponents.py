"""Who a learned model has to beat: k-means weak and strong, EM with one shared variance, K by BIC.

Each takes the points of one set (n, d) and returns atoms and their masses. The paper's k-means starts once from
random rows; the strong ones start from k-means++ many times, as a careful user would have them do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from sklearn.cluster import KMeans, kmeans_plusplus


@dataclass(frozen=True)
class Found:
    """A mixing measure: atoms (K, d) with masses (K,), and the noise variance where there is one."""

    atoms: np.ndarray
    masses: np.ndarray
    variance: float = float("nan")
    log_likelihood: float = float("nan")


def kmeans(points: np.ndarray, K: int, seed: int, *, starts: int = 1, init: str = "random") -> Found:
    """Lloyd's algorithm with the true K; one random start is the paper's opponent [Zimin 2025, E.1]."""
    fit = KMeans(K, init=init, n_init=starts, random_state=seed).fit(points)
    return Found(fit.cluster_centers_, np.bincount(fit.labels_, minlength=K) / len(points))


def shared_variance_em(points: np.ndarray, K: int, seed: int, *, starts: int = 20, tol: float = 1e-6) -> Found:
    r"""Maximum likelihood for :math:`\sum_k p_k N(\mu_k, \sigma^2 I)` by EM, the best of many k-means++ starts.

    All starts run side by side; each stops counting when its mean log-likelihood gains less than ``tol``.
    """
    n, d = points.shape
    seeds = np.random.default_rng(seed).integers(2**31, size=starts)
    atoms = np.stack([kmeans_plusplus(points, K, random_state=int(s))[0] for s in seeds])  # (R, K, d)
    masses = np.full((starts, K), 1 / K)
    variance = np.full(starts, points.var(0).mean() / K)
    last = np.full(starts, -np.inf)
    squares = (points**2).sum(1)
    for _ in range(500):
        gaps = gaps_to(points, squares, atoms)
        with np.errstate(divide="ignore"):
            joint = np.log(masses)[:, None] - gaps / (2 * variance[:, None, None])
        total = logsumexp(joint, axis=-1)
        score = total.mean(1) - d / 2 * np.log(2 * np.pi * variance)
        if (score - last < tol).all():
            break
        last = score
        r = np.exp(joint - total[..., None])
        won = r.sum(1)
        atoms = r.transpose(0, 2, 1) @ points / np.maximum(won, 1e-300)[..., None]
        masses = won / n
        spread = (r * np.maximum(gaps_to(points, squares, atoms), 0)).sum((1, 2))
        variance = np.maximum(spread / (n * d), 1e-12)
    best = int(np.argmax(score))
    return Found(atoms[best], masses[best], float(variance[best]), float(score[best] * n))


def gaps_to(points: np.ndarray, squares: np.ndarray, atoms: np.ndarray) -> np.ndarray:
    """Squared distances (R, n, K) of points (n, d) to atoms (R, K, d)."""
    return squares[:, None] - 2 * points @ atoms.transpose(0, 2, 1) + (atoms**2).sum(-1)[:, None]


def em_with_bic(points: np.ndarray, seed: int, *, most: int = 12, starts: int = 10) -> Found:
    """Shared-variance EM for every K from 1 to ``most``, the K with the least BIC taken."""
    n, d = points.shape
    fits = [shared_variance_em(points, K, seed, starts=1 if K == 1 else starts) for K in range(1, min(most, n) + 1)]
    bic = [-2 * fit.log_likelihood + (K * d + K - 1 + 1) * np.log(n) for K, fit in enumerate(fits, start=1)]
    return fits[int(np.argmin(bic))]
