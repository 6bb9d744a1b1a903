"""The coordinates in which clusters are sought: those in which the noise looks the same in every direction."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from measureflow.mixtures.rows import Rows
from measureflow.mixtures.shared_noise import SharedNoise, responsibilities

LEAST_SHARE = 1e-6  # of the variance in any direction that is taken for noise
MOST_COLUMNS = 64  # as many as the flow has seen; more are projected onto the axes of the signal
TRACY_WIDOM = 2.02  # the quantile 0.99 of their law of real matrices
AXES_ROWS = 4096  # rows that these axes are learned from
UNEVEN = 10.0  # columns whose standard deviations differ by this factor may have different units
WILD = 100.0  # by this factor, they surely have


@dataclass(frozen=True)
class Frame:
    r"""x -> (x - centre)[used] S U A, and back: columns scaled by S, axes U kept, A making the noise round.

    S is the identity unless columns differ much in scale, so that rotating the data rotates the answer. U keeps all
    axes of up to 64 columns; of more it keeps those along which the rows vary more than noise alone would, and what
    lies outside them is noise of variance ``rest``. A begins as the identity; `reshaped` lets it learn the shape of the
    noise from a first clustering.
    """

    center: np.ndarray  # (d,)
    used: np.ndarray  # (d,) columns that vary
    scale: np.ndarray  # (c,) for the c columns used
    matrix: np.ndarray  # (r, r)
    axes: np.ndarray | None = None  # (c, r) orthonormal; none keeps all
    rest: float = 0.0
    n_learned: int = 0  # numbers in the matrix that were learned from the clusters

    @classmethod
    def of(cls, rows: Rows, *, scaled: bool) -> Frame:
        """A frame to begin with, columns divided by their standard deviations or as they are."""
        spread = np.sqrt(rows.column_variances)
        rounding = 1e-12 * np.abs(rows.points).max(0, initial=0.0)
        used = spread > rounding
        spread = spread[used]
        return cls(rows.mean, used, 1 / spread if scaled else np.ones(len(spread)), np.eye(len(spread)))

    def projected(self, rows: Rows) -> Frame:
        """The frame of fewer axes: those of the signal where columns are many, those that vary where some repeat."""
        few, c = rows.sample(AXES_ROWS), len(self.scale)
        if c < 2 or (c <= MOST_COLUMNS and len(few.weights) < 4 * c):
            return self
        axes, rest = _axes(self.inward(few))
        return self if axes.shape[1] == c else replace(self, matrix=np.eye(axes.shape[1]), axes=axes, rest=rest)

    @classmethod
    def first(cls, rows: Rows) -> list[Frame]:
        """The frames to start from: unscaled; scaled where columns differ wildly; both where that is not clear.

        A strong signal can make columns uneven, as units can.
        """
        plain = cls.of(rows, scaled=False)
        spread = np.sqrt(rows.column_variances[plain.used])
        unevenness = spread.max() / spread.min() if len(spread) else 1.0
        scaled = [cls.of(rows, scaled=True)] if unevenness > UNEVEN else []
        return [frame.projected(rows) for frame in scaled + ([plain] if unevenness <= WILD else [])]

    @property
    def unshaped(self) -> Frame:
        """The frame of the same columns, scales and axes, without the learned shape of the noise."""
        return replace(self, matrix=np.eye(len(self.matrix)), n_learned=0)

    def inward(self, rows: Rows) -> Rows:
        """The rows in this frame."""
        return Rows(self.rows_inward(rows.points), rows.weights)

    def rows_inward(self, X: np.ndarray) -> np.ndarray:
        """The same for an array (n, d)."""
        Z = self._scaled(X)
        if self.axes is not None:
            Z = Z @ self.axes
        diagonal = np.diagonal(self.matrix)
        if (self.matrix == np.diag(diagonal)).all():  # a product of matrices would round
            Z *= diagonal
            return np.ascontiguousarray(Z)
        return np.ascontiguousarray(Z @ self.matrix)

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        Z = X - self.center
        if not self.used.all():
            Z = Z[:, self.used]
        Z *= self.scale
        return Z

    @property
    def _back(self) -> np.ndarray:
        """From the frame to the columns used, (r, c)."""
        back = np.linalg.inv(self.matrix)
        return (back if self.axes is None else back @ self.axes.T) / self.scale

    def outward(self, Z: np.ndarray) -> np.ndarray:
        """Points of the frame as points of the data."""
        X = np.repeat(self.center[None], len(Z), 0)
        X[:, self.used] += Z @ self._back
        return X

    def covariances_outward(self, covariances: np.ndarray) -> np.ndarray:
        """Covariances (K, r, r) in the frame as covariances (K, d, d) of the data."""
        out = np.zeros((len(covariances), len(self.used), len(self.used)))
        back = self._back
        inside = back.T @ covariances @ back
        if self.axes is not None:
            outside = np.eye(len(self.scale)) - self.axes @ self.axes.T
            inside += self.rest * outside / np.outer(self.scale, self.scale)
        used = np.flatnonzero(self.used)
        out[:, used[:, None], used] = inside
        return out

    def noise(self, n: int, rng: np.random.RandomState) -> np.ndarray:
        """Noise (n, d) outside the axes."""
        out = np.zeros((n, len(self.used)))
        if self.axes is not None:
            Z = rng.standard_normal((n, len(self.scale))) * np.sqrt(self.rest)
            out[:, self.used] = (Z - Z @ self.axes @ self.axes.T) / self.scale
        return out

    @property
    def log_volume(self) -> float:
        """The log-density in the frame minus that in units of the data."""
        return -float(np.linalg.slogdet(self.matrix)[1] + np.log(self.scale).sum())

    def log_density_outside(self, X: np.ndarray) -> np.ndarray:
        """The log-density (n,) of what the frame leaves out of rows (n, d)."""
        if self.axes is None:
            return np.zeros(len(X))
        Z = self._scaled(X)
        squares = np.maximum((Z**2).sum(1) - ((Z @ self.axes) ** 2).sum(1), 0.0)
        left = self.axes.shape[0] - self.axes.shape[1]
        return -squares / (2 * self.rest) - left / 2 * np.log(2 * np.pi * self.rest)

    def reshaped(self, rows: Rows, mixtures: list[tuple[SharedNoise, float]]) -> Frame | None:
        r"""The frame that makes the spread within the clusters of one of the mixtures round, if evidence rises.

        Rows are in this frame, mixtures come with the evidence for them. With clusters held fixed a shared covariance
        W gains :math:`\frac n2 (d \log\sigma^2 - \log\det W)`, less BIC's penalty of its parameters. All mixtures are
        tried, not the best alone: few long clusters may beat many round ones.
        """
        d = rows.points.shape[1]
        if d < 2 or len(rows.weights) < 4 * d:
            return None
        centered = rows.points - rows.mean
        scatter = (centered * rows.weights[:, None]).T @ centered
        shapes = [shape for fit, evidence in mixtures for shape in _shapes(rows, centered, scatter, fit, evidence)]
        most, free, shape = max(shapes, key=lambda s: s[0], default=(-np.inf, 0, np.eye(d)))
        if most <= max(evidence for _, evidence in mixtures):
            return None
        return self.whitened(shape, free)

    def relearned(self, rows: Rows, fit: SharedNoise) -> Frame:
        """The frame with the same kind of shape, learned again from these rows, which are in this frame."""
        centered = rows.points - rows.mean
        scatter = (centered * rows.weights[:, None]).T @ centered
        shapes = {free: shape for _, free, shape in _shapes(rows, centered, scatter, fit, 0.0)}
        return self.whitened(shapes[self.n_learned], self.n_learned) if self.n_learned in shapes else self

    def whitened(self, shape: np.ndarray, n_learned: int) -> Frame:
        """The frame in which noise of this covariance becomes round; ``n_learned`` numbers of it were learned."""
        d = len(shape)
        values, vectors = np.linalg.eigh(shape * d / np.trace(shape))
        whiten = vectors / np.sqrt(values) @ vectors.T
        if n_learned == d - 1:
            whiten = np.diag(np.diagonal(whiten))
        return replace(self, matrix=self.matrix @ whiten, n_learned=n_learned)


def _shapes(rows: Rows, centered: np.ndarray, scatter: np.ndarray, fit: SharedNoise, evidence: float):
    """For any ellipsoid, and for one along the columns: evidence, number of parameters, covariance within clusters."""
    n, d = rows.mass, rows.points.shape[1]
    mass, means = _moments(responsibilities(rows.points, fit)[0] * rows.weights[:, None], centered)
    W = (scatter - (means * mass[:, None]).T @ means) / n
    if np.trace(W) <= 1e-9 * np.trace(scatter) / n:  # clusters without spread have no shape
        return
    W += LEAST_SHARE * scatter / n  # a column of whole numbers may have no noise
    for shape, free in ((W, d * (d + 1) // 2 - 1), (np.diag(np.diagonal(W)), d - 1)):
        gain = n / 2 * (d * np.log(np.trace(W) / d) - np.linalg.slogdet(shape)[1])
        yield evidence + gain - free / 2 * np.log(n), free, shape


def _moments(r: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mass and mean of the rows of each cluster."""
    mass = r.sum(0)
    return mass, (r.T @ points) / np.maximum(mass, 1e-300)[:, None]


def _axes(rows: Rows) -> tuple[np.ndarray, float]:
    r"""The axes (c, r) that are kept of rows in c columns, and the variance along each of the others.

    Up to 64 columns all that vary are kept: columns that are sums of others add nothing. Of more, those
    along which rows vary more than noise alone would (`_edge`).
    """
    n, c = rows.points.shape
    _, roots, axes = np.linalg.svd(rows.points * np.sqrt(rows.weights / rows.mass)[:, None], full_matrices=False)
    values, r = roots**2, 0
    least = 1e-9 * values.sum() / c
    if c <= MOST_COLUMNS:
        r = int((values > 1e-12 * values[0]).sum())
        if r == c:
            return np.eye(c), 0.0
    else:
        while (above := int((values > _edge(max(values[r:].sum() / (c - r), least), c - r, n)).sum())) > r:
            r = above
        r = int(np.clip(r, 1, min(MOST_COLUMNS, len(values) - 1)))
    axes = axes[:r] * np.sign(axes[np.arange(r), np.abs(axes[:r]).argmax(1)])[:, None]
    return np.ascontiguousarray(axes.T), float(max(values[r:].sum() / (c - r), least))


def _edge(noise: float, c: int, n: int) -> float:
    r"""The variance that no axis of n rows of noise :math:`\sigma^2` in c columns has, but for one set in a hundred.

    .. math:: \frac{\sigma^2}{n} \left[(\sqrt{n - 1} + \sqrt c)^2 + q\, (\sqrt{n - 1} + \sqrt c)
        \left(\frac{1}{\sqrt{n - 1}} + \frac{1}{\sqrt c}\right)^{1/3}\right]

    with q the quantile of Tracy's and Widom's law [Johnstone 2001, Theorem 1.1].
    """
    rows, columns = np.sqrt(max(n - 1, 1)), np.sqrt(c)
    width = (rows + columns) * (1 / rows + 1 / columns) ** (1 / 3)
    return noise * ((rows + columns) ** 2 + TRACY_WIDOM * width) / n
