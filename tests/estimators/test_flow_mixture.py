"""FlowMixture: scikit-learn's contract, what it finds, and the fitted mixture."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from clusters import TRIANGLE, any_data, blobs, digest
from measureflow import FlowMixture
from measureflow.models import AnyDimensionFlow, FlowTransformer, load_pretrained, save_model


@any_data  # one of the checks adds a background
@parametrize_with_checks([FlowMixture()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# ---- what it finds


@pytest.mark.parametrize("d", [1, 2, 10])
def test_a_single_cluster_is_known_in_twenty_samples(d):
    for seed in range(20):
        X, _ = blobs(100, np.zeros((1, d)), noise=0.5, seed=seed)
        mixture = FlowMixture().fit(X)
        assert mixture.n_clusters_ == 1
        assert mixture.n_clusters_posterior_[1] == max(mixture.n_clusters_posterior_.values())


@pytest.mark.parametrize("K", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("d", [1, 2, 10])
def test_it_finds_the_clusters_of_clear_data(K, d):
    rng = np.random.default_rng(0)
    centers = 10.0 * np.arange(K)[:, None] * np.ones(d) / np.sqrt(d) + rng.uniform(-1, 1, (K, d))
    X, truth = blobs(100 * K, centers, noise=0.5)
    mixture = FlowMixture().fit(X)
    assert mixture.n_clusters_ == K
    assert adjusted_rand_score(truth, mixture.labels_) == 1
    assert mixture.noise_variance_ == pytest.approx(0.25, rel=0.2)
    assert mixture.n_clusters_posterior_[K] == max(mixture.n_clusters_posterior_.values())
    assert sum(mixture.n_clusters_posterior_.values()) == pytest.approx(1)


def test_labels_are_ordered_by_weight_then_by_position():
    X, truth = blobs(400, weights=[0.2, 0.5, 0.3])
    mixture = FlowMixture().fit(X)
    assert (np.diff(mixture.weights_) <= 0).all()
    np.testing.assert_allclose(mixture.cluster_centers_, TRIANGLE[[1, 2, 0]], atol=0.1)
    assert np.array_equal(mixture.labels_, np.array([2, 0, 1])[truth])
    corners = np.repeat([[5.0, 0.0], [0.0, 5.0], [0.0, 0.0]], 20, 0)  # equal weights: the smallest position is first
    assert FlowMixture().fit(corners).cluster_centers_ == pytest.approx(np.array([[0.0, 0.0], [0.0, 5.0], [5.0, 0.0]]))


@any_data
@pytest.mark.parametrize("K", [1, 2, 3, 4, 7, 30])
def test_n_clusters_is_obeyed(K):
    mixture = FlowMixture(K).fit(blobs(60)[0])
    assert mixture.n_clusters_ == len(mixture.cluster_centers_) == len(mixture.weights_) == K
    assert mixture.predict_proba(TRIANGLE).shape == (3, K)


@any_data  # so many clusters hold next to no rows
def test_n_clusters_may_exceed_the_rows_of_the_scan():
    assert FlowMixture(250).fit(blobs(400)[0]).n_clusters_ == 250


def test_more_clusters_than_distinct_rows_is_an_error():
    with pytest.raises(ValueError, match="n_clusters=3 exceeds the 2 distinct rows"):
        FlowMixture(3).fit(np.repeat(TRIANGLE[:2], 5, 0))


def test_a_lower_snr_is_coarser():
    pairs = np.array([[-5.0, -0.6], [-5.0, 0.6], [5.0, -0.6], [5.0, 0.6]])
    X, _ = blobs(400, pairs, noise=0.15)
    assert FlowMixture().fit(X).n_clusters_ == 4
    coarse = FlowMixture(snr_db=5.0).fit(X)
    assert coarse.snr_db_ == 5.0
    assert coarse.n_clusters_ == 2


def test_the_dial_never_has_more_clusters_at_a_lower_snr():
    pairs = np.array([[-5.0, -0.6], [-5.0, 0.6], [5.0, -0.6], [5.0, 0.6]])
    X, _ = blobs(300, pairs, noise=0.15)
    dial = FlowMixture().fit(X).flow_
    cuts = [dial.cut(snr_db) for snr_db in np.linspace(-6, 32, 20)]
    counts = [cut.n_clusters for cut in cuts]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert 4 in counts
    for cut in cuts:
        assert set(cut.labels) == set(range(cut.n_clusters))
        assert cut.weights.sum() == pytest.approx(1)
        assert cut.centers.shape == (cut.n_clusters, 2)
    with pytest.raises(ValueError, match="snr_db"):
        dial.cut(np.nan)


def test_the_flow_starts_at_the_rows_and_ends_near_the_centres():
    X, _ = blobs(200)
    mixture = FlowMixture().fit(X)
    np.testing.assert_allclose(mixture.flow_[0].numpy(), X[np.lexsort(X.T[::-1])], rtol=0, atol=1e-12)
    away = [
        np.sqrt(((points.numpy()[:, None] - mixture.cluster_centers_) ** 2).sum(-1)).min(1) for points in mixture.flow_
    ]
    assert away[-1].mean() < 0.2 * away[0].mean()
    assert np.median(away[-1]) < 0.1 * np.median(away[0])
    table = mixture.flow_.to_pandas()
    assert len(table) == 200 * len(mixture.flow_)


# ---- the fitted mixture


def test_new_rows_are_labelled_without_a_flow(monkeypatch):
    X, _ = blobs(200)
    mixture = FlowMixture(random_state=0).fit(X)

    def attention(*_, **__):
        raise AssertionError("an attention pass was run")

    monkeypatch.setattr(AnyDimensionFlow, "flow_and_noise", attention)
    assert np.array_equal(mixture.predict(X), mixture.labels_)
    for call in (mixture.predict_proba, mixture.score_samples, mixture.score, mixture.transform):
        call(X)
    mixture.sample(3)
    with pytest.raises(AssertionError, match="attention pass"):
        mixture.fit(X)


def test_probabilities_densities_and_distances_agree_with_the_attributes():
    X, _ = blobs(300, noise=1.5)
    mixture = FlowMixture(assume="gaussian").fit(X)
    new = np.random.default_rng(1).uniform(-5, 5, (50, 2))
    noise = [multivariate_normal(centre, mixture.noise_covariance_) for centre in mixture.cluster_centers_]
    joint = np.log(mixture.weights_) + np.stack([each.logpdf(new) for each in noise], 1)
    np.testing.assert_allclose(mixture.score_samples(new), logsumexp(joint, axis=1), atol=1e-9)
    np.testing.assert_allclose(mixture.predict_proba(new), np.exp(joint - logsumexp(joint, 1)[:, None]), atol=1e-9)
    assert np.array_equal(mixture.predict(new), joint.argmax(1))
    assert mixture.score(new) == pytest.approx(logsumexp(joint, axis=1).mean())
    distances = np.linalg.norm(new[:, None] - mixture.cluster_centers_, axis=-1)
    np.testing.assert_allclose(mixture.transform(new), distances, atol=1e-12)
    assert mixture.certificate_["clusters"] == pytest.approx(mixture.score(X), abs=1e-6)


def test_densities_of_evened_columns_integrate_to_one():
    X, _ = blobs(200)
    mixture = FlowMixture().fit(X * [1.0, 1000.0])
    assert np.linalg.cond(mixture.noise_covariance_) > 1e5
    x, y = np.linspace(-7, 7, 300), 1000 * np.linspace(-5, 9, 300)
    grid = np.stack(np.meshgrid(x, y), -1).reshape(-1, 2)
    mass = np.exp(mixture.score_samples(grid)).sum() * (x[1] - x[0]) * (y[1] - y[0])
    assert mass == pytest.approx(1, abs=1e-6)


def test_samples_follow_the_mixture():
    X, _ = blobs(400, weights=[0.2, 0.5, 0.3])
    mixture = FlowMixture(random_state=0).fit(X * [1.0, 100.0])
    drawn, labels = mixture.sample(20_000)
    np.testing.assert_allclose(np.bincount(labels) / 20_000, mixture.weights_, atol=0.02)  # five standard errors
    for k in range(3):
        mine = drawn[labels == k]
        spread = np.sqrt(np.diagonal(mixture.noise_covariance_))
        assert (np.abs(mine.mean(0) - mixture.cluster_centers_[k]) < 5 * spread / len(mine) ** 0.5).all()
        np.testing.assert_allclose(np.cov(mine.T), mixture.noise_covariance_, rtol=0.1, atol=0.1 * spread.prod())
    assert np.array_equal(mixture.sample(5)[0], mixture.sample(5)[0])
    with pytest.raises(ValueError, match="n_samples"):
        mixture.sample(0)


def test_pickles_and_clones():
    X, _ = blobs(100)
    mixture = FlowMixture(snr_db=12.0, missing="drop").fit(X)
    again = pickle.loads(pickle.dumps(mixture))
    assert digest(again) == digest(mixture)
    assert np.array_equal(again.predict_proba(X), mixture.predict_proba(X))
    fresh = clone(mixture)
    assert fresh.get_params() == mixture.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(X)


def test_names_of_columns_are_checked_and_outputs_are_named():
    X = pd.DataFrame(blobs(100)[0], columns=["width", "height"])
    mixture = FlowMixture().fit(X)
    assert mixture.feature_names_in_.tolist() == ["width", "height"]
    assert mixture.get_feature_names_out().tolist() == ["flowmixture0", "flowmixture1", "flowmixture2"]
    with pytest.raises(ValueError, match="feature names"):
        mixture.predict(X.rename(columns={"width": "depth"}))


def test_polish_raises_the_likelihood():
    X, _ = blobs(500, noise=1.5)
    polished, rough = FlowMixture(3).fit(X), FlowMixture(3, polish=False).fit(X)
    assert polished.score(X) >= rough.score(X) - 1e-9


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 2.5}, "n_clusters"),
        ({"n_clusters": True}, "n_clusters"),
        ({"snr_db": np.nan}, "snr_db"),
        ({"snr_db": 500.0}, "snr_db"),
        ({"snr_db": "high"}, "snr_db"),
        ({"n_layers": 0}, "n_layers"),
        ({"schedule": "cosine"}, "schedule"),
        ({"missing": "guess"}, "missing"),
        ({"model": "no-such-model"}, "any-dimension"),
        ({"model": "flow-transformer"}, "AnyDimensionFlow"),
    ],
)
def test_wrong_parameters_are_named(options, word):
    with pytest.raises(ValueError, match=word):
        FlowMixture(**options).fit(blobs(20)[0])


def test_a_model_can_be_a_name_a_folder_or_a_module(tmp_path):
    X, _ = blobs(100)
    model = load_pretrained("any-dimension")
    folder = save_model(model, tmp_path / "model")
    assert (
        len({digest(FlowMixture(model=given).fit(X)) for given in ("any-dimension", folder, str(folder), model)}) == 1
    )
    save_model(FlowTransformer(), tmp_path / "other")
    with pytest.raises(ValueError, match="AnyDimensionFlow"):
        FlowMixture(model=tmp_path / "other").fit(X)
