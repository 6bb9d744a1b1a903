"""The tree of tokens is Ward's, as SciPy has it, with masses that count."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, ward
from sklearn.metrics import adjusted_rand_score

from measureflow.mixtures.token_tree import TokenTree


@pytest.mark.parametrize(("n", "d"), [(2, 1), (3, 2), (40, 1), (60, 2), (200, 2), (90, 16)])
def test_merges_are_those_of_scipy(n, d):
    for seed in range(5):
        tokens = np.random.default_rng(seed).normal(size=(n, d))
        tree, linkage = TokenTree(tokens, np.full(n, 1 / n)), ward(tokens)
        np.testing.assert_allclose(tree.costs, linkage[:, 2] ** 2 / 2 / n, rtol=1e-9)
        for K in range(1, n, max(1, n // 7)):
            height = linkage[n - K - 1, 2]  # of the merge that leaves K; "maxclust" of SciPy 1.11 errs on small trees
            assert adjusted_rand_score(tree.labels(K), fcluster(linkage, height, "distance")) == 1


def test_mass_two_is_a_token_twice():
    rng = np.random.default_rng(0)
    tokens, counts = rng.normal(size=(50, 3)), rng.integers(1, 4, 50)
    whole = TokenTree(np.repeat(tokens, counts, axis=0), np.full(counts.sum(), 1 / counts.sum()))
    weighed = TokenTree(tokens, counts / counts.sum())
    np.testing.assert_allclose(weighed.costs, whole.costs[-49:], rtol=1e-9)
    for K in (2, 5, 20):
        assert np.array_equal(np.repeat(weighed.labels(K), counts), whole.labels(K))
        for a, b in zip(weighed.atoms(K), whole.atoms(K), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)


def test_equal_tokens_merge_for_nothing():
    tree = TokenTree(np.zeros((10, 2)), np.full(10, 0.1))
    assert (tree.costs == 0).all()
    assert (tree.labels(1) == 0).all()


def test_merges_cost_what_they_add_to_the_scatter():
    tokens = np.random.default_rng(1).normal(size=(30, 2))
    tree = TokenTree(tokens, np.full(30, 1 / 30))
    for K in (1, 4, 30):
        atoms, _ = tree.atoms(K)
        direct = ((tokens - atoms[tree.labels(K)]) ** 2).sum() / 30
        assert tree.costs[: 30 - K].sum() == pytest.approx(direct, abs=1e-12)


def test_atoms_are_worth_their_parameters_while_merging_them_costs_more():
    tokens = np.random.default_rng(2).normal(size=(30, 2))
    tree, mass = TokenTree(tokens, np.full(30, 1 / 30)), 300.0
    for noise in (1e-3, 0.05, 1.0, 1e3):
        lost = mass * tree.costs / (2 * noise)  # of log-likelihood, by the merge that leaves 29, 28, ..., 1 atoms
        assert tree.n_by_bic(noise, mass) == 1 + (lost > 1.5 * np.log(mass)).sum()
    assert tree.n_by_bic(1e3, mass) == 1
    assert tree.n_by_bic(1e-9, mass) == 30
