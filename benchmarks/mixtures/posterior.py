"""Mixing measures drawn from their exact posterior, by a chain that starts at the truth.

The truth is itself a draw from the posterior, so a chain that starts there is at rest from its first step on. It is
told K and the SNR and knows how test sets are made: nobody who has to cluster them knows more.
"""

from __future__ import annotations

import numpy as np
import ot
from numba import njit

from measureflow.measures.decibels import from_decibels
from measureflow.measures.priors import Mixtures


class Posterior:
    r"""Draws of :math:`\sum_k \frac{n_k}{n}\delta_{\mu_k}` given the rows of one set, its K and its SNR.

    Labels are drawn given everything else. Centres and proportions are proposed as if the noise were fixed, and
    accepted by Metropolis and Hastings, because the noise is tied to them:
    :math:`\sigma^2 = \sum_k p_k |\mu_k - \bar\mu|^2 / (d\,\mathrm{SNR})`.
    """

    def __init__(self, mixtures: Mixtures, b: int, rng: np.random.Generator):
        K = int(mixtures.n_components[b])
        self.X = mixtures.points[b].double().numpy()
        self.centers = mixtures.centers[b, :K].double().numpy()
        self.proportions = mixtures.proportions[b, :K].double().numpy()
        self.snr = from_decibels(float(mixtures.snr_db[b]))
        self.rng = rng

    def draws(self, count: int, apart: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Centres, masses and the label of every row; ``apart`` sweeps lie between one draw and the next."""
        found = []
        for _ in range(count):
            for _ in range(apart):
                labels, counts = self._sweep()
            found.append((self.centers, counts / len(self.X), labels))
        return found

    def _noise(self, centers: np.ndarray, proportions: np.ndarray) -> float:
        gaps = centers - proportions @ centers
        return float(proportions @ (gaps**2).sum(1)) / (centers.shape[1] * self.snr)

    def _sweep(self) -> tuple[np.ndarray, np.ndarray]:
        (n, d), rng, noise = self.X.shape, self.rng, self._noise(self.centers, self.proportions)
        logits = self.X @ (self.centers / noise).T - (self.centers**2).sum(1) / (2 * noise) + np.log(self.proportions)
        labels, counts, sums = _assign(logits, self.X, rng.random(n))
        squares = float((self.X**2).sum())

        def misfit(centers: np.ndarray) -> float:  # sum of squares of rows around their centres
            return squares - 2 * (sums * centers).sum() + counts @ (centers**2).sum(1)

        def log_likelihood(centers: np.ndarray, noise: float) -> float:
            return -misfit(centers) / (2 * noise) - n * d / 2 * np.log(noise)

        precision = lambda noise: counts / noise + 1  # noqa: E731

        def log_proposal(centers: np.ndarray, noise: float) -> float:
            at = precision(noise)
            gaps = centers - sums / noise / at[:, None]
            return d / 2 * np.log(at).sum() - (at @ (gaps**2).sum(1)) / 2

        centers = sums / noise / precision(noise)[:, None]
        centers = centers + rng.normal(size=centers.shape) / np.sqrt(precision(noise))[:, None]
        new = self._noise(centers, self.proportions)
        gain = log_likelihood(centers, new) - (centers**2).sum() / 2 + log_proposal(self.centers, new)
        gain -= log_likelihood(self.centers, noise) - (self.centers**2).sum() / 2 + log_proposal(centers, noise)
        if np.log(rng.random()) < gain:
            self.centers, noise = centers, new

        proportions = np.maximum(rng.dirichlet(1.0 + counts), 1e-300)
        new = self._noise(self.centers, proportions)
        if np.log(rng.random()) < log_likelihood(self.centers, new) - log_likelihood(self.centers, noise):
            self.proportions = proportions
        return labels, counts


def barycentre(draws: list[tuple[np.ndarray, np.ndarray, np.ndarray]], rounds: int = 6) -> np.ndarray:
    """Points of equal mass whose mean squared W2 to the draws is least: the answer that a posterior calls for.

    They start where the draws, on average, put each row, and go to the mean of where they are sent.
    """
    points = np.mean([centers[labels] for centers, _, labels in draws], 0)
    masses = np.full(len(points), 1 / len(points))
    for _ in range(rounds):
        sent = np.zeros_like(points)
        for centers, weights, _ in draws:
            there = weights > 0
            plan = ot.emd(masses, weights[there], ot.dist(points, centers[there]))
            sent += len(points) * plan @ centers[there]
        points = sent / len(draws)
    return points


@njit
def _assign(logits, X, uniforms):
    """A label for each row with probabilities given by logits; how many rows have each, and their sums."""
    n, K = logits.shape
    labels, counts, sums = np.empty(n, np.int64), np.zeros(K), np.zeros((K, X.shape[1]))
    for i in range(n):
        top = logits[i].max()
        total = 0.0
        for k in range(K):
            logits[i, k] = total = total + np.exp(logits[i, k] - top)
        k = 0
        while k < K - 1 and logits[i, k] < uniforms[i] * total:
            k += 1
        labels[i] = k
        counts[k] += 1
        sums[k] += X[i]
    return labels, counts, sums
