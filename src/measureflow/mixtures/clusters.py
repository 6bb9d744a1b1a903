"""The clusters of a mixture of Gaussians in units of the data: probabilities and densities of rows, samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from measureflow.attention.threads import side_by_side
from measureflow.measures.decibels import to_decibels
from measureflow.mixtures.ellipsoids import Ellipsoids
from measureflow.mixtures.frame import Frame
from measureflow.mixtures.rows import Rows
from measureflow.mixtures.shared_noise import SharedNoise, responsibilities

BLOCK = 65536  # rows at a time, so that memory stays small


@dataclass(frozen=True)
class GaussianClusters:
    """Clusters of a mixture, ordered by weight and then by position."""

    frame: Frame
    mixture: SharedNoise | Ellipsoids  # in the frame

    @classmethod
    def of(cls, frame: Frame, mixture: SharedNoise | Ellipsoids) -> GaussianClusters:
        """The clusters of a mixture in a frame, put in order."""
        return cls(frame, mixture.ordered(by_weight(mixture.weights, frame.outward(mixture.centers))))

    @property
    def centers(self) -> np.ndarray:
        """The centres (K, d)."""
        return self.frame.outward(self.mixture.centers)

    @property
    def weights(self) -> np.ndarray:
        """The weights (K,), which sum to one."""
        return self.mixture.weights / self.mixture.weights.sum()

    @property
    def covariances(self) -> np.ndarray:
        """The shapes (K, d, d)."""
        return self.frame.covariances_outward(self.mixture.covariances)

    @property
    def are_round(self) -> bool:
        """Whether one round noise described the rows as they are: no shape had to be learned."""
        return self.frame.n_learned == 0 and isinstance(self.mixture, SharedNoise)

    @property
    def snr_db(self) -> float:
        """Variance of the centres over that of the noise in the frame, in decibels."""
        return signal_to_noise_db(self.mixture.weights, self.mixture.centers, self.mixture.variance)

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """The probability of each cluster for each row, (n, K)."""
        return self.posteriors(X)[0]

    def posteriors(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities (n, K) of the clusters, and log-densities (n,)."""
        starts = range(0, max(len(X), 1), BLOCK)
        if self.mixture.variance <= 0 or not self.frame.used.any():
            blocks = (self.frame.rows_inward(X[a : a + BLOCK]) for a in starts)
            nearest = [((b[:, None] - self.mixture.centers) ** 2).sum(-1) for b in blocks]
            r = np.concatenate([(g == g.min(1, keepdims=True)).astype(float) for g in nearest])
            same = np.concatenate([g.min(1) for g in nearest]) <= 0
            return r / r.sum(1, keepdims=True), np.where(same, np.inf, -np.inf)
        parts = side_by_side(lambda a: responsibilities(self.frame.rows_inward(X[a : a + BLOCK]), self.mixture), starts)
        outside = np.concatenate([self.frame.log_density_outside(X[a : a + BLOCK]) for a in starts])
        inside = np.concatenate([density for _, density in parts])
        return np.concatenate([r for r, _ in parts]), inside + outside - self.frame.log_volume

    def sample(self, n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        """New rows (n, d), and the clusters they came from."""
        labels = np.sort(rng.choice(len(self.mixture), size=n, p=self.weights))
        values, vectors = np.linalg.eigh(self.mixture.covariances)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None]
        noise = np.einsum("nij,nj->ni", roots[labels], rng.standard_normal((n, roots.shape[1])))
        inside = self.frame.outward(self.mixture.centers[labels] + noise)
        return inside + self.frame.noise(n, rng), labels


def by_weight(weights: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The order of clusters: the largest weight first, and by position where weights are equal."""
    return np.lexsort((*centers.T[::-1], -np.round(weights, 12)))


def signal_to_noise_db(weights: np.ndarray, centers: np.ndarray, noise: float) -> float:
    """The variance of weighted centres, in the mean over the columns, over that of the noise, in decibels."""
    signal = Rows(centers, weights).variance
    if signal <= 0:
        return -np.inf
    return float(to_decibels(signal / noise)) if noise > 0 else np.inf
