"""Checks of an estimator's arguments; each error names the argument."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data

from measureflow.measures.checks import is_number, whole

__all__ = ["choice", "countable", "generator", "real", "squarable", "table", "weights", "whole"]

LARGEST = 1e140  # values whose squares, summed over rows, are still numbers
MOST_BITS = 60  # weights count rows up to 2^60 in all; beyond that, or below 2^-60, only their ratios do


def table(estimator, X, **options) -> np.ndarray:
    """X as scikit-learn reads it; whatever else goes wrong while it is read is an error that names X."""
    if hasattr(X, "columns") and not len(X.columns):
        raise ValueError("X has no columns (0 feature(s))")
    try:
        return validate_data(estimator, X, **options)
    except (ValueError, MemoryError):
        raise  # the first are scikit-learn's own, which say what is wrong
    except Exception as error:  # reading X may run foreign code: tensors, frames, integers without a limit
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"X cannot be read as a table of numbers: {error}") from error


def squarable(X: np.ndarray) -> np.ndarray:
    """Finite X, unless it has values whose squares are not."""
    if X.dtype == np.float64 and max(X.max(initial=0.0), -X.min(initial=0.0)) > LARGEST:  # abs(X) would be a copy
        raise ValueError(f"X holds values beyond {LARGEST:g}, too large to square: rescale its columns")
    return X


def weights(sample_weight, n: int) -> np.ndarray:
    """Non-negative weights of n rows, not all zero, brought into the range in which they count."""
    try:
        w = _check_sample_weight(sample_weight, np.zeros(n), dtype=np.float64, ensure_non_negative=True)
    except MemoryError:
        raise
    except Exception as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"sample_weight must be {n} non-negative numbers: {error}") from error
    if not w.any():  # older versions of scikit-learn accept these
        raise ValueError("sample_weight must not be all zero")
    return countable(w)


def countable(w: np.ndarray) -> np.ndarray:
    """Weights whose total lies between 2^-60 and 2^60, where they say how often rows count; others are brought there.

    The factor is a power of two, so ratios stay as they are to the bit. A weight below 2^-500 of the total is none.

    >>> countable(np.array([1.0, 2.0])).tolist(), bool(countable(np.array([1e300, 2e300])).sum() <= 2.0**60)
    ([1.0, 2.0], True)
    """
    with np.errstate(over="ignore"):
        total = w.sum()
    if not 2.0**-MOST_BITS <= total <= 2.0**MOST_BITS:
        w = np.ldexp(w, -int(np.frexp(w.max())[1]))  # the largest is now between a half and one
        w = np.ldexp(w, (MOST_BITS if total > 1 else -MOST_BITS) - int(np.frexp(w.sum())[1]))
    lost = w < 2.0**-500 * w.sum()
    return np.where(lost, 0.0, w) if lost.any() else w


def real(name: str, value: Any, low: float, high: float = math.inf) -> float:
    """A number between bounds, the lower one excluded where it is zero."""
    if not is_number(value, Real) or not low <= value <= high or value == low == 0:
        limits = "a positive number" if low == 0 else f"a number from {low:g} to {high:g}"
        raise ValueError(f"{name} must be {limits}, got {value!r:.80}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} must fit a float, got {value!r:.80}") from None


def generator(random_state) -> np.random.RandomState:
    """The generator that ``random_state`` is or seeds."""
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise ValueError(f"random_state: {error}") from None


def choice(name: str, value, allowed) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in allowed:
        words = [repr(word) for word in allowed]
        raise ValueError(f"{name} must be {', '.join(words[:-1])} or {words[-1]}, got {value!r:.80}")
    return value
