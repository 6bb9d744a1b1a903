"""Mixtures of Gaussians that share one noise level: EM, and how much evidence the data hold for each number of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from scipy.special import gammaln

from measureflow.attention.threads import side_by_side

FAST = {"contract", "reassoc", "nsz", "arcp"}
TILE = 64  # rows at a time in the innermost loops
FEW = 8  # columns up to which loops run along rows of a tile
BLOCK = 1 << 15  # rows in a block; sums run over blocks in their order, so the thread count cannot change a bit


@dataclass(frozen=True)
class SharedNoise:
    r"""The density :math:`\sum_k p_k\, N(x; \mu_k, \sigma^2 I)`, and the log-likelihood of the data it fits."""

    centers: np.ndarray  # (K, d)
    weights: np.ndarray  # (K,)
    variance: float
    log_likelihood: float = float("nan")

    def __len__(self) -> int:
        return len(self.weights)

    def ordered(self, order: np.ndarray) -> SharedNoise:
        """The same mixture, its clusters in another order."""
        return replace(self, centers=self.centers[order], weights=self.weights[order])

    @property
    def covariances(self) -> np.ndarray:
        """The noise of each cluster, (K, d, d)."""
        K, d = self.centers.shape
        return np.broadcast_to(max(self.variance, 0.0) * np.eye(d), (K, d, d))

    @property
    def log_volumes(self) -> float:
        """Half the log-determinant of the noise, the same for all clusters."""
        return self.centers.shape[1] / 2 * np.log(self.variance)

    def squared_distances(self, X: np.ndarray) -> np.ndarray:
        """Squared distances (n, K) of rows to the centres in units of the noise."""
        return np.maximum(squared_gaps(X, self.centers), 0) / self.variance


def squared_gaps(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Squared distances (n, K) of rows to centres, up to rounding, which may make them negative."""
    return (X**2).sum(1)[:, None] - 2 * X @ centers.T + (centers**2).sum(1)


def fit_em(
    X: np.ndarray,
    w: np.ndarray,
    start: SharedNoise,
    *,
    steps: int,
    tol: float = 1e-7,
    between: tuple[float, float] = (0.0, np.inf),
):
    r"""EM from a start for at most ``steps``, until the mean log-likelihood gains less than ``tol``.

    Rows X (n, d) have weights w (n,). The log-likelihood returned is that of the mixture returned; the variance
    stays ``between`` two numbers, which are the same where it is known.
    """
    centers = np.ascontiguousarray(start.centers, dtype=np.float64)
    weights = np.asarray(start.weights, dtype=np.float64)
    low, high = map(float, between)
    variance, total = min(max(float(start.variance), low), high), w.sum()
    log_likelihood = last = -np.inf
    for step in range(steps + 1):
        log_likelihood, responsibility_mass, sums, spread = expectation(X, w, centers, weights, variance)
        if step == steps or log_likelihood - last < tol * total:
            break
        last = log_likelihood
        centers, weights, noise = _maximise(centers, responsibility_mass, sums, spread, total)
        variance = min(max(noise, low), high)
    return SharedNoise(centers, weights, variance, log_likelihood)


@njit(nogil=True, cache=True)
def _maximise(centers, responsibility_mass, sums, spread, total):
    """Centres, weights and noise from the responsibilities; a centre without any stays."""
    new = centers.copy()
    for k in range(len(responsibility_mass)):
        if responsibility_mass[k] > 0:
            new[k] = sums[k] / responsibility_mass[k]
            moved = ((new[k] - centers[k]) ** 2).sum()
            spread -= responsibility_mass[k] * moved  # around the new centre instead of the old
    return new, responsibility_mass / total, spread / (total * centers.shape[1])


def expectation(X, w, centers, weights, variance):
    """Log-likelihood; responsibility mass, weighted sum of rows and sum of squared distances of each centre."""
    edges = range(0, len(X), BLOCK)
    if len(edges) == 1:
        return _block(X, w, centers, weights, variance)
    parts = side_by_side(lambda a: _block(X[a : a + BLOCK], w[a : a + BLOCK], centers, weights, variance), edges)
    return tuple(sum(column) for column in zip(*parts, strict=True))


@njit(nogil=True, cache=True, fastmath=FAST)
def _block(X, w, centers, weights, variance):
    """The same for rows in one block, a tile of them at a time, so that the inner loops run on vectors."""
    n, d = X.shape
    K = len(weights)
    constant = -0.5 * d * np.log(2 * np.pi * variance)
    log_weights = np.log(np.maximum(weights, 1e-300))
    responsibility_mass, sums, spread, log_likelihood = np.zeros(K), np.zeros((K, d)), 0.0, 0.0
    x, row_weights, top, total = np.zeros((d, TILE)), np.zeros(TILE), np.empty(TILE), np.empty(TILE)
    gap, r, bits = np.empty((K, TILE)), np.empty((K, TILE)), np.empty(TILE, np.int64)
    for a in range(0, n, TILE):
        m = min(TILE, n - a)
        row_weights[m:] = 0.0  # the last tile may be short; what is left of the one before does not count
        for i in range(m):
            row_weights[i] = w[a + i]
            for j in range(d):
                x[j, i] = X[a + i, j]
        top[:], total[:] = -np.inf, 0.0
        for k in range(K):
            gap[k] = 0.0
            for j in range(d):
                for i in range(TILE):
                    gap[k, i] += (x[j, i] - centers[k, j]) ** 2
            for i in range(TILE):
                r[k, i] = log_weights[k] - 0.5 / variance * gap[k, i]
                top[i] = max(top[i], r[k, i])
        for k in range(K):
            for i in range(TILE):
                r[k, i] -= top[i]
            _exp(r[k], bits)
            for i in range(TILE):
                total[i] += r[k, i]
        for i in range(TILE):
            log_likelihood += row_weights[i] * (constant + top[i] + np.log(total[i]))
            total[i] = row_weights[i] / total[i]
        for k in range(K):
            mass = 0.0
            for i in range(TILE):
                r[k, i] *= total[i]
                mass += r[k, i]
                spread += r[k, i] * gap[k, i]
            responsibility_mass[k] += mass
            if d <= FEW:
                for j in range(d):
                    moment = 0.0
                    for i in range(TILE):
                        moment += r[k, i] * x[j, i]
                    sums[k, j] += moment
            else:  # far clusters have no responsibility, and long rows are vectors themselves
                for i in range(m):
                    if r[k, i] > 0.0:
                        for j in range(d):
                            sums[k, j] += r[k, i] * X[a + i, j]
    return log_likelihood, responsibility_mass, sums, spread


@njit(nogil=True, cache=True, fastmath=FAST)
def _exp(x, bits):
    r"""In place :math:`e^x` for x <= 0, and zero below -40: :math:`2^t e^r` with t whole and a Taylor sum in r.

    A library call for each number would keep the loop from running on vectors. The error is below 1e-15.
    """
    for i in range(len(x)):
        z = max(x[i], -41.0)
        t = np.floor(z * 1.4426950408889634 + 0.5)
        r = z - t * 0.693145751953125 - t * 1.42860682030941723212e-6  # log 2 in two parts
        p = 1 / 6227020800 * r + 1 / 479001600
        p = (p * r + 1 / 39916800) * r + 1 / 3628800
        p = (p * r + 1 / 362880) * r + 1 / 40320
        p = (p * r + 1 / 5040) * r + 1 / 720
        p = (p * r + 1 / 120) * r + 1 / 24
        p = ((p * r + 1 / 6) * r + 0.5) * r * r + r + 1
        bits[i] = (np.int64(np.int32(t)) + 1023) << 52  # 2^t as its bits
        x[i] = p if z > -40.0 else 0.0
    powers = bits.view(np.float64)
    for i in range(len(x)):
        x[i] *= powers[i]


def responsibilities(X: np.ndarray, fit) -> tuple[np.ndarray, np.ndarray]:
    """For each row the probability of each cluster, (n, K), and the log-density, (n,), under a mixture."""
    joint = fit.squared_distances(X)
    joint /= -2
    with np.errstate(divide="ignore"):
        joint += np.log(fit.weights) - fit.log_volumes - X.shape[1] / 2 * np.log(2 * np.pi)
    return normalised(joint)


def normalised(joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Responsibilities (n, K) and log-densities (n,) of rows, from the log-densities (n, K) that clusters give them."""
    top = joint.max(1, keepdims=True)
    r = np.exp(joint - top)
    total = r.sum(1, keepdims=True)
    r /= total
    return r, (top + np.log(total))[:, 0]


def log_evidence(fit: SharedNoise, n: float, mean: np.ndarray, variance: float) -> float:
    r"""Laplace's approximation of :math:`\log p(X \mid K)`, up to a constant that is the same for every K.

    .. math::
        \log p(X|\hat\theta) + \log p(\hat\theta) + \log K! + \tfrac{D}{2}\log 2\pi - \tfrac12\log\det H, \qquad
        \det H = \prod_k \Big(\frac{n p_k}{\sigma^2}\Big)^d \cdot \frac{n^{K-1}}{\prod_k p_k}

    with centres N(mean, variance) and weights uniform on the simplex beforehand, as in the flow's training; K! counts
    the orders in which the same centres could be named. BIC keeps only :math:`-\frac D2 \log n` of all this, and so
    charges a cluster of five rows as much as one of five thousand.
    """
    K, d = fit.centers.shape
    p = np.maximum(fit.weights, 1e-12)
    prior = gammaln(K) - K * d / 2 * np.log(2 * np.pi * variance) - ((fit.centers - mean) ** 2).sum() / (2 * variance)
    curvature = d * (K * np.log(n / fit.variance) + np.log(p).sum()) + (K - 1) * np.log(n) - np.log(p).sum()
    return fit.log_likelihood + prior + gammaln(K + 1) + (K * d + K - 1) / 2 * np.log(2 * np.pi) - curvature / 2


def distinct(fit: SharedNoise, n: float) -> bool:
    r"""Whether all clusters lie farther apart than two estimates of one centre would,
    :math:`|\mu_a - \mu_b|^2 > d\,\sigma^2 \big(\frac{1}{n p_a} + \frac{1}{n p_b}\big)`.

    Laplace's evidence counts K! orders of the clusters, which are not there when some are the same.
    """
    a, b = np.triu_indices(len(fit), 1)
    gaps = ((fit.centers[a] - fit.centers[b]) ** 2).sum(1)
    p = np.maximum(n * fit.weights, 1e-12)
    return bool((gaps > fit.centers.shape[1] * fit.variance * (1 / p[a] + 1 / p[b])).all())


def bic(fit: SharedNoise, n: float) -> float:
    """Schwarz's criterion, smaller being better."""
    K, d = fit.centers.shape
    return -2 * fit.log_likelihood + (K * d + K) * np.log(n)
