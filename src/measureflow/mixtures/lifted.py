r"""Rows lifted to where Gaussians are linear: one matrix product gives all log-densities, another all moments.

.. math:: \phi(x) = (1,\; x_i,\; x_i x_j), \qquad \log p_k N(x; \mu_k, \Sigma_k) = \phi(x) \cdot \theta_k
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Lift:
    """How rows of d columns are lifted; covariances along the columns need the squares alone."""

    origin: np.ndarray  # (d,): products of numbers far from zero would lose digits
    along_columns: bool

    @property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        d = len(self.origin)
        return (np.arange(d), np.arange(d)) if self.along_columns else np.triu_indices(d)

    @property
    def size(self) -> int:
        """The number of entries of a lifted row."""
        return 1 + len(self.origin) + len(self._pairs[0])

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Lifted rows (n, size)."""
        Z, (i, j), d = X - self.origin, self._pairs, len(self.origin)
        out = np.empty((len(X), self.size))
        out[:, 0], out[:, 1 : 1 + d] = 1.0, Z
        np.multiply(Z[:, i], Z[:, j], out=out[:, 1 + d :])
        return out

    def densities(self, centers: np.ndarray, weights: np.ndarray, covariances: np.ndarray) -> np.ndarray:
        """Coefficients (size, K) of the weighted log-densities of K Gaussians."""
        (i, j), c = self._pairs, centers - self.origin
        roots = np.linalg.cholesky(covariances)
        whiten = np.linalg.inv(roots)
        precisions = whiten.transpose(0, 2, 1) @ whiten
        log_volumes = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(1)
        pulls = np.einsum("kij,kj->ki", precisions, c)
        with np.errstate(divide="ignore"):
            constant = np.log(weights) - log_volumes - c.shape[1] / 2 * np.log(2 * np.pi) - (pulls * c).sum(1) / 2
        products = np.where(i == j, -0.5, -1.0) * precisions[:, i, j]
        return np.concatenate([constant[:, None], pulls, products], 1).T

    def moments(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Masses (K,), first (K, d) and second (K, d, d) moments around the origin, of sums (K, size) of rows."""
        (i, j), d = self._pairs, len(self.origin)
        second = np.zeros((len(sums), d, d))
        second[:, i, j] = second[:, j, i] = sums[:, 1 + d :]
        return sums[:, 0], sums[:, 1 : 1 + d], second
