"""FlowMixture's answer from two flows: its attributes, its laws, and how it meets rows it has not seen."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from clusters import any_data, blobs
from measureflow import FlowMixture
from measureflow.coclustering.consensus import ROWS, ROWS_PER_CLUSTER
from measureflow.measures.shapes import ShapePrior


def shaped(seed: int, n: int = 120, d: int = 2) -> np.ndarray:
    """A set of the prior of shapes."""
    return ShapePrior().sample(1, n, np.random.default_rng(seed), d=d).points[0].double().numpy()


@pytest.fixture(scope="module")
def fitted():
    X, _ = make_moons(300, noise=0.05, random_state=0)
    return X, FlowMixture().fit(X)


def test_attributes_agree_with_one_another(fitted):
    X, mixture = fitted
    n, K = len(X), mixture.n_clusters_
    assert set(mixture.labels_) == set(range(K))
    assert np.array_equal(mixture.predict(X), mixture.labels_)
    p = mixture.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_allclose(p[np.arange(n), mixture.labels_], mixture.probabilities_)
    np.testing.assert_allclose(mixture.weights_, np.bincount(mixture.labels_) / n, atol=0.2)
    assert sum(mixture.n_clusters_posterior_.values()) == pytest.approx(1, abs=1e-6)
    assert 0 <= mixture.gaussian_weight_ <= 1
    assert mixture.outliers_.dtype == bool
    assert mixture.covariances_.shape == (K, 2, 2)
    assert mixture.transform(X).shape == (n, K)
    assert np.isfinite(mixture.score(X))


@pytest.mark.parametrize("apart", [1.5, 3.0, 9.0])
def test_two_stripes_are_two_however_far_apart(apart):
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=300)
    X = np.stack([rng.uniform(0, 10, 300), apart * labels + rng.uniform(-0.2, 0.2, 300)], 1)
    assert adjusted_rand_score(labels, FlowMixture().fit(X).labels_) == 1


def test_pairs_are_probabilities_and_symmetric(fitted):
    X, mixture = fitted
    P = mixture.co_clustering_
    assert P.shape == (len(X), len(X))
    assert ((P >= 0) & (P <= 1)).all()
    np.testing.assert_allclose(P, P.T, atol=1e-5)
    np.testing.assert_array_equal(mixture.co_clustering(X[:5], X[7:9]), P[:5, 7:9])
    same = mixture.labels_[:, None] == mixture.labels_
    assert P[same].mean() > P[~same].mean() + 0.2


def test_the_better_of_two_partitions_is_taken(fitted):
    _, mixture = fitted
    consensus = mixture._consensus
    best = max(consensus.gaussians, consensus.shapes, key=lambda partition: partition.expected_index)
    assert mixture.expected_index_ == best.expected_index
    assert mixture.n_clusters_ == best.n_clusters


@any_data
@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_the_rows_changes_no_bit(seed):
    X = shaped(seed)
    order = np.random.default_rng(seed).permutation(len(X))
    here, there = FlowMixture().fit(X), FlowMixture().fit(X[order])
    assert np.array_equal(there.labels_, here.labels_[order])
    assert np.array_equal(there.co_clustering_, here.co_clustering_[np.ix_(order, order)])


@any_data
@pytest.mark.parametrize("seed", range(6))
def test_motion_and_scale_change_pairs_by_rounding_alone(seed):
    X = shaped(seed, d=3)
    turn = np.array([[0, 1, 0], [0, 0, -1], [1, 0, 0]])  # Gaussians may be long along the columns: these are kept
    here, there = FlowMixture().fit(X), FlowMixture().fit(7 * X @ turn + 5)
    assert there.gaussian_weight_ == pytest.approx(here.gaussian_weight_, abs=0.02)
    assert np.abs(there.co_clustering_ - here.co_clustering_).mean() < 0.01
    assert there.expected_index_ == pytest.approx(here.expected_index_, abs=0.02)


def test_a_weight_is_a_repetition_for_shapes_too():
    X, times = shaped(1, 80), np.random.default_rng(0).integers(1, 4, 80)
    weighted = FlowMixture().fit(X, sample_weight=times)
    repeated = FlowMixture().fit(np.repeat(X, times, axis=0))
    assert weighted._consensus is not None
    assert np.array_equal(np.repeat(weighted.labels_, times), repeated.labels_)


def test_a_row_and_its_copies_belong_together():
    X = shaped(1, 80)
    mixture = FlowMixture().fit(np.concatenate([X, X[:20]]))
    assert np.array_equal(mixture.labels_[80:], mixture.labels_[:20])
    np.testing.assert_allclose(mixture.co_clustering_[np.arange(20), 80 + np.arange(20)], 1)


def test_the_number_of_clusters_is_obeyed():
    for K in (1, 2, 7):
        assert FlowMixture(K).fit(shaped(2)).n_clusters_ == K


def test_gaussians_may_be_assumed():
    X, _ = blobs(200)
    mixture = FlowMixture(assume="gaussian").fit(X)
    assert mixture._consensus is None
    assert mixture.gaussian_weight_ == 1
    assert np.isnan(mixture.expected_index_)
    assert not mixture.outliers_.any()
    np.testing.assert_allclose(np.diagonal(mixture.co_clustering_), 1, atol=1e-3)
    with pytest.raises(ValueError, match="assume must be"):
        FlowMixture(assume="square").fit(X)


def test_rows_beyond_those_seen_follow():
    crescents, _ = make_moons(900, noise=0.05, random_state=0)
    X = np.concatenate([crescents, crescents + 40])
    mixture = FlowMixture().fit(X)
    assert mixture._consensus is not None
    wanted = np.clip(ROWS_PER_CLUSTER * len(mixture._gaussians.weights), *ROWS)
    assert len(mixture._consensus.seen.points) == wanted < 1800
    assert mixture.labels_.shape == (1800,)
    assert adjusted_rand_score(np.arange(1800) < 900, mixture.cluster_centers_[mixture.labels_][:, 0] < 20) == 1


def test_outliers_are_labelled_only_where_asked_for(monkeypatch):
    X, _ = blobs(200)
    X[:3] = [[60, 0], [0, -70], [-50, 90]]
    kept, marked = FlowMixture().fit(X), FlowMixture(label_outliers=True).fit(X)
    assert (kept.labels_ >= 0).all()
    assert np.array_equal(kept.outliers_, marked.outliers_)
    assert np.array_equal(marked.labels_ == -1, kept.outliers_)


def test_few_rows_are_left_to_the_gaussians():
    assert FlowMixture().fit(shaped(0, 31))._consensus is None
    assert FlowMixture().fit(shaped(0, 40))._consensus is not None


def test_rows_count_with_their_repetitions():
    """Counts in two columns are some twenty different rows, and three hundred all the same."""
    X = np.random.default_rng(0).poisson(1.0, (300, 2)).astype(float)
    assert len(np.unique(X, axis=0)) < 32
    assert np.isfinite(FlowMixture().fit(X).expected_index_)
    assert np.isnan(FlowMixture().fit(X[:30]).expected_index_)


def test_a_shape_model_must_know_shapes():
    with pytest.raises(ValueError, match="shape_model must be an AnyShapeFlow"):
        FlowMixture(shape_model="any-dimension").fit(shaped(0))
    with pytest.raises(ValueError, match="shape_model must be one of"):
        FlowMixture(shape_model="nothing").fit(shaped(0))


def test_pairs_of_very_many_rows_are_asked_for():
    mixture = FlowMixture().fit(np.random.default_rng(0).standard_normal((4097, 2)))
    with pytest.raises(AttributeError, match="co_clustering"):
        _ = mixture.co_clustering_
    assert mixture.co_clustering(np.zeros((2, 2))).shape == (2, 2)
