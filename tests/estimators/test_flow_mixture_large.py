"""FlowMixture on more rows than fit at once: parts, samples and Dask arrays."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from clusters import blobs
from measureflow import FlowMixture, TransformerKMeans


def test_parts_give_the_answer_of_the_whole():
    X, _ = blobs(300)
    whole = FlowMixture().fit(X)
    parts = FlowMixture()
    for part in np.array_split(X, 3):
        parts.partial_fit(part)
    assert np.array_equal(parts.cluster_centers_, whole.cluster_centers_)
    assert np.array_equal(parts.predict(X), whole.labels_)
    assert np.array_equal(parts.labels_, whole.labels_[200:])
    later = FlowMixture().fit(X[:100]).partial_fit(X[100:])
    assert np.array_equal(later.cluster_centers_, whole.cluster_centers_)
    assert np.array_equal(later.fit(X[:100]).cluster_centers_, FlowMixture().fit(X[:100]).cluster_centers_)


def test_parts_beyond_the_memory_of_the_summary():
    X, truth = blobs(30_000)
    parts = FlowMixture()
    for part in np.array_split(X, 3):
        parts.partial_fit(part)
    assert parts.n_clusters_ == 3
    assert adjusted_rand_score(truth, parts.predict(X)) > 0.999
    assert np.sort(parts.weights_) == pytest.approx(np.sort(np.bincount(truth) / 30_000), abs=0.02)


def test_many_rows():
    X, truth = blobs(50_000)
    mixture = FlowMixture().fit(X)
    assert adjusted_rand_score(truth, mixture.labels_) > 0.999


def test_dask_arrays_give_the_answer_of_rows_in_memory():
    da = pytest.importorskip("dask.array")
    import dask

    X, _ = blobs(300)
    w = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    here = FlowMixture().fit(X, sample_weight=w)
    with dask.config.set(scheduler="synchronous"):
        there = FlowMixture().fit(da.from_array(X, chunks=(90, 1)), sample_weight=w)
        assert np.array_equal(there.labels_, here.labels_)
        assert np.array_equal(there.cluster_centers_, here.cluster_centers_)
        with pytest.raises(ValueError, match="NaN"):
            FlowMixture().fit(da.full((20, 2), np.nan, chunks=10))
        with pytest.raises(ValueError, match="sample_weight"):
            FlowMixture().fit(da.ones((20, 2), chunks=10), sample_weight=np.ones(3))


def test_rows_too_close_to_square_are_refused_not_merged():
    with pytest.raises(ValueError, match="varies by less than"):
        FlowMixture().fit(1e-200 * np.arange(10.0).reshape(5, 2))


FIRST = np.outer(np.arange(4), np.full(8, 8.0))


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "most"), [(TransformerKMeans(4, init=FIRST), 0.75), (FlowMixture(), 4.5)])
def test_large_tables_are_not_copied_again_and_again(estimator, most):
    """The peak of what a fit allocates, in units of the table; a copy more, and it fails."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 8)) + 8 * rng.integers(4, size=(200_000, 1))
    clone(estimator).fit(X[:2000])  # compiled and loaded before the count begins
    tracemalloc.start()
    try:
        estimator.fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most * X.nbytes
