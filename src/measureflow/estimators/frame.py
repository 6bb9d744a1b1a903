"""The coordinates in which clusters are sought: constant columns left out, wild scales evened."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from measureflow.estimators.rows import Rows

UNEVEN = 10.0  # columns whose standard deviations differ by more than this are divided by them


@dataclass(frozen=True)
class Frame:
    r"""x -> (x - centre)[used] / scales, and back. One scale for all columns unless they differ wildly, so that turning
    the data turns the answer."""

    centre: np.ndarray  # (d,)
    used: np.ndarray  # (d,) columns that vary
    scales: np.ndarray  # (d,)

    @classmethod
    def of(cls, rows: Rows) -> Frame:
        """The frame that suits these rows."""
        spread = np.sqrt(rows.column_variances)
        rounding = 1e-12 * np.abs(rows.points).max(0, initial=0.0)
        used = spread > rounding
        scales = np.ones(len(spread))
        if used.any() and spread[used].max() > UNEVEN * spread[used].min():
            scales[used] = spread[used]
        return cls(rows.mean, used, scales)

    def inward(self, rows: Rows) -> Rows:
        """The rows in this frame."""
        return Rows(self.rows_inward(rows.points), rows.counts)

    def rows_inward(self, X: np.ndarray) -> np.ndarray:
        """The same for an array (n, d)."""
        return np.ascontiguousarray(((X - self.centre) / self.scales)[:, self.used])

    def outward(self, Z: np.ndarray) -> np.ndarray:
        """Points of the frame as points of the data."""
        X = np.repeat(self.centre[None], len(Z), 0)
        X[:, self.used] += Z * self.scales[self.used]
        return X

    def noise_scales(self, variance: float) -> np.ndarray:
        """The standard deviation of the noise in each column of the data."""
        return np.where(self.used, self.scales * np.sqrt(max(variance, 0.0)), 0.0)

    @property
    def log_volume(self) -> float:
        """By how much log-densities of the frame exceed those of the data."""
        return float(np.log(self.scales[self.used]).sum())
