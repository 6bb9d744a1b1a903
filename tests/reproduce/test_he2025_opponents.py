"""He 2025: scores and opponents agree with scikit-learn's, and small helpers with what is known."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from measureflow.measures.he_mixtures import HeMixtures
from measureflow.reproduce.he2025.baselines import lloyd, lloyd_from_plus_plus, plus_plus, spectral
from measureflow.reproduce.he2025.constructed import theorem
from measureflow.reproduce.he2025.learned import (
    separation,
)
from measureflow.reproduce.he2025.scores import adjusted_rand_index, contingency, normalised_mutual_information
from measureflow.reproduce.he2025.starts import best_lloyd, sum_of_squares


def test_scores_are_scikit_learns():
    rng = np.random.default_rng(0)
    truth, found = rng.integers(4, size=(2, 20, 60))
    found[:10] = np.where(rng.random((10, 60)) < 0.8, truth[:10], found[:10])
    found[0], truth[1], found[2], truth[2] = truth[0], 0, 0, 0
    table = contingency(torch.as_tensor(truth), torch.as_tensor(found), 4)
    ari = [adjusted_rand_score(a, b) for a, b in zip(truth, found, strict=True)]
    nmi = [normalized_mutual_info_score(a, b) for a, b in zip(truth, found, strict=True)]
    np.testing.assert_allclose(adjusted_rand_index(table), ari, atol=1e-12)
    np.testing.assert_allclose(normalised_mutual_information(table), nmi, atol=1e-12)


def test_batched_lloyd_is_scikit_learns_from_the_same_start():
    sets = HeMixtures(n_classes=3, dimension=4, n_per_class=30, minimum_distance=12.0).sample(
        3, torch.Generator().manual_seed(0)
    )
    points = sets.points.double()
    start = plus_plus(points, 3, torch.Generator().manual_seed(1))
    labels = lloyd(points, start, 100)
    for x, c, ours in zip(points.numpy(), start.numpy(), labels.numpy(), strict=True):
        theirs = KMeans(3, init=c, n_init=1, tol=0).fit(x).labels_
        np.testing.assert_array_equal(ours, theirs)


def test_the_best_of_several_starts_has_the_least_sum_of_squares():
    points = HeMixtures(minimum_distance=30.0).sample(40, torch.Generator().manual_seed(0)).points.double()
    one, many = (best_lloyd(points, 4, torch.Generator().manual_seed(3), n) for n in (1, 6))
    assert torch.equal(one, lloyd_from_plus_plus(points, 4, torch.Generator().manual_seed(3)))
    squares = [sum_of_squares(points, labels, 4) for labels in (one, many)]
    assert (squares[1] <= squares[0]).all()
    assert (squares[1] < squares[0]).any()
    fit = KMeans(4, n_init=20, random_state=0).fit(points[0].numpy())
    assert float(squares[1][0]) == pytest.approx(fit.inertia_)


def test_opponents_solve_far_apart_clusters():
    sets = HeMixtures(minimum_distance=300.0).sample(8, torch.Generator().manual_seed(0))
    for method in (lloyd_from_plus_plus, spectral):
        labels = method(sets.points.double(), 4, torch.Generator().manual_seed(0))
        assert float(adjusted_rand_index(contingency(sets.labels, labels, 4)).mean()) > 0.9


def test_crossing_is_found_between_grid_points():
    sweep = pd.DataFrame({"value": [5, 10, 20], "ARI": [0.1, 0.4, 0.8]})
    assert separation.crossing(sweep) == pytest.approx(12.5)
    assert np.isnan(separation.crossing(sweep, 0.9))
    assert separation.crossing(sweep, 0.05) == 5


def test_slopes_of_known_powers():
    M = np.array([16, 64, 256])
    assert theorem.slope(M, 3.0 * M**-0.5) == pytest.approx(-0.5)
    assert -0.5 < theorem.theory(M) < -0.3  # the logarithm slows the decay a little
