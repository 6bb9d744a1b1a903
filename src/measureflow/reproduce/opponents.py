"""Who a learned model has to beat: k-means weak and strong, EM with one shared variance, K by BIC.

Each takes the points of one set (n, d) and returns atoms and their masses. The paper's k-means starts once from
random rows; the strong ones start from k-means++ many times, as a careful user would have them do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
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

    A start ends when its mean log-likelihood gains less than ``tol``.
    """
    seeds = np.random.default_rng(seed).integers(2**31, size=starts)
    first = (kmeans_plusplus(points, K, random_state=int(s))[0] for s in seeds)
    fits = [Found(*_em(points, atoms, points.var(0).mean() / K, tol)) for atoms in first]
    return max(fits, key=lambda fit: fit.log_likelihood)


@njit(cache=True)
def _em(x, atoms, variance, tol):
    """Atoms, masses, variance and log-likelihood where EM from the given atoms comes to rest; 500 steps at most."""
    n, d = x.shape
    K = len(atoms)
    masses, r, squares = np.full(K, 1 / K), np.empty(K), (x**2).sum()
    score = last = -np.inf
    for _ in range(500):
        won, moved, total = np.zeros(K), np.zeros((K, d)), 0.0
        log_masses = np.log(masses)
        for i in range(n):
            most = -np.inf
            for k in range(K):
                gap = 0.0
                for j in range(d):
                    gap += (x[i, j] - atoms[k, j]) ** 2
                r[k] = log_masses[k] - gap / (2 * variance)
                most = max(most, r[k])
            mass = 0.0
            for k in range(K):
                r[k] = np.exp(r[k] - most)
                mass += r[k]
            total += most + np.log(mass)
            for k in range(K):
                won[k] += r[k] / mass
                for j in range(d):
                    moved[k, j] += r[k] / mass * x[i, j]
        score = total / n - d / 2 * np.log(2 * np.pi * variance)
        if score - last < tol:
            break
        last, spread = score, squares
        for k in range(K):
            if won[k] > 0:
                atoms[k] = moved[k] / won[k]
            spread -= won[k] * (atoms[k] ** 2).sum()  # sum r |x - m|^2 = sum |x|^2 - sum_k won_k |m_k|^2
        masses = won / n
        variance = max(spread / (n * d), 1e-12)
    return atoms, masses, variance, score * n


def em_with_bic(
    points: np.ndarray, seed: int, *, most: int = 12, starts: int = 20, patience: int | None = None
) -> Found:
    """Shared-variance EM for every K from 1 to ``most``, the K with the least BIC taken.

    With ``patience`` the search ends after so many K in a row that are no better than the best.
    """
    n, d = points.shape
    best, least, worse = Found(points[:1], np.ones(1)), np.inf, 0
    for K in range(1, min(most, n) + 1):
        fit = shared_variance_em(points, K, seed, starts=1 if K == 1 else starts)
        bic = -2 * fit.log_likelihood + (K * d + K - 1 + 1) * np.log(n)
        best, least, worse = (fit, bic, 0) if bic < least else (best, least, worse + 1)
        if worse == patience:
            break
    return best
