"""The measure that answers: between flow and likelihood where they differ, the clusters where they do not."""

import numpy as np
import pytest

from clusters import any_data, blobs
from measureflow import FlowMixture
from measureflow.measures import wasserstein2
from measureflow.measures.priors import paper_test_prior
from measureflow.mixtures.mixing_measure import in_doubt, sent
from measureflow.mixtures.rows import Rows
from measureflow.mixtures.shared_noise import SharedNoise
from measureflow.training.config import seeded


def test_clear_clusters_answer_themselves():
    mixture = FlowMixture().fit(blobs(300)[0])
    np.testing.assert_array_equal(mixture.mixing_measure_.points, mixture.cluster_centers_)
    np.testing.assert_allclose(mixture.mixing_measure_.weights, mixture.weights_)


@any_data
def test_between_is_nearer_the_truth_than_either_end():
    """In the mean over sets whose clusters overlap; on one of them either end may be the nearer."""
    generator, errors = seeded(21, "answer"), []
    for _ in range(20):
        sets = paper_test_prior(8.0).sample(1, 400, generator)
        fit = FlowMixture(snr_db=8.0).fit(sets.points[0].double().numpy())
        tree = fit.flow_.tree
        truth = {"atoms": sets.mixing.points[0].double(), "atom_weights": sets.mixing.weights[0].double()}
        ends = (
            (fit.mixing_measure_.points, fit.mixing_measure_.weights),
            (fit._gaussians.frame.outward(tree.tokens), tree.weights),
            (fit.cluster_centers_, fit.weights_),
        )
        errors.append([float(wasserstein2(points, weights=masses, **truth).cost) for points, masses in ends])
    between, tokens, clusters = np.mean(errors, 0)
    assert between < 0.99 * min(tokens, clusters)


def test_tokens_are_sent_where_transport_takes_them():
    rng = np.random.default_rng(0)
    tokens, mixture = (
        rng.normal(size=(50, 3)),
        SharedNoise(rng.normal(size=(4, 3)), np.array([0.1, 0.2, 0.3, 0.4]), 1.0),
    )
    goals = sent(tokens, np.full(50, 0.02), mixture)
    np.testing.assert_allclose(goals.mean(0), mixture.weights @ mixture.centers, atol=1e-12)  # no mass is lost
    together = SharedNoise(mixture.centers[:1], np.ones(1), 1.0)
    np.testing.assert_allclose(sent(tokens, np.full(50, 0.02), together), np.repeat(together.centers, 50, 0))


@pytest.mark.parametrize(("gap", "doubt"), [(0.0, 0.5), (2.0, 0.158655), (40.0, 0.0)])
def test_doubt_is_the_share_expected_to_be_labelled_wrongly(gap, doubt):
    """Two clusters of noise one at a distance: half of all rows, or the tail of a normal beyond half of it."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40000, 1)) + gap * rng.integers(0, 2, (40000, 1))
    mixture = SharedNoise(np.array([[0.0], [gap]]), np.full(2, 0.5), 1.0)
    assert in_doubt(mixture, Rows(points, np.ones(40000))) == pytest.approx(doubt, abs=3e-3)
