"""Clusters with shapes of their own: EM, merges, and when FlowMixture believes in them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from measureflow import FlowMixture
from measureflow.data import load_penguins
from measureflow.mixtures.ellipsoids import (
    OWN,
    SHARED,
    Ellipsoids,
    bic_upper_bound,
    ellipsoids,
    fit_ellipsoids,
    posterior,
)
from measureflow.mixtures.lifted import Lift
from measureflow.mixtures.misfit import UnfamiliarDataWarning
from measureflow.mixtures.rows import Rows, distinct_rows
from measureflow.mixtures.shared_noise import SharedNoise, bic, fit_em, responsibilities


def crossed(n=300, gap=12.0, seed=0):
    """A standing and a lying ellipse."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(0, 1, (n, 2)) * [1, 6], rng.normal(0, 1, (n, 2)) * [6, 1] + [gap, 0]])
    return X, np.repeat([0, 1], n)


def fitted(X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfamiliarDataWarning)
        return FlowMixture(assume="gaussian", **options).fit(X)


def start_of(X, truth, shapes):
    centers = np.stack([X[truth == k].mean(0) for k in np.unique(truth)])
    return Ellipsoids.of(SharedNoise(centers, np.full(len(centers), 1 / len(centers)), X.var()), shapes)


@pytest.mark.parametrize("along_columns", [False, True])
def test_lifted_rows_give_densities_and_moments(along_columns):
    """Far from zero as well: 1e4 standard deviations away."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) + 1e4
    centers, weights = rng.normal(size=(2, 3)) + 1e4, np.array([0.3, 0.7])
    roots = rng.normal(size=(2, 3, 3))
    covariances = roots @ roots.transpose(0, 2, 1) + np.eye(3)
    if along_columns:
        covariances = covariances * np.eye(3)
    lift, held = Lift(X.mean(0), along_columns), rng.random((2, 40))
    phi = lift.rows(X)
    gaussians = zip(weights, centers, covariances, strict=True)
    expected = [np.log(p) + multivariate_normal(c, C).logpdf(X) for p, c, C in gaussians]
    np.testing.assert_allclose((phi @ lift.densities(centers, weights, covariances)).T, expected, rtol=1e-9)
    mass, first, second = lift.moments(held @ phi)
    Z = X - lift.origin
    products = np.einsum("kn,ni,nj->kij", held, Z, Z) * (np.eye(3) if along_columns else 1)
    for ours, theirs in ((mass, held.sum(1)), (first, held @ Z), (second, products)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("shapes", "theirs"), [(SHARED, "tied"), (OWN[0], "spherical"), (OWN[1], "diag"), (OWN[2], "full")]
)
def test_em_agrees_with_scikit_learn_on_many_rows(shapes, theirs):
    X, truth = crossed(4000)
    ours = fit_ellipsoids(Rows(X, np.ones(len(X))), start_of(X, truth, shapes), steps=300, tol=1e-10)
    peer = GaussianMixture(2, covariance_type=theirs, means_init=start_of(X, truth, shapes).centers, tol=1e-10)
    peer = peer.set_params(max_iter=1000).fit(X)
    assert ours.log_likelihood / len(X) == pytest.approx(peer.score(X), abs=2e-4)  # ours is drawn toward one shape
    assert ours.bic(len(X)) == pytest.approx(peer.bic(X), abs=5)


@pytest.mark.parametrize("shapes", [SHARED, *OWN])
def test_likelihood_is_that_of_the_mixture_and_rises(shapes):
    X, truth = crossed(100)
    rows, start = distinct_rows(X, np.ones(len(X))), start_of(X, truth, shapes)
    fits = [fit_ellipsoids(rows, start, steps=s, tol=-np.inf) for s in (1, 2, 5, 20)]
    for fit in fits:
        parts = zip(fit.weights, fit.centers, fit.covariances, strict=True)
        density = sum(p * multivariate_normal(c, C).pdf(rows.points) for p, c, C in parts)
        assert fit.log_likelihood == pytest.approx(np.log(density).sum())
    assert fits[-1].log_likelihood > fits[0].log_likelihood


def test_a_weight_is_a_row_as_often():
    X, truth = crossed(60)
    w = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    once = fit_ellipsoids(Rows(X, w), start_of(X, truth, OWN[2]), steps=10, tol=0)
    often = fit_ellipsoids(
        Rows(np.repeat(X, w.astype(int), 0), np.ones(int(w.sum()))), start_of(X, truth, OWN[2]), steps=10, tol=0
    )
    np.testing.assert_allclose(once.covariances, often.covariances, rtol=1e-9)


def test_a_promise_is_kept():
    X, _ = crossed()
    rows = distinct_rows(X, np.ones(len(X)))
    rng = np.random.default_rng(0)
    start = SharedNoise(X[rng.choice(len(X), 8, replace=False)], np.full(8, 1 / 8), 4.0)
    start = fit_em(rows.points, rows.weights, start, steps=50)
    fits = list(ellipsoids(rows, start))
    least = min(fit.bic(rows.mass) for fit in fits if fit.shapes.own)
    assert least < bic_upper_bound(rows, start) < bic(start, rows.mass)
    assert sum(posterior(fits, rows.mass).values()) == pytest.approx(1)


def test_crossed_ellipses_are_two_clusters():
    X, truth = crossed()
    mixture = fitted(X)
    assert mixture.n_clusters_ == 2
    assert adjusted_rand_score(truth, mixture.labels_) > 0.8
    spread = np.sqrt(np.diagonal(mixture.covariances_, 0, 1, 2))
    tall = int(spread[0, 1] < spread[1, 1])
    np.testing.assert_allclose(spread[[tall, 1 - tall]], [[1, 6], [6, 1]], rtol=0.15)
    assert np.array_equal(mixture.predict(X), mixture.labels_)
    r, density = mixture.predict_proba(X), mixture.score_samples(X)
    parts = zip(mixture.weights_, mixture.cluster_centers_, mixture.covariances_, strict=True)
    joint = np.stack([p * multivariate_normal(c, C).pdf(X) for p, c, C in parts], 1)
    np.testing.assert_allclose(r, joint / joint.sum(1, keepdims=True), atol=1e-9)
    np.testing.assert_allclose(density, np.log(joint.sum(1)), atol=1e-9)


def test_samples_have_the_shapes():
    mixture = fitted(crossed()[0], random_state=0)
    X, labels = mixture.sample(20_000)
    for k in range(2):
        np.testing.assert_allclose(np.cov(X[labels == k].T), mixture.covariances_[k], atol=1.5)


def test_round_clusters_stay_round():
    rng = np.random.default_rng(0)
    for seed in range(6):
        centers = rng.normal(0, 3, (4, 2))
        X = centers[rng.integers(4, size=500)] + rng.normal(0, 1, (500, 2))
        covariances = fitted(X).covariances_
        np.testing.assert_allclose(covariances, np.broadcast_to(covariances[0], covariances.shape), err_msg=str(seed))


def test_many_atoms_become_few_shapes_on_iris_and_wine():
    for load, most, least_ari in ((load_iris, 4, 0.8), (load_wine, 10, 0.35)):
        X, y = load(return_X_y=True)
        mixture = fitted(X)
        assert mixture.n_clusters_ <= most
        assert adjusted_rand_score(y, mixture.labels_) > least_ari


PENGUINS = load_penguins().dropna()
MEASURES = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]


def test_three_species_of_penguins():
    mixture = FlowMixture(assume="gaussian").fit(PENGUINS[MEASURES])
    assert mixture.n_clusters_ == 3
    assert adjusted_rand_score(PENGUINS["species"], mixture.labels_) > 0.9


def test_a_column_of_few_values_is_named():
    with pytest.warns(UnfamiliarDataWarning, match="column 'year' has only a few different values"):
        mixture = FlowMixture(assume="gaussian").fit(PENGUINS[[*MEASURES, "year"]])
    assert np.isfinite(mixture.cluster_centers_).all()
    with pytest.warns(UnfamiliarDataWarning, match="column 4 has only"):
        FlowMixture(assume="gaussian").fit(PENGUINS[[*MEASURES, "year"]].to_numpy())


def test_responsibilities_agree_for_both_kinds_of_mixture():
    X, _ = crossed(50)
    shared = SharedNoise(np.array([[0.0, 0.0], [12.0, 0.0]]), np.array([0.3, 0.7]), 4.0)
    for ours, theirs in zip(
        responsibilities(X, shared), responsibilities(X, Ellipsoids.of(shared, OWN[2])), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)
