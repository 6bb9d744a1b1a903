"""Rows that stand for all the others where there are too many to look at."""

from __future__ import annotations

import numpy as np


def evenly(n: int, most: int) -> np.ndarray:
    """At most ``most`` of the numbers from 0 to n - 1, evenly spaced; all of them where there are no more.

    >>> evenly(9, 3).tolist(), evenly(2, 3).tolist()
    ([0, 4, 8], [0, 1])
    """
    return np.linspace(0, n - 1, min(n, most)).astype(int)
