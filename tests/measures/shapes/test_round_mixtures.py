"""Gaussians in one round noise, as the prior of shapes draws them."""

import numpy as np
import pytest

from measureflow.measures.shapes import ShapePrior
from measureflow.measures.shapes.labels import MOST_CLUSTERS
from measureflow.measures.shapes.round_mixtures import round_mixture


@pytest.mark.parametrize("d", [1, 2, 20])
def test_rows_minus_the_mean_of_their_cluster_vary_alike_in_every_column_and_cluster(d):
    for seed in range(20):
        X, labels = round_mixture(np.random.default_rng(seed), 900, d)
        K = labels.max() + 1
        counts = np.bincount(labels)
        means = np.stack([np.bincount(labels, column) for column in X.T], 1) / counts[:, None]
        squares = (X - means[labels]) ** 2
        spread = np.sqrt(squares.sum(0) / (len(X) - K))
        np.testing.assert_allclose(spread, spread.mean(), rtol=0.2)  # over four standard errors of 850 rows
        of_clusters = np.bincount(labels, squares.mean(1))[counts > 50] / (counts[counts > 50] - 1)
        np.testing.assert_allclose(of_clusters, spread.mean() ** 2, rtol=0.9)  # over four of 50 rows, d = 1


def test_clusters_are_few_or_many_and_each_has_rows():
    numbers = []
    for seed in range(120):
        _, labels = round_mixture(np.random.default_rng(seed), 900, 2)
        assert (np.bincount(labels) > 0).all()
        numbers.append(labels.max() + 1)
    assert min(numbers) == 1
    assert 30 < max(numbers) <= MOST_CLUSTERS
    assert np.mean(np.array(numbers) <= 8) > 0.55  # three standard errors below 0.69
    assert max(round_mixture(np.random.default_rng(s), 60, 2, 20)[1].max() for s in range(40)) == 2


def test_signal_to_noise_ranges_from_hardly_told_apart_to_far_apart():
    """Variance of the rows' centres over that of the rows around them."""
    ratios = []
    for seed in range(80):
        X, labels = round_mixture(np.random.default_rng(seed), 400, 3)
        if labels.max() == 0:
            continue
        means = np.stack([X[labels == k].mean(0) for k in range(labels.max() + 1)])[labels]
        ratios.append(10 * np.log10(means.var(0).sum() / (X - means).var(0).sum()))
    assert min(ratios) < 6
    assert max(ratios) > 18
    assert np.median(ratios) < 12


def test_the_prior_marks_them_and_nothing_else_happens_to_them():
    sets = ShapePrior(round_share=1.0).sample(40, 80, np.random.default_rng(0), d=3)
    assert sets.is_round.all()
    assert (sets.labels >= 0).all()
    assert not ShapePrior(round_share=0.0).sample(40, 80, np.random.default_rng(0), d=3).is_round.any()
    share = ShapePrior().sample(400, 40, np.random.default_rng(1), d=2).is_round.double().mean()
    assert 0.14 < share < 0.26  # a fifth, with three standard errors
