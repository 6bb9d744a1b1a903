"""What two opinions come to."""

import numpy as np

from measureflow.coclustering.average import EXPONENTS, FACTS, Average
from measureflow.coclustering.consensus import Agreement
from measureflow.coclustering.opinions import Opinion, of_gaussians

EVEN = Average((0.0,) * len(FACTS), 0.0, 1.0, 0.0, 1.0, (0.5, 0.5, 0.0) + (0.0,) * len(EXPONENTS))


def test_the_gaussians_have_it_where_both_say_the_same():
    """Their worth is added up in two orders, which must not decide."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        labels = rng.permutation(np.repeat([0, 1, 2], [17, 11, 9]))
        P = np.where(labels[:, None] == labels, 0.97, 0.01) + 0.01 * rng.random((37, 37))
        P = (P + P.T) / 2
        r = np.eye(3)[labels] * 0.94 + 0.02
        shapes, gaussians = Opinion(P, {3: 1.0}, np.zeros(37)), of_gaussians(r, {3: 1.0})
        found = Agreement.of(EVEN, shapes, gaussians, labels, 0.1, rng.random((37, 2)))
        assert found.gaussians_win
        assert found.partition.n_clusters == 3


def test_the_number_asked_for_is_obeyed():
    labels = np.repeat([0, 1], 20)
    P = np.where(labels[:, None] == labels, 0.9, 0.1)
    gaussians = of_gaussians(np.eye(2)[labels], {2: 1.0})
    points = np.random.default_rng(0).random((40, 2))
    found = Agreement.of(EVEN, Opinion(P, {2: 1.0}, np.zeros(40)), gaussians, labels, 0.1, points, n_clusters=3)
    assert found.shapes.n_clusters == 3
    assert found.opinion.n_clusters == {3: 1.0}
