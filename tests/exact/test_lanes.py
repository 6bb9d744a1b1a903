"""The vector kernel of the fused k-means against plain sums, for numbers of rows and centres that fill no register."""

import numpy as np
import pytest
from numba import njit

from measureflow.lloyd.kernels import ROWS, table_of, two_nearest
from measureflow.lloyd.points import Points


@njit
def search(tile, T, lift, near, second, where):
    two_nearest(tile, T, lift, near, second, where)


@pytest.mark.parametrize("d", [1, 2, 7, 16, 65])
@pytest.mark.parametrize("k", [1, 2, 4, 5, 9, 64, 257])
def test_the_nearest_two_are_those_of_plain_sums(d, k):
    rng = np.random.default_rng(k * d)
    c, x = rng.normal(size=(k, d)), rng.normal(size=(ROWS, d)).astype(np.float32)
    table = table_of(c, 1.0, False)
    near, second, where = np.empty(ROWS, np.float32), np.empty(ROWS, np.float32), np.empty(ROWS, np.int32)
    search(x.T.ravel(), table.T, table.lift, near, second, where)
    scores = (c * c).sum(1) - 2 * x.astype(np.float64) @ c.T
    loss = table.rounding * ((x * x).sum(1)[:, None] + (c * c).sum(1)) + 1e-30  # what the table says float32 may lose
    best = scores.argmin(1)
    least = np.take_along_axis(scores, best[:, None], 1)[:, 0]
    assert np.array_equal(where, best)  # normal numbers: no two scores within rounding of each other
    assert (near <= least + loss.max(1)).all()
    assert (near >= least - 2 * loss.max(1)).all()
    others = np.where(np.arange(k) == best[:, None], np.inf, scores).min(1)
    if k == 1:
        assert (second > 1e38).all()
    else:
        assert (abs(second - others) <= 2 * loss.max(1)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_centres_closer_than_float32_sees_are_told_apart(dtype, offset):
    """Pairs of centres 1e-9 apart, or as near as the dtype has them: labels and ties of the exact formula."""
    rng = np.random.default_rng(0)
    c = rng.normal(size=(40, 6)) + offset
    C = np.concatenate([c, c + 1e-9 * rng.normal(size=c.shape)]).astype(dtype)
    X = (rng.normal(size=(500, 6)) + offset).astype(dtype)
    found = Points(X).assign(C)
    s = np.zeros((len(X), len(C)))
    for t in range(6):  # in the order of the exact formula, so that ties are the same
        s += (X[:, t, None].astype(np.float64) - C[None, :, t].astype(np.float64)) ** 2
    assert np.array_equal(found.labels, s.argmin(1))
    assert np.array_equal(found.tied, (s == s.min(1, keepdims=True)).sum(1) > 1)
