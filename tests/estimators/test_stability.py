"""Stability: clear clusters come back, chance ones do not."""

import numpy as np
import pytest

from clusters import blobs
from measureflow import FlowMixture
from measureflow.estimators.stability import stability


def test_clusters_that_are_found_again_are_stable():
    X, truth = blobs(90)
    found = stability(lambda X, w: (X[:, 0] > 1e9).astype(int), X, truth, np.ones(90), 5, seed=0)
    assert found.n_clusters == {1: 1.0}  # the method always finds one
    assert (found.clusters == 0).all()
    names = {row.tobytes(): label for row, label in zip(X, truth, strict=True)}
    sure = stability(lambda X, w: np.array([names[row.tobytes()] for row in X]), X, truth, np.ones(90), 5, seed=0)
    assert sure.n_clusters == {3: 1.0}
    assert (sure.clusters == 1).all()
    np.testing.assert_allclose(sure.similarity, 1)


def test_an_estimator_measures_its_stability_when_asked():
    X, _ = blobs(120)
    mixture = FlowMixture(n_stability=3, random_state=0).fit(X)
    assert mixture.stability_.n_clusters == {3: 1.0}
    assert (mixture.stability_.clusters == 1).all()
    assert FlowMixture().fit(X).stability_ is None


def test_rows_of_pure_noise_split_by_force_are_not_stable():
    X = np.random.default_rng(0).standard_normal((150, 4))
    mixture = FlowMixture(4, n_stability=4, random_state=0).fit(X)
    assert mixture.stability_.similarity.mean() < 0.8


def test_the_number_of_fits_is_checked():
    with pytest.raises(ValueError, match="n_stability"):
        FlowMixture(n_stability=0).fit(blobs(60)[0])
