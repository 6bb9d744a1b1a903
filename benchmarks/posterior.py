"""Mixing measures drawn from their exact posterior, by a chain that starts at the truth.

The truth is itself a draw from the posterior, so a chain that starts there is at rest from its first step on. It is
told K and the SNR and knows how test sets are made: nobody who has to cluster them knows more.
"""

from __future__ import annotations

import numpy as np
import ot
from numba import njit

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
        self.centres = mixtures.centres[b, :K].double().numpy()
        self.proportions = mixtures.proportions[b, :K].double().numpy()
        self.snr = 10 ** (float(mixtures.snr_db[b]) / 10)
        self.rng = rng

    def draws(self, count: int, apart: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Centres, masses and the label of every row; ``apart`` sweeps lie between one draw and the next."""
        found = []
        for _ in range(count):
            for _ in range(apart):
                labels, counts = self._sweep()
            found.append((self.centres, counts / len(self.X), labels))
        return found

    def _noise(self, centres: np.ndarray, proportions: np.ndarray) -> float:
        gaps = centres - proportions @ centres
        return float(proportions @ (gaps**2).sum(1)) / (centres.shape[1] * self.snr)

    def _sweep(self) -> tuple[np.ndarray, np.ndarray]:
        (n, d), rng, noise = self.X.shape, self.rng, self._noise(self.centres, self.proportions)
        logits = self.X @ (self.centres / noise).T - (self.centres**2).sum(1) / (2 * noise) + np.log(self.proportions)
        labels, counts, sums = _assign(logits, self.X, rng.random(n))
        squares = float((self.X**2).sum())

        def misfit(centres: np.ndarray) -> float:  # sum of squares of rows around their centres
            return squares - 2 * (sums * centres).sum() + counts @ (centres**2).sum(1)

        def log_likelihood(centres: np.ndarray, noise: float) -> float:
            return -misfit(centres) / (2 * noise) - n * d / 2 * np.log(noise)

        precision = lambda noise: counts / noise + 1  # noqa: E731

        def log_proposal(centres: np.ndarray, noise: float) -> float:
            at = precision(noise)
            gaps = centres - sums / noise / at[:, None]
            return d / 2 * np.log(at).sum() - (at @ (gaps**2).sum(1)) / 2

        centres = sums / noise / precision(noise)[:, None]
        centres = centres + rng.normal(size=centres.shape) / np.sqrt(precision(noise))[:, None]
        new = self._noise(centres, self.proportions)
        gain = log_likelihood(centres, new) - (centres**2).sum() / 2 + log_proposal(self.centres, new)
        gain -= log_likelihood(self.centres, noise) - (self.centres**2).sum() / 2 + log_proposal(centres, noise)
        if np.log(rng.random()) < gain:
            self.centres, noise = centres, new

        proportions = np.maximum(rng.dirichlet(1.0 + counts), 1e-300)
        new = self._noise(self.centres, proportions)
        if np.log(rng.random()) < log_likelihood(self.centres, new) - log_likelihood(self.centres, noise):
            self.proportions = proportions
        return labels, counts


def barycentre(draws: list[tuple[np.ndarray, np.ndarray, np.ndarray]], rounds: int = 6) -> np.ndarray:
    """Points of equal mass whose mean squared W2 to the draws is least: the answer that a posterior calls for.

    They start where the draws, on average, put each row, and go to the mean of where they are sent.
    """
    points = np.mean([centres[labels] for centres, _, labels in draws], 0)
    masses = np.full(len(points), 1 / len(points))
    for _ in range(rounds):
        sent = np.zeros_like(points)
        for centres, weights, _ in draws:
            there = weights > 0
            plan = ot.emd(masses, weights[there], ot.dist(points, centres[there]))
            sent += len(points) * plan @ centres[there]
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
