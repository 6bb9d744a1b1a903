"""The partition a posterior asks for, outliers set aside."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from measureflow.coclustering.partition import NEARLY, inner_tree, memberships, outliers, scored, tree_cut
from measureflow.coclustering.posteriors import PairPosterior, consistent, of_gaussians


def posterior_of(labels, sure=0.95, outlying=None, p_one=0.0):
    """A posterior that is as sure as that of a partition."""
    labels = np.asarray(labels)
    P = np.where(labels[:, None] == labels, sure, 1 - sure)
    np.fill_diagonal(P, 1.0)
    outlying = np.zeros(len(labels)) if outlying is None else np.asarray(outlying, float)
    rest = {len(set(labels[outlying < 0.5].tolist())): 1 - p_one}  # the number of clusters without outliers
    return PairPosterior(P, rest | {1: p_one}, outlying)


def test_a_sure_posterior_is_followed():
    truth = np.repeat([0, 1, 2], [30, 20, 10])
    found = tree_cut(posterior_of(truth))
    assert adjusted_rand_score(truth, found.labels) == 1
    assert found.n_clusters == 3
    assert 0.8 < found.expected_index < 1


def test_outliers_have_no_cluster_of_their_own_but_a_label():
    truth = np.repeat([0, 1, 2], [30, 20, 2])
    found = tree_cut(posterior_of(truth, outlying=truth == 2))
    assert found.n_clusters == 2
    assert set(found.labels[50:]) <= {0, 1}
    assert tree_cut(posterior_of(truth)).n_clusters == 3  # they would have one if they were not called outliers


def test_crumbs_are_no_clusters_for_a_hundredth_of_the_index():
    """Two rows apart hardly change it; a cluster of a tenth of the rows does."""
    for size, n_clusters in ((2, 2), (30, 3)):
        truth = np.repeat([0, 1, 2], [150, 100, size])
        posterior = posterior_of(truth, 0.9)
        small = truth == 2
        posterior.together[np.ix_(small, truth == 1)] = posterior.together[np.ix_(truth == 1, small)] = 0.3
        found = tree_cut(posterior)
        best = max(scored(posterior, tree_cut(posterior, K).labels).expected_index for K in range(1, 6))
        assert found.n_clusters == n_clusters
        assert best - NEARLY <= found.expected_index <= best


def test_outliers_are_never_half_of_the_rows():
    assert not outliers(posterior_of([0, 0, 1, 1], outlying=[1, 1, 0, 0])).any()
    assert outliers(posterior_of([0, 0, 1, 1], outlying=[1, 0, 0, 0])).tolist() == [True, False, False, False]


def test_as_many_clusters_as_were_asked_for():
    truth = np.repeat([0, 1, 2], 10)
    assert tree_cut(posterior_of(truth), 5).n_clusters == 5
    everyone = tree_cut(posterior_of(truth, outlying=truth == 2), 30)  # more than there are rows that are not outliers
    assert everyone.n_clusters == 30


def test_one_cluster_where_that_is_likeliest():
    found = tree_cut(posterior_of(np.repeat([0, 1], 10), p_one=0.95))
    assert found.n_clusters == 1
    assert found.expected_index == pytest.approx(0.95)


def test_a_better_partition_is_judged_better():
    truth = np.repeat([0, 1, 2], 10)
    posterior = posterior_of(truth, 0.8)
    wrong = np.where(truth == 2, 1, truth)
    assert scored(posterior, truth).expected_index > scored(posterior, wrong).expected_index + 0.1


def test_memberships_are_mean_probabilities():
    P = np.array([[0.9, 0.7, 0.2]])
    np.testing.assert_allclose(memberships(P, np.array([0, 0, 1])), [[0.8, 0.2]])


def test_gaussians_pair_rows_of_the_same_component():
    r = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_allclose(
        of_gaussians(r, {2: 1.0}, 0.1, 3, True).together, [[1, 0.5, 0], [0.5, 0.5, 0.5], [0, 0.5, 1]]
    )


def test_a_single_cluster_is_no_likelier_than_that_rows_far_apart_belong_together():
    truth = np.repeat([0, 1], 20)
    posterior = replace(posterior_of(truth, 0.9), n_clusters={1: 0.6, 2: 0.3, 3: 0.1})
    tree = inner_tree(posterior)[1]
    assert consistent(posterior, tree).n_clusters == pytest.approx({1: 0.1, 2: 0.675, 3: 0.225})
    modest = replace(posterior, n_clusters={1: 0.05, 2: 0.95})
    assert consistent(modest, tree) is modest
