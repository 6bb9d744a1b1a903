"""From rows to candidate mixtures: guess the noise, flow, cut the tree of tokens, climb the evidence over K."""

from __future__ import annotations

import numpy as np
import torch

from measureflow.attention.threads import one_thread
from measureflow.flows import Trajectory
from measureflow.measures.decibels import LEAST_SNR_DB, from_decibels, to_decibels
from measureflow.mixtures.rows import Rows
from measureflow.mixtures.shared_noise import SharedNoise, distinct, fit_em, log_evidence, squared_gaps
from measureflow.mixtures.token_tree import TokenTree

SCAN_DB = (0.0, 7.0, 14.0, 21.0)  # guesses of the SNR, so dense that the noise head can correct the nearest
SCAN_ROWS = 128
HIGHEST_SNR_DB = 30.0


@one_thread()
@torch.no_grad()
def flow(model, rows: Rows, snr_db, *, exact: bool, n_layers: int | None = None) -> tuple[Trajectory, np.ndarray]:
    """The trajectory of the rows for each SNR, and the noise variance it estimates with its error, both in dB."""
    snr = torch.as_tensor(np.atleast_1d(snr_db), dtype=torch.float32)
    scale = max(rows.variance, np.finfo(np.float64).tiny) ** 0.5
    points = torch.as_tensor((rows.points - rows.mean) / scale, dtype=torch.float32)
    weights = torch.as_tensor(rows.weights, dtype=torch.float32)
    x, p = points.expand(len(snr), -1, -1), weights.expand(len(snr), -1)
    path, noise = model.flow_and_noise(x, snr, exact=exact, weights=p, n_layers=n_layers)
    assumed = 2 * to_decibels(scale) - to_decibels(1 + from_decibels(snr.numpy().clip(LEAST_SNR_DB)))
    states = [torch.as_tensor(rows.mean) + scale * state.double() for state in path]
    states[0] = torch.as_tensor(rows.points).expand_as(states[0])
    return Trajectory(states, path.times), np.stack([assumed + noise[:, 0].numpy(), noise[:, 1].numpy()], 1)


def snr_of(rows: Rows, noise_variance: float) -> float:
    """The SNR in dB that rows have if their noise has this variance, limited to the range of the flow."""
    ratio = rows.variance / noise_variance - 1 if noise_variance > 0 else np.inf
    low, high = from_decibels(LEAST_SNR_DB), from_decibels(HIGHEST_SNR_DB)
    return float(to_decibels(np.clip(ratio, low, high)))


def guess_noise(model, rows: Rows, n_layers: int | None = None) -> tuple[float, TokenTree]:
    """The noise variance estimated from the best of a few guesses, and the tree of its tokens."""
    sample = rows.sample(SCAN_ROWS)
    path, noise = flow(model, sample, SCAN_DB, exact=False, n_layers=n_layers)
    best = int(np.argmin(noise[:, 1]))  # of least standard error
    tree = TokenTree(path[-1][best].numpy(), sample.weights / sample.mass)
    return float(from_decibels(noise[best, 0])), tree


class Candidates:
    """For each K the best mixture found so far, with the evidence for it."""

    def __init__(self, rows: Rows, *, known: float | None = None, only: int | None = None, most: int = 60):
        self.rows, self.only = rows, only
        most = max(most, only or 0)
        self.most = min(most, len(rows.weights))
        self.mean, self.variance = rows.mean, rows.variance
        self.floor = 1e-9 * self.variance
        self.between = (self.floor, np.inf) if known is None else (known, known)
        self.fits: dict[int, SharedNoise] = {}
        self.evidence: dict[int, float] = {}

    def offer(self, start: SharedNoise, steps: int = 30) -> float:
        """Improve a start by EM, keep it if it is the best of its K; return its evidence, -inf if clusters coincide."""
        fit = fit_em(self.rows.points, self.rows.weights, start, steps=steps, tol=1e-5, between=self.between)
        K, n = len(fit), self.rows.mass
        if self.only != K and not distinct(fit, n):
            return -np.inf
        evidence = log_evidence(fit, n, self.mean, self.variance)
        if evidence > self.evidence.get(K, -np.inf):
            self.fits[K], self.evidence[K] = fit, evidence
        return evidence

    @property
    def best(self) -> SharedNoise:
        """The mixture with the most evidence."""
        return self.fits[max(self.evidence, key=self.evidence.__getitem__)]

    def climb(self, tree: TokenTree, noise_variance: float, *, patience: int = 2, steps: int = 30) -> None:
        """Offer cuts of the tree, up and down from the K that the noise implies, until the evidence keeps falling."""
        if self.only is not None:
            if self.only <= len(tree.weights):
                self.offer(self._cut(tree, self.only, noise_variance), steps)
            return
        start = min(tree.n_by_bic(noise_variance, self.rows.mass), self.most)
        for step in (1, -1):
            best, worse, K = -np.inf, 0, start
            while 1 <= K <= min(self.most, len(tree.weights)) and worse < patience:
                evidence = self.offer(self._cut(tree, K, noise_variance), steps)
                coincide = step < 0 and best == -np.inf  # fewer clusters may still be distinct
                worse = 0 if evidence > best or coincide else worse + 1
                best, K = max(best, evidence), K + step
        for K in range(1, min(start, 4)):  # few long clusters may beat many round ones
            self.offer(self._cut(tree, K, noise_variance), steps)

    @staticmethod
    def _cut(tree: TokenTree, K: int, noise_variance: float) -> SharedNoise:
        return SharedNoise(*tree.atoms(K), noise_variance)

    def split_to(self, K: int) -> None:
        """K atoms even if no tree had as many: rows farthest from the atoms become atoms."""
        fit = self.best if self.fits else SharedNoise(self.mean[None], np.ones(1), self.variance)
        centers = list(fit.centers)
        gaps = np.min(_gaps(self.rows.points, fit), 1)
        while len(centers) < K:
            centers.append(self.rows.points[int(np.argmax(gaps))])
            gaps = np.minimum(gaps, ((self.rows.points - centers[-1]) ** 2).sum(1))
        self.offer(SharedNoise(np.array(centers), np.full(K, 1 / K), fit.variance))

    def weighed(self) -> list[tuple[SharedNoise, float]]:
        """All mixtures kept, with the evidence for each."""
        return [(self.fits[K], self.evidence[K]) for K in sorted(self.fits)]

    def posterior(self) -> dict[int, float]:
        """The probability of each K considered, all equally likely beforehand."""
        numbers = sorted(self.evidence)
        weights = np.exp(np.array([self.evidence[K] for K in numbers]) - max(self.evidence.values()))
        return dict(zip(numbers, (weights / weights.sum()).tolist(), strict=True))

    def refine(self, rounds: int = 3) -> None:
        """Split and merge around the best until neither finds more evidence."""
        for _ in range(rounds):
            before = max(self.evidence.values())
            for start in (*self._splits(self.best), *self._merges(self.best)):
                self.offer(start)
            if max(self.evidence.values()) <= before + 1e-6:
                return

    def _splits(self, fit: SharedNoise, tries: int = 2):
        """The atoms whose rows spread farthest beyond the noise along a line, cut in two across it."""
        if len(fit) >= self.most:
            return
        labels = np.argmin(_gaps(self.rows.points, fit), 1)
        strain = []
        for k in range(len(fit)):
            mine = labels == k
            if mine.sum() < 3:
                strain.append((-np.inf, None))
                continue
            X, c = self.rows.points[mine] - fit.centers[k], self.rows.weights[mine]
            values, vectors = np.linalg.eigh((X * c[:, None]).T @ X / c.sum())
            strain.append((c.sum() * (values[-1] / fit.variance - 1), vectors[:, -1] * values[-1] ** 0.5))
        for k in np.argsort([-s for s, _ in strain], kind="stable")[:tries]:
            step = strain[k][1]
            if step is None:
                continue
            centers = np.concatenate([np.delete(fit.centers, k, 0), [fit.centers[k] - step], [fit.centers[k] + step]])
            weights = np.concatenate([np.delete(fit.weights, k), np.full(2, fit.weights[k] / 2)])
            yield SharedNoise(centers, weights, fit.variance)

    def _merges(self, fit: SharedNoise, tries: int = 2):
        """The pairs of atoms that are cheapest to merge."""
        K = len(fit)
        if K < 2:
            return
        i, j = np.triu_indices(K, 1)
        p = fit.weights
        cost = p[i] * p[j] / (p[i] + p[j]) * ((fit.centers[i] - fit.centers[j]) ** 2).sum(1)
        for pair in np.argsort(cost, kind="stable")[:tries]:
            a, b = i[pair], j[pair]
            mass = p[a] + p[b]
            center = (p[a] * fit.centers[a] + p[b] * fit.centers[b]) / mass
            keep = np.delete(np.arange(K), [a, b])
            yield SharedNoise(np.vstack([fit.centers[keep], center]), np.append(p[keep], mass), fit.variance)


def _gaps(points: np.ndarray, fit: SharedNoise) -> np.ndarray:
    return squared_gaps(points, fit.centers) - 2 * fit.variance * np.log(np.maximum(fit.weights, 1e-300))
