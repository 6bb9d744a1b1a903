"""FlowMixture on data as they come: uneven, repeated, missing, heavy-tailed, or in many columns."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from clusters import TRIANGLE, blobs
from measureflow import FlowMixture
from measureflow.estimators import UnfamiliarDataWarning
from measureflow.mixtures import frame
from measureflow.mixtures.misfit import unwarned, warn_unfamiliar


def test_columns_of_very_different_scale():
    X, truth = blobs(300)
    mixture = FlowMixture().fit(X * [1e-6, 1e6])
    assert adjusted_rand_score(truth, mixture.labels_) == 1


def test_constant_columns_change_nothing():
    X, _ = blobs(300)
    plain, padded = FlowMixture().fit(X), FlowMixture().fit(np.c_[X, np.full(300, 7.0)])
    assert np.array_equal(plain.labels_, padded.labels_)
    assert np.array_equal(padded.cluster_centers_[:, 2], np.full(3, 7.0))
    np.testing.assert_allclose(padded.cluster_centers_[:, :2], plain.cluster_centers_, atol=1e-9)


def test_duplicates_alone_are_their_own_clusters():
    mixture = FlowMixture().fit(np.repeat(TRIANGLE, [30, 20, 10], 0))
    np.testing.assert_allclose(mixture.cluster_centers_, TRIANGLE, atol=1e-6)
    assert np.bincount(mixture.labels_).tolist() == [30, 20, 10]


@pytest.mark.parametrize("rows", [np.array([[1.0, 2.0]]), np.full((5, 2), 3.0), np.array([[0.0], [0.0]])])
def test_one_distinct_row_is_one_cluster(rows):
    mixture = FlowMixture().fit(rows)
    assert mixture.n_clusters_ == 1
    assert mixture.noise_variance_ == 0
    assert np.array_equal(mixture.cluster_centers_, rows[:1])
    assert np.array_equal(mixture.predict(rows + 1), np.zeros(len(rows)))
    assert mixture.flow_.cut(3.0).n_clusters == 1


def test_fewer_rows_than_columns():
    rng = np.random.default_rng(0)
    assert max(FlowMixture().fit(rng.standard_normal((10, 30))).n_clusters_ for _ in range(4)) <= 3
    centers = 3 * rng.standard_normal((2, 30))
    X, truth = blobs(12, centers, noise=1.0)
    assert adjusted_rand_score(truth, FlowMixture().fit(X).labels_) == 1


@pytest.mark.parametrize("d", [1, 2, 8])
def test_a_single_gaussian_is_one_cluster(d):
    found = [FlowMixture().fit(np.random.default_rng(s).standard_normal((300, d))).n_clusters_ for s in range(8)]
    assert found.count(1) >= 7


def background(share):
    X, truth = blobs(500)
    noise = np.random.default_rng(1).uniform(-10, 10, (int(500 * share), 2))
    return np.concatenate([X, noise]), truth


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_uniform_background_becomes_one_wide_cluster(share):
    X, truth = background(share)
    with pytest.warns(UnfamiliarDataWarning, match="spread unlike"):
        mixture = FlowMixture(assume="gaussian").fit(X)
    assert mixture.n_clusters_ == 4
    assert adjusted_rand_score(truth, mixture.labels_[:500]) > 0.97
    assert np.mean(mixture.labels_[500:] == 3) > 0.9
    np.testing.assert_allclose(np.sort(mixture.cluster_centers_[:3], 0), np.sort(TRIANGLE, 0), atol=0.2)


def test_heavy_tails_are_warned_of():
    X = np.random.default_rng(0).standard_t(2, (500, 2))
    with pytest.warns(UnfamiliarDataWarning):
        mixture = FlowMixture(assume="gaussian").fit(X)
    assert mixture.weights_[0] > 0.7


def test_unequal_spreads_are_warned_of():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 0.2, (300, 2)), rng.normal(8, 2, (300, 2))])
    with pytest.warns(UnfamiliarDataWarning, match="spread unlike") as caught:
        mixture = FlowMixture(assume="gaussian").fit(X)
    assert caught[0].filename == __file__  # the warning points at the caller
    assert mixture.n_clusters_ == 2
    np.testing.assert_allclose(np.sqrt(np.diagonal(mixture.covariances_, 0, 1, 2)), [[2.0] * 2, [0.2] * 2], rtol=0.1)


def test_one_thread_without_warnings_leaves_those_of_the_others():
    with ThreadPoolExecutor(1) as pool, unwarned():
        warn_unfamiliar(["here, which would be an error"])
        with pytest.warns(UnfamiliarDataWarning, match="there"):
            pool.submit(warn_unfamiliar, ["there"]).result()
    with pytest.warns(UnfamiliarDataWarning, match="afterwards"):
        warn_unfamiliar(["here afterwards"])


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_the_first_missing_value_is_named(value, word):
    X = blobs(20)[0]
    X[7, 1] = X[12, 0] = value
    with pytest.raises(ValueError, match=rf"{word} at row 7, column 1 \(2 such rows\)"):
        FlowMixture().fit(X)
    with pytest.raises(ValueError, match=f"{word} at row 7, column 'height'"):
        FlowMixture().fit(pd.DataFrame(X, columns=["width", "height"]))


def test_rows_with_missing_values_can_be_dropped():
    X, _ = blobs(200)
    holes = X.copy()
    holes[[3, 50], [0, 1]] = np.nan, np.inf
    kept = np.delete(np.arange(200), [3, 50])
    mixture, whole = FlowMixture(missing="drop").fit(holes), FlowMixture().fit(X[kept])
    assert mixture.labels_[[3, 50]].tolist() == [-1, -1]
    assert np.array_equal(mixture.labels_[kept], whole.labels_)
    assert np.array_equal(mixture.predict(holes), mixture.labels_)
    with pytest.raises(ValueError, match="2 rows with missing values"):
        mixture.predict_proba(holes)
    with pytest.raises(ValueError, match="no row without missing values"):
        FlowMixture(missing="drop").fit(np.full((3, 2), np.nan))


# ---- many columns


def wide(d=300, n=240):
    """The corners of a tetrahedron in many columns, noise of one in each."""
    rng = np.random.default_rng(0)
    corners = 4.0 * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    axes = np.linalg.qr(rng.normal(size=(d, 3)))[0]
    truth = rng.integers(4, size=n)
    return (corners @ axes.T)[truth] + rng.normal(size=(n, d)), truth


def test_many_columns_are_projected_onto_the_signal_and_back():
    X, truth = wide()
    mixture = FlowMixture(random_state=0).fit(X)
    assert adjusted_rand_score(truth, mixture.labels_) > 0.95
    assert mixture.cluster_centers_.shape == (mixture.n_clusters_, 300)
    means = np.stack([X[mixture.labels_ == k].mean(0) for k in range(mixture.n_clusters_)])
    assert mixture.n_clusters_ == 4
    assert np.linalg.norm(mixture.cluster_centers_ - means, axis=1).max() < 3  # the means are 2.2 from the truth
    assert mixture.noise_variance_ == pytest.approx(1.0, rel=0.1)
    new, labels = mixture.sample(2000)
    for k in range(mixture.n_clusters_):
        assert np.var(new[labels == k], axis=0).mean() == pytest.approx(1.0, rel=0.1)


def test_one_set_of_noise_in_a_hundred_has_a_variance_beyond_the_edge():
    rng = np.random.default_rng(0)
    largest = [np.linalg.svd(rng.normal(size=(60, 90)), compute_uv=False)[0] ** 2 / 60 for _ in range(1000)]
    assert 0.002 < np.mean(largest > frame._edge(1.0, 90, 60)) < 0.02  # three standard errors around 0.01


def test_densities_in_many_columns_are_those_of_the_whole_space():
    X, _ = wide(d=80)
    mixture = FlowMixture().fit(X)
    noise = [multivariate_normal(c, C) for c, C in zip(mixture.cluster_centers_, mixture.covariances_, strict=True)]
    logs = np.stack([np.log(p) + part.logpdf(X) for p, part in zip(mixture.weights_, noise, strict=True)])
    np.testing.assert_allclose(mixture.score_samples(X), np.logaddexp.reduce(logs), rtol=1e-6)


def test_noise_alone_in_many_columns_is_one_cluster():
    assert FlowMixture().fit(np.random.default_rng(0).normal(size=(200, 150))).n_clusters_ == 1


def test_a_few_rows_of_noise_in_many_columns_are_one_cluster():
    """Clusters that met would be counted once for each order they could be named in."""
    for seed in range(4):
        assert FlowMixture().fit(np.random.default_rng(seed).normal(size=(8, 65))).n_clusters_ == 1


def test_a_known_noise_is_round_however_uneven_the_columns():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (200, 8)), rng.normal(0, 1, (100, 8)) + 60 * np.eye(8)[0]])
    snr_db = 10 * np.log10(60**2 * (2 / 9) / 8)
    assert FlowMixture(snr_db=snr_db).fit(X).n_clusters_ == 2
    assert FlowMixture().fit(X).n_clusters_ == 2


def test_columns_that_are_sums_of_others_change_little():
    X, truth = blobs(300)
    plain, more = FlowMixture().fit(X), FlowMixture().fit(np.c_[X, X.sum(1), 2 * X[:, 0] + 1])
    assert adjusted_rand_score(truth, more.labels_) == 1
    np.testing.assert_allclose(more.cluster_centers_[:, :2], plain.cluster_centers_, atol=1e-3)
    line = np.random.default_rng(0).normal(size=200)
    assert FlowMixture().fit(np.c_[line, 2 * line, line + 1]).n_clusters_ == 1


def test_a_known_ratio_holds_in_many_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 100))
    X[:50] += 3.0
    snr_db = 10 * np.log10(9 * 2 / 9)
    assert FlowMixture(snr_db=snr_db).fit(X).n_clusters_ == 2
