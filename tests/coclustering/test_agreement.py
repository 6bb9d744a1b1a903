"""What two opinions come to."""

from dataclasses import replace

import numpy as np

from measureflow.coclustering.average import EXPONENTS, FACTS, Average
from measureflow.coclustering.consensus import Agreement
from measureflow.coclustering.opinions import Opinion, of_gaussians

NOTHING = (0.0,) * len(FACTS)
NOT_ROUND = -50.0
EVEN = Average(NOTHING, 0.0, NOTHING, NOT_ROUND, 1.0, 0.0, 1.0, (0.5, 0.5, 0.0) + (0.0,) * len(EXPONENTS))


def test_the_gaussians_have_it_where_both_say_the_same():
    """Their worth is added up in two orders, which must not decide."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        labels = rng.permutation(np.repeat([0, 1, 2], [17, 11, 9]))
        P = np.where(labels[:, None] == labels, 0.97, 0.01) + 0.01 * rng.random((37, 37))
        P = (P + P.T) / 2
        r = np.eye(3)[labels] * 0.94 + 0.02
        shapes, gaussians = Opinion(P, {3: 1.0}, np.zeros(37)), of_gaussians(r, {3: 1.0}, 0.1, True)
        found = Agreement.of(EVEN, shapes, gaussians, rng.random((37, 2)))
        assert found.gaussians_win
        assert found.partition.n_clusters == 3


def test_the_number_asked_for_is_obeyed():
    labels = np.repeat([0, 1], 20)
    P = np.where(labels[:, None] == labels, 0.9, 0.1)
    gaussians = of_gaussians(np.eye(2)[labels], {2: 1.0}, 0.1, True)
    points = np.random.default_rng(0).random((40, 2))
    found = Agreement.of(EVEN, Opinion(P, {2: 1.0}, np.zeros(40)), gaussians, points, n_clusters=3)
    assert found.shapes.n_clusters == 3
    assert found.opinion.n_clusters == {3: 1.0}


def test_rows_that_are_probably_round_keep_the_gaussians_answer():
    """Whatever the shapes say, and as sure as they may be; rows that are not round do not."""
    true, pieces = np.repeat([0, 1], 30), np.repeat([0, 1, 2], 20)
    shapes = Opinion(np.where(true[:, None] == true, 0.999, 0.001), {2: 1.0}, np.zeros(60))
    gaussians = of_gaussians(np.eye(3)[pieces], {3: 0.9, 2: 0.1}, 0.03, True)
    points = np.random.default_rng(0).random((60, 2))
    by_round = replace(EVEN, bias=-4.0, round_weights=tuple(6.0 * (fact == "round") for fact in FACTS), round_bias=-3.0)
    sure = Agreement.of(by_round, shapes, gaussians, points)
    assert sure.p_round > 0.9
    assert sure.partition.labels.tolist() == pieces.tolist()
    assert sure.opinion.n_clusters[3] > 0.8  # the number of clusters is theirs too, but for what is left of doubt
    other = Agreement.of(by_round, shapes, replace(gaussians, are_round=False), points)
    assert other.p_round < 0.1
    assert other.partition.labels.tolist() == true.tolist()
