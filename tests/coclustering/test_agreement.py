"""What two posteriors come to."""

from dataclasses import replace

import numpy as np
import pytest

from measureflow.coclustering.average import HIDDEN, SAID, Average
from measureflow.coclustering.consensus import Agreement
from measureflow.coclustering.facts import FACTS
from measureflow.coclustering.posteriors import ShapePosterior, of_gaussians

# Rows are round if the Gaussians say so; the shapes are believed as they are.
F, H = len(FACTS), HIDDEN
WEIGHTS = np.array([6.0 * (fact == "round") for fact in FACTS])
BY_ROUND = Average(
    np.zeros(F), np.ones(F), np.zeros((H, F)), np.zeros(H), np.zeros(H), WEIGHTS, SAID, -3.0, 0.0, 1.0, 0.0
)


def two_views(n: int = 60):
    """Shapes that see halves, Gaussians that see thirds, and points."""
    halves, thirds = np.repeat([0, 1], n // 2), np.repeat([0, 1, 2], n // 3)
    shapes = ShapePosterior(np.where(halves[:, None] == halves, 0.999, 0.001), {2: 1.0}, np.zeros(n), 0.0)
    gaussians = of_gaussians(np.eye(3)[thirds], {3: 0.9, 2: 0.1}, 0.03, 3000, True)
    return shapes, gaussians, np.random.default_rng(0).random((n, 2)), halves, thirds


def test_rows_that_are_probably_round_keep_the_gaussians_answer():
    """Whatever the shapes say, and as sure as they may be; rows that are not round do not."""
    shapes, gaussians, points, halves, thirds = two_views()
    agreement = Agreement.of(BY_ROUND, shapes, gaussians, points)
    assert agreement.gaussian_weight > 0.9
    assert agreement.partition.labels.tolist() == thirds.tolist()
    assert agreement.posterior.n_clusters[3] > 0.8  # the number of clusters is theirs too, but for a little doubt
    agreement = Agreement.of(BY_ROUND, shapes, replace(gaussians, are_round=False), points)
    assert agreement.gaussian_weight < 0.1
    assert agreement.partition.labels.tolist() == halves.tolist()
    assert agreement.posterior.n_clusters[2] > 0.8


def test_the_posterior_is_total_probability():
    """P, the number of clusters and the outliers: rho times what the Gaussians say, the rest what the shapes say."""
    shapes, gaussians, points, *_ = two_views()
    shapes = replace(shapes, outlying=np.linspace(0, 0.4, 60))
    agreement = Agreement.of(replace(BY_ROUND, bias=np.log(3.0) - 6.0), shapes, gaussians, points)
    rho = agreement.gaussian_weight
    assert rho == pytest.approx(0.75)
    i, j = np.triu_indices(60, 1)
    P = rho * gaussians.together + (1 - rho) * shapes.together
    np.testing.assert_allclose(agreement.posterior.together[i, j], P[i, j], atol=1e-9)
    np.testing.assert_allclose(agreement.posterior.outlying, (1 - rho) * shapes.outlying)
    assert agreement.posterior.n_clusters[3] == pytest.approx(0.9 * rho, abs=1e-3)
    assert sum(agreement.posterior.n_clusters.values()) == pytest.approx(1.0)


def test_the_number_asked_for_is_obeyed():
    shapes, gaussians, points, *_ = two_views()
    gaussians = replace(gaussians, are_round=False)
    found = Agreement.of(BY_ROUND, shapes, gaussians, points, n_clusters=4)
    assert found.partition.n_clusters == 4


@pytest.mark.parametrize(("p_one", "K"), [(0.4, 2), (0.8, 1)])
def test_a_single_cluster_is_chosen_where_it_is_likely(p_one, K):
    """The expected index decides: one cluster has an index of one if it is the truth, and none otherwise."""
    _, gaussians, points, halves, _ = two_views()
    shapes = ShapePosterior(
        np.where(halves[:, None] == halves, 0.999, p_one), {1: p_one, 2: 1 - p_one}, np.zeros(60), 0.0
    )
    found = Agreement.of(BY_ROUND, shapes, replace(gaussians, are_round=False), points)
    assert found.partition.n_clusters == K
    assert found.posterior.p_one == pytest.approx((1 - found.gaussian_weight) * p_one, abs=0.02)


@pytest.mark.parametrize(("rho", "K"), [(0.4, 2), (0.6, 3)])
def test_the_likelier_flow_has_the_answer(rho, K):
    """Where each is sure of its own partition, and the two have as much in common as these."""
    shapes, gaussians, points, *_ = two_views()
    average = replace(BY_ROUND, bias=np.log(rho / (1 - rho)) - 6.0)
    found = Agreement.of(average, shapes, replace(gaussians, n_clusters={3: 1.0}), points)
    assert found.gaussian_weight == pytest.approx(rho)
    assert found.posterior.n_clusters[3] == pytest.approx(rho, abs=1e-3)
    assert found.partition.n_clusters == K
    assert found.needs_gaussians == (K == 3)
