"""The coordinates in which clusters are sought: those in which the noise looks the same in every direction."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from measureflow.estimators.rows import Rows
from measureflow.estimators.shared_noise import SharedNoise, responsibilities

LEAST_SHARE = 1e-6  # of the variance in any direction that is taken for noise
UNEVEN = 10.0  # columns whose standard deviations differ by more than this are divided by them


@dataclass(frozen=True)
class Frame:
    r"""x -> (x - centre)[used] A, and back; noise :math:`\sigma^2 I` inside is :math:`\sigma^2 (A A^T)^{-1}` outside.

    A is the identity unless columns differ wildly in scale, so that turning the data turns the answer; `reshaped` lets
    it learn the shape of the noise from a first clustering.
    """

    centre: np.ndarray  # (d,)
    used: np.ndarray  # (d,) columns that vary
    matrix: np.ndarray  # (r, r) for the r columns used
    n_learned: int = 0  # numbers in the matrix that were learned from the clusters

    @classmethod
    def of(cls, rows: Rows) -> Frame:
        """The frame to begin with."""
        spread = np.sqrt(rows.column_variances)
        rounding = 1e-12 * np.abs(rows.points).max(0, initial=0.0)
        used = spread > rounding
        spread = spread[used]
        uneven = used.any() and spread.max() > UNEVEN * spread.min()
        return cls(rows.mean, used, np.diag(1 / spread if uneven else np.ones(len(spread))))

    def inward(self, rows: Rows) -> Rows:
        """The rows in this frame."""
        return Rows(self.rows_inward(rows.points), rows.counts)

    def rows_inward(self, X: np.ndarray) -> np.ndarray:
        """The same for an array (n, d)."""
        Z = X - self.centre
        if not self.used.all():
            Z = Z[:, self.used]
        diagonal = np.diagonal(self.matrix)
        if (self.matrix == np.diag(diagonal)).all():  # a product of matrices would round
            Z *= diagonal
            return np.ascontiguousarray(Z)
        return np.ascontiguousarray(Z @ self.matrix)

    def outward(self, Z: np.ndarray) -> np.ndarray:
        """Points of the frame as points of the data."""
        X = np.repeat(self.centre[None], len(Z), 0)
        X[:, self.used] += Z @ np.linalg.inv(self.matrix)
        return X

    def covariances_outward(self, covariances: np.ndarray) -> np.ndarray:
        """Covariances (K, r, r) in the frame as covariances (K, d, d) of the data."""
        out = np.zeros((len(covariances), len(self.used), len(self.used)))
        back = np.linalg.inv(self.matrix)
        out[np.ix_(range(len(out)), self.used, self.used)] = back.T @ covariances @ back
        return out

    @property
    def log_volume(self) -> float:
        """By how much log-densities of the frame exceed those of the data."""
        return -float(np.linalg.slogdet(self.matrix)[1])

    def reshaped(self, rows: Rows, mixtures: list[tuple[SharedNoise, float]]) -> Frame | None:
        r"""The frame that makes the spread within the clusters of one of the mixtures round, if any is worth it.

        Rows are in this frame, mixtures come with the evidence for them. With clusters held fixed a shared covariance
        W gains :math:`\frac n2 (d \log\sigma^2 - \log\det W)`, which must pay for its parameters, and for a mixture
        that is not the best for what it lacks: few long clusters may beat many round ones.
        """
        d = rows.points.shape[1]
        if d < 2 or len(rows.counts) < 4 * d:
            return None
        shapes = [shape for fit, evidence in mixtures for shape in _shapes(rows, fit, evidence)]
        worth, free, shape = max(shapes, key=lambda s: s[0], default=(-np.inf, 0, None))
        if worth <= max(evidence for _, evidence in mixtures):
            return None
        return self.whitened(shape, free)

    def whitened(self, shape: np.ndarray, n_learned: int) -> Frame:
        """The frame in which noise that has this covariance in this frame, learned as so many numbers, is round."""
        d = len(shape)
        values, vectors = np.linalg.eigh(shape * d / np.trace(shape))
        whiten = vectors / np.sqrt(values) @ vectors.T
        if n_learned == d - 1:
            whiten = np.diag(np.diagonal(whiten))
        return replace(self, matrix=self.matrix @ whiten, n_learned=n_learned)


def _shapes(rows: Rows, fit: SharedNoise, evidence: float):
    """Evidence with it, number of parameters, covariance within clusters: for any ellipsoid, and along the columns."""
    n, d = rows.total, rows.points.shape[1]
    mass, means = _moments(responsibilities(rows.points, fit)[0] * rows.counts[:, None], rows.points)
    W = ((rows.points * rows.counts[:, None]).T @ rows.points - (means * mass[:, None]).T @ means) / n
    if np.trace(W) <= 1e-9 * d * rows.variance:  # clusters without spread have no shape
        return
    centred = rows.points - rows.mean
    W += LEAST_SHARE * (centred * rows.counts[:, None]).T @ centred / n  # a column of whole numbers may have no noise
    for shape, free in ((W, d * (d + 1) // 2 - 1), (np.diag(np.diagonal(W)), d - 1)):
        gain = n / 2 * (d * np.log(np.trace(W) / d) - np.linalg.slogdet(shape)[1])
        yield evidence + gain - free / 2 * np.log(n), free, shape


def _moments(r: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mass and mean of the rows of each cluster."""
    mass = r.sum(0)
    return mass, (r.T @ points) / np.maximum(mass, 1e-300)[:, None]
