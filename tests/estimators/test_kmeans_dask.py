"""Rows on a two-worker cluster give the centres of rows in memory."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from measureflow import TransformerKMeans

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


@pytest.mark.parametrize("algorithm", ["lloyd", "spherical"])
@pytest.mark.parametrize("init", ["k-means++", "random", "array"])
def test_same_centres_as_in_memory(cluster, algorithm, init):
    X = make_blobs(900, 3, centers=5, random_state=0)[0]
    w = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    common = {"algorithm": algorithm, "init": X[:5] if init == "array" else init, "n_init": 1, "random_state": 0}
    here = TransformerKMeans(5, **common).fit(X, sample_weight=w)
    there = TransformerKMeans(5, **common).fit(da.from_array(X, chunks=(250, 2)), sample_weight=w)
    np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, rtol=0, atol=1e-11)
    assert np.array_equal(there.labels_, here.labels_)
    assert there.n_iter_ == here.n_iter_


def test_empty_clusters_relocate_across_blocks(cluster):
    X = make_blobs(300, 2, centers=3, random_state=1)[0]
    C = np.concatenate([X[:2], [[1e3, 1e3]]])
    here = TransformerKMeans(3, init=C).fit(X)
    there = TransformerKMeans(3, init=C).fit(da.from_array(X, chunks=(100, 2)))
    np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, rtol=0, atol=1e-11)


def test_bad_dask_input_is_named(cluster):
    X = da.ones((20, 2), chunks=10)
    with pytest.raises(ValueError, match="algorithm"):
        TransformerKMeans(2, algorithm="soft").fit(X)
    with pytest.raises(ValueError, match="sample_weight"):
        TransformerKMeans(2).fit(X, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="NaN"):
        TransformerKMeans(2).fit(X * np.nan)
