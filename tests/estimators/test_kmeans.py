"""TransformerKMeans against scikit-learn's contract, scikit-learn's numbers, the textbook and itself."""

import math

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from measureflow import TransformerKMeans
from measureflow.circuits import textbook

EVERY = ("lloyd", "soft", "spherical", "trimmed", "robust", "medoids")


def blobs(n=200, d=3, k=4, seed=0):
    return make_blobs(n, d, centers=k, random_state=seed)[0]


@parametrize_with_checks([TransformerKMeans(n_clusters=3, max_iter=20)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:the data have 4 distinct clusters")  # "mean" sends both empty ones to one place
@pytest.mark.parametrize("empty", ["keep", "mean", "relocate"])
def test_layers_are_textbook_iterations_under_every_policy(empty):
    X = blobs(60)
    C = np.concatenate([X[:3], [[99.0, 99.0, 99.0], [-99.0, 0.0, 0.0]]])  # two clusters begin empty
    for layers in (1, 2, 5):
        model = TransformerKMeans(5, init=C, max_iter=layers, tol=0, empty_cluster=empty).fit(X)
        _, right = textbook.run(textbook.lloyd, X, C, layers, empty=empty)[-1]
        np.testing.assert_allclose(model.cluster_centers_, right, rtol=0, atol=1e-12)


def test_the_same_run_as_scikit_learn():
    X = blobs(500, 5, 6)
    peer = KMeans(6, init=X[:6], n_init=1, max_iter=300, tol=0).fit(X)
    model = TransformerKMeans(6, init=X[:6], tol=0).fit(X)
    np.testing.assert_allclose(model.cluster_centers_, peer.cluster_centers_, rtol=0, atol=1e-10)
    assert np.array_equal(model.labels_, peer.labels_)
    assert model.inertia_ == pytest.approx(peer.inertia_, rel=1e-12)
    assert model.score(X) == pytest.approx(peer.score(X), rel=1e-12)
    np.testing.assert_allclose(model.transform(X), peer.transform(X), rtol=0, atol=1e-10)


@pytest.mark.parametrize("algorithm", EVERY)
@pytest.mark.parametrize("attention", ["l2", "dot"])
def test_both_engines_give_the_same_centres(algorithm, attention):
    X = blobs(120, 3, 4)
    w = np.random.default_rng(0).integers(0, 3, len(X))
    common = {"algorithm": algorithm, "attention": attention, "max_iter": 6, "tol": 0, "random_state": 0}
    fused, net = (
        TransformerKMeans(4, engine=engine, **common).fit(X, sample_weight=w) for engine in ("fused", "transformer")
    )
    assert np.array_equal(fused.labels_, net.labels_)
    # a gap of 64 squared diameters in the scores of the transformer costs four digits
    np.testing.assert_allclose(fused.cluster_centers_, net.cluster_centers_, rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore:the data have . distinct clusters")
@pytest.mark.parametrize("algorithm", ["lloyd", "soft", "trimmed", "robust"])
@pytest.mark.parametrize("empty", ["keep", "mean", "relocate"])
def test_both_engines_treat_an_empty_cluster_alike(algorithm, empty):
    X = blobs(60)
    C = np.concatenate([X[:3], [[99.0, 99.0, 99.0]]])
    common = {"algorithm": algorithm, "empty_cluster": empty, "init": C, "max_iter": 3, "tol": 0}
    fused, net = (TransformerKMeans(4, engine=engine, **common).fit(X) for engine in ("fused", "transformer"))
    np.testing.assert_allclose(fused.cluster_centers_, net.cluster_centers_, rtol=0, atol=1e-9)


@pytest.mark.parametrize("algorithm", [a for a in EVERY if a != "medoids"])
@pytest.mark.parametrize("init", ["k-means++", "random"])
def test_a_weight_is_a_repetition_whatever_the_order(algorithm, init):
    X = np.round(blobs(150, 2, 3), 1)
    rng = np.random.default_rng(3)
    w = rng.integers(0, 4, len(X))
    repeated = rng.permutation(np.repeat(X, w, axis=0))
    common = {"algorithm": algorithm, "init": init, "random_state": 5, "n_init": 2, "max_iter": 30}
    weighed = TransformerKMeans(3, **common).fit(X, sample_weight=w)
    copied = TransformerKMeans(3, **common).fit(repeated)
    np.testing.assert_allclose(weighed.cluster_centers_, copied.cluster_centers_, rtol=0, atol=1e-8)
    assert np.array_equal(weighed.predict(X), copied.predict(X))


def test_finite_gamma_runs_the_soft_transformer_and_approaches_lloyd():
    X = blobs(100, 4, 3)
    hard = TransformerKMeans(3, init=X[:3], max_iter=5, tol=0).fit(X)
    gaps = [
        abs(
            TransformerKMeans(3, init=X[:3], max_iter=5, tol=0, gamma=g).fit(X).cluster_centers_ - hard.cluster_centers_
        ).max()
        for g in (0.1, 1.0, 1e4)
    ]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-6


def test_trimming_and_robust_weights_resist_an_outlier():
    X = np.concatenate([np.random.default_rng(0).normal(size=(100, 2)), [[60.0, 0.0]]])
    pulled = {}
    for algorithm in ("lloyd", "trimmed", "robust"):
        model = TransformerKMeans(1, algorithm=algorithm, init=np.zeros((1, 2)), max_iter=20).fit(X)
        pulled[algorithm] = np.linalg.norm(model.cluster_centers_[0] - X[:100].mean(0))
    assert pulled["lloyd"] > 0.5
    assert pulled["trimmed"] < 0.3
    assert pulled["robust"] < 0.3


def test_medoids_are_points_and_the_best_of_the_draws():
    X = blobs(120, 2, 3)
    first = X[:3]
    model = TransformerKMeans(3, algorithm="medoids", init=first, max_iter=40, random_state=0).fit(X)
    assert all((c == X).all(1).any() for c in model.cluster_centers_)
    assert model.inertia_ <= textbook.inertia(X, first)
    again = TransformerKMeans(3, algorithm="medoids", init=first, max_iter=40, random_state=0).fit(X)
    assert np.array_equal(model.cluster_centers_, again.cluster_centers_)


def test_spherical_centres_have_length_one_and_labels_ignore_length():
    X = np.random.default_rng(0).normal(size=(80, 3))
    model = TransformerKMeans(4, algorithm="spherical", random_state=0).fit(X)
    np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1, rtol=0, atol=1e-12)
    assert np.array_equal(model.predict(X), model.predict(7 * X))
    assert np.array_equal(model.predict(X), (X @ model.cluster_centers_.T).argmax(1))


def test_fewer_places_than_clusters_warn_and_still_fit():
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    for init in ("k-means++", "random"):
        with pytest.warns(ConvergenceWarning, match="2 distinct clusters") as caught:
            model = TransformerKMeans(3, init=init, random_state=0).fit(X)
        assert model.inertia_ == 0
        assert caught[0].filename == __file__


def test_rows_that_share_a_projection_are_told_apart():
    from measureflow.lloyd import seeding
    from measureflow.lloyd.points import Points

    a, b = seeding._direction(2)
    points = Points(np.array([[b, 0.0], [0.0, a], [b, 0.0]]))  # all three project onto a b
    assert sorted(seeding.distinct(points)[1].tolist()) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"algorithm": "elkan"}, "algorithm"),
        ({"attention": "cosine"}, "attention"),
        ({"engine": "gpu"}, "engine"),
        ({"empty_cluster": "drop"}, "empty_cluster"),
        ({"weighting": "tukey"}, "weighting"),
        ({"init": "first"}, "init"),
        ({"init": np.zeros((2, 3))}, "init"),
        ({"init": np.full((3, 3), np.nan)}, "init"),
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 1000}, "n_clusters"),
        ({"max_iter": 0}, "max_iter"),
        ({"gamma": -1.0}, "gamma"),
        ({"tol": "small"}, "tol"),
        ({"n_init": 0}, "n_init"),
    ],
)
def test_bad_parameters_are_named(options, word):
    with pytest.raises(ValueError, match=word):
        TransformerKMeans(**{"n_clusters": 3, **options}).fit(blobs(30))


def test_bad_weights_and_rows_are_named():
    X = blobs(30)
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        TransformerKMeans(2).fit(X, sample_weight=np.zeros(30))
    with pytest.raises(ValueError, match="length zero"):
        TransformerKMeans(2, algorithm="spherical").fit(np.zeros((4, 2)))


def test_layers_do_not_disturb_the_generator_of_torch():
    state = torch.get_rng_state()
    TransformerKMeans(2, algorithm="medoids", max_iter=3).fit(blobs(30))
    assert torch.equal(state, torch.get_rng_state())


def test_infinite_gamma_is_estimated_from_the_data_where_it_must_be_finite():
    X = blobs(50)
    assert math.isinf(TransformerKMeans(2).fit(X).gamma_)
    soft = TransformerKMeans(2, algorithm="soft", init=X[:2]).fit(X)
    assert soft.gamma_ == pytest.approx(len(X) * X.shape[1] / (2 * textbook.inertia(X, X[:2])))
