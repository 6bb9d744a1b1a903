"""Whether data look like the mixtures that the flow was trained on: a few round clusters with one noise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from scipy.stats import chi2

from measureflow.measures.caller import warn_caller
from measureflow.mixtures.clusters import GaussianClusters
from measureflow.mixtures.ellipsoids import Ellipsoids
from measureflow.mixtures.rows import Rows
from measureflow.mixtures.shared_noise import SharedNoise, responsibilities

FEW_VALUES = 8  # a column with fewer different ones is hardly a measurement
FEWEST_ROWS = 50  # fewer say too little about the shape of the noise

_silent: ContextVar[bool] = ContextVar("silent", default=False)  # filters of `warnings` are shared by all threads


class UnfamiliarDataWarning(UserWarning):
    """The data look unlike the mixtures that the flow was trained on."""


@contextmanager
def unwarned() -> Iterator[None]:
    """Fits inside it give no `UnfamiliarDataWarning`; its sentences are in ``diagnosis_`` all the same."""
    before = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(before)


def warn_unfamiliar(sentences: Iterable[str]) -> None:
    """Warn the caller of the package of each sentence of a diagnosis, except inside `unwarned`."""
    for sentence in () if _silent.get() else sentences:
        warn_caller(sentence, UnfamiliarDataWarning)


def diagnosis(rows: Rows, names: list, gaussians: GaussianClusters | None) -> list[str]:
    """What is unusual about the rows, in sentences: a column that is more a label than a measurement, or a misfit of
    the Gaussians where they are the answer."""
    column = coarse_column(rows)
    if column is not None:
        few = f"column {names[column]!r} has only a few different values"
        return [f"{few} and splits the clusters by them: leave it out?"]
    odd = None if gaussians is None else misfit_message(gaussians.frame.inward(rows), gaussians.mixture)
    return [] if odd is None else [f"{odd}: the flow was trained on round clusters of one size"]


def misfit_message(rows: Rows, fit: SharedNoise | Ellipsoids) -> str | None:
    """What is odd about rows under the mixture fitted to them, in words; None where nothing is.

    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (100, 2)), rng.normal(20, 4, (100, 2))])
    >>> misfit_message(Rows(X, np.ones(200)), SharedNoise(np.array([[0.0, 0.0], [20.0, 20.0]]), np.full(2, 0.5), 8.5))
    'clusters that hold 100% of the rows spread unlike the others'
    """
    if fit.variance <= 0 or rows.mass < FEWEST_ROWS:
        return None
    if isinstance(fit, Ellipsoids):
        return "clusters spread unlike one another, and each was given a shape of its own"
    r = responsibilities(rows.points, fit)[0] * rows.weights[:, None]
    gaps = fit.squared_distances(rows.points)
    return _unequal(r, gaps, rows) or _scattered(r, rows) or _far(gaps, rows)


def radial_misfit(points: np.ndarray, fit: SharedNoise | Ellipsoids) -> float:
    """The largest gap between the distribution of the squared distances of points (n, d) to the nearest centre and that
    of Gaussian rows, which is Kolmogorov's and Smirnov's."""
    n, d = points.shape
    if fit.variance <= 0 or d == 0:
        return 1.0
    found = np.sort(chi2.cdf(fit.squared_distances(points).min(1), d))
    return float(np.abs(found - (np.arange(n) + 0.5) / n).max())


def coarse_column(rows: Rows) -> int | None:
    """The first column that takes a few values only, more a label than a measurement; None where there is none.

    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> X[:, 1] = X[:, 1] > 0
    >>> coarse_column(Rows(X, np.ones(200)))
    1
    """
    n = len(rows.weights)
    if n < FEWEST_ROWS:
        return None
    few = (j for j, column in enumerate(rows.points.T) if 1 < len(np.unique(column)) < min(FEW_VALUES, n / 10))
    return next(few, None)


def _unequal(r: np.ndarray, gaps: np.ndarray, rows: Rows) -> str | None:
    """Clusters wider or narrower than all together, by more than half and by five standard errors."""
    d, held = rows.points.shape[1], np.maximum(r.sum(0), 1e-300)
    spread = (r * gaps).sum(0) / (held * d)
    mean = held @ spread / rows.mass
    if mean < 1e-3:  # rows that repeat exactly: rounding is all the noise there is
        return None
    log_ratio = np.abs(np.log(np.maximum(spread, 1e-9 * mean) / mean))
    odd = (log_ratio > np.log(1.5)) & (log_ratio * np.sqrt(d * held / 2) > 5)
    share = held[odd].sum() / rows.mass
    return f"clusters that hold {share:.0%} of the rows spread unlike the others" if share > 0.05 else None


def _scattered(r: np.ndarray, rows: Rows) -> str | None:
    """Clusters of next to no rows, as a background or a heavy tail leaves them."""
    tiny = int((r.sum(0) < min(5.0, max(1.5, 0.01 * rows.mass))).sum())
    if tiny < 3 or 3 * tiny < r.shape[1]:
        return None
    return f"{tiny} of {r.shape[1]} clusters hold next to no rows, as a background or heavy tails make them"


def _far(gaps: np.ndarray, rows: Rows) -> str | None:
    """Rows farther from every centre than Gaussian noise would put them."""
    d = rows.points.shape[1]
    far = float(rows.weights @ (gaps.min(1) > d + 4 * np.sqrt(2 * d) + 8))
    share = far / rows.mass
    return f"{share:.0%} of the rows lie far from every centre" if far >= 5 and share > 0.02 else None
