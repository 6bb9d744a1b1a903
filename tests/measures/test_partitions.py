"""The cut of largest expected adjusted Rand index, against the definition and by hand."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from measureflow.measures.partitions import PairTree, best_cut
from measureflow.measures.partitions import expected_index as index_of


def certain(labels) -> np.ndarray:
    labels = np.asarray(labels)
    return (labels[:, None] == labels[None]).astype(float)


def expected_index(P, labels) -> float:
    """Fritsch and Ickstadt's formula, pair by pair."""
    i, j = np.triu_indices(len(P), 1)
    same, p = (labels[i] == labels[j]).astype(float), P[i, j]
    chance = same.sum() * p.sum() / len(i)
    return (same @ p - chance) / ((same.sum() + p.sum()) / 2 - chance)


def noisy(seed, n=24, K=3):
    rng = np.random.default_rng(seed)
    labels = rng.integers(K, size=n)
    noise = rng.uniform(0, 0.45, (n, n))
    P = np.abs(certain(labels) - (noise + noise.T) / 2)
    return P, labels


@pytest.mark.parametrize("seed", range(5))
def test_scores_of_all_cuts_are_the_formula(seed):
    P, _ = noisy(seed)
    tree = PairTree.of(P)
    for K in range(2, len(P)):
        assert tree.indices()[K - 1] == pytest.approx(expected_index(P, tree.labels(K)), abs=1e-12)


def test_for_certain_pairs_the_score_is_the_index_itself():
    truth = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    tree = PairTree.of(certain(truth))
    for K in range(2, 9):
        assert tree.indices()[K - 1] == pytest.approx(adjusted_rand_score(truth, tree.labels(K)))


@pytest.mark.parametrize("truth", [[0, 0, 1, 1], [0, 1, 2], [0, 0, 0, 1], [0, 1, 1, 0, 2, 2, 2]])
def test_certain_pairs_give_the_partition_back(truth):
    P = certain(truth)
    K = best_cut(P, 0.0)
    assert len(set(truth)) == K
    assert adjusted_rand_score(truth, PairTree.of(P).labels(K)) == 1


@pytest.mark.parametrize("seed", range(4))
def test_noise_below_a_half_is_averaged_away(seed):
    P, truth = noisy(seed)
    assert adjusted_rand_score(truth, PairTree.of(P).labels(best_cut(P, 0.0))) == 1


def test_no_partition_of_four_rows_beats_the_cut():
    """All fifteen partitions, by brute force, for probabilities whose tree is plain."""
    P = np.array([[1, 0.9, 0.2, 0.1], [0.9, 1, 0.3, 0.2], [0.2, 0.3, 1, 0.8], [0.1, 0.2, 0.8, 1]])
    tree = PairTree.of(P)
    best = max(
        expected_index(P, np.array(labels))
        for labels in itertools.product(range(4), repeat=4)
        if len(set(labels)) not in (1, 4)
    )
    assert tree.indices()[best_cut(P, 0.0) - 1] == pytest.approx(best)


def test_one_cluster_is_chosen_when_it_is_likelier_than_the_best_cut_is_good():
    P, _ = noisy(0)
    assert best_cut(P, 0.99) == 1
    assert best_cut(P, 0.0) == 3
    assert best_cut(np.full((10, 10), 0.999), 0.9) == 1


@pytest.mark.parametrize("p_one", [0.0, 0.05])
def test_a_partition_has_the_index_of_its_cut(p_one):
    """Given several clusters, a pair belongs together with probability (P - p) / (1 - p)."""
    P, _ = noisy(3)
    tree = PairTree.of(P)
    for K in range(2, len(P)):
        found = (1 - p_one) * expected_index((P - p_one) / (1 - p_one), tree.labels(K))
        assert tree.indices(p_one)[K - 1] == pytest.approx(found, abs=1e-12)
        assert index_of(P, tree.labels(K), p_one) == pytest.approx(found, abs=1e-12)


def test_between_is_the_mean_over_pairs_in_different_clusters():
    P, _ = noisy(1)
    labels = PairTree.of(P).labels(4)
    assert PairTree.of(P).between(4) == pytest.approx(P[labels[:, None] != labels].mean())


def test_one_row_and_two():
    assert best_cut(np.ones((1, 1)), 0.5) == 1
    assert best_cut(certain([0, 1]), 0.0) == 2
    assert PairTree.of(certain([0, 1])).labels(2).tolist() == [0, 1]


def test_labels_are_numbered_by_their_first_rows():
    assert PairTree.of(certain([5, 3, 5, 9, 3])).labels(3).tolist() == [0, 1, 0, 2, 1]


def test_a_number_out_of_range_is_named():
    with pytest.raises(ValueError, match="n_clusters must lie between 1 and the 3 rows, got 4"):
        PairTree.of(certain([0, 1, 2])).labels(4)
