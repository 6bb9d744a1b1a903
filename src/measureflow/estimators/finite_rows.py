"""Rows that an estimator can use: finite, small enough to square, and of positive weight in all."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_array

from measureflow.attention.threads import one_thread
from measureflow.estimators import checks
from measureflow.mixtures.rows import Rows, distinct_rows


def finite_rows(X: np.ndarray, drop: bool, first: int = 0, names=None) -> tuple[np.ndarray, np.ndarray]:
    """Rows without gaps, and which they are; unless ``drop``, an error names the first row with a gap."""
    fine = np.isfinite(X)
    kept = np.asarray(fine.all(1))
    if not kept.all() and not drop:
        row, column = np.argwhere(~fine)[0]
        name = f"column {column}" if names is None else f"column {names[column]!r}"
        what = "NaN" if np.isnan(X[row, column]) else "infinity"
        raise ValueError(
            f"X contains NaN or infinity: {what} at row {first + row}, {name} ({int((~kept).sum())} such rows); "
            "missing='drop' leaves them out"
        )
    return checks.squarable(X if kept.all() else X[kept]), kept


def check_spread(X: np.ndarray) -> None:
    """Refuse rows that vary by too little to square."""
    spread = np.ptp(X, 0).max(initial=0.0) if len(X) else 0.0
    if 0 < spread < 1 / checks.LARGEST:
        raise ValueError(f"X varies by less than {1 / checks.LARGEST:g}, too little to square: rescale its columns")


def check_weight_left(w: np.ndarray, sample_weight) -> None:
    """Refuse a table in which no row with weight is left."""
    if not w.any():
        left = "X has no row without missing values" if sample_weight is None else "sample_weight must not be all zero"
        raise ValueError(left)


def as_block(block) -> np.ndarray:
    """A block of a Dask array, which may be empty, as floats."""
    return check_array(
        block, dtype=np.float64, order="C", ensure_all_finite=False, ensure_min_samples=0, input_name="X"
    )


@one_thread()
def summarised(block, w, first: int, drop: bool, size: int) -> Rows:
    """The rows of a block that have weight and no gaps, summarised in at most ``size``."""
    block, kept = finite_rows(as_block(block), drop, first)
    if not w[kept].any():
        return Rows(block[:0], w[:0])
    return distinct_rows(block, w[kept]).summary(size)
