"""Clusters known by their rows: new rows join the nearest, moments are those of all rows."""

import numpy as np
import pytest

from measureflow.coclustering import clusters as module
from measureflow.coclustering.clusters import SeenRows, ShapedClusters
from measureflow.coclustering.partition import Partition
from measureflow.mixtures.frame import Frame
from measureflow.mixtures.rows import Rows, distinct_rows


def two_groups(n=40):
    rng = np.random.default_rng(0)
    return distinct_rows(np.concatenate([rng.normal(0, 1, (n, 2)), rng.normal(9, 1, (n // 2, 2))]), np.ones(n + n // 2))


def shaped(rows: Rows):
    frame = Frame.of(rows, scaled=False)
    points = frame.rows_inward(rows.points)
    labels = (rows.points[:, 0] > 4.5).astype(np.int64)
    P = np.where(labels[:, None] == labels, 0.9, 0.1)
    return ShapedClusters.of(SeenRows(frame, points), Partition(1 - labels, 0.8), P, rows), labels


def test_the_largest_cluster_is_the_first_and_moments_are_those_of_its_rows():
    rows = two_groups()
    clusters, labels = shaped(rows)
    np.testing.assert_allclose(clusters.weights, [2 / 3, 1 / 3])
    np.testing.assert_allclose(clusters.centers[0], rows.points[labels == 0].mean(0))
    np.testing.assert_allclose(clusters.covariances[1], np.cov(rows.points[labels == 1].T, bias=True))
    assert clusters.probabilities(rows.points).argmax(1).tolist() == labels.tolist()
    assert clusters.snr_db == pytest.approx(10 * np.log10(9**2 * 2 / 9), abs=1.5)


def test_a_new_row_joins_the_nearest_one():
    clusters, _ = shaped(two_groups())
    probabilities = clusters.probabilities(np.array([[0.3, 0.2], [9.5, 8.0]]))
    assert probabilities.argmax(1).tolist() == [0, 1]
    np.testing.assert_allclose(probabilities.sum(1), 1)


def test_the_label_is_the_most_probable_even_where_the_mean_says_otherwise():
    rows = two_groups()
    frame = Frame.of(rows, scaled=False)
    labels = np.zeros(len(rows.weights), dtype=np.int64)
    labels[:5] = 1
    P = np.full((len(labels), len(labels)), 0.2)
    P[:, :5] = 0.9  # all rows would rather be with the first five
    found = ShapedClusters.of(SeenRows(frame, frame.rows_inward(rows.points)), Partition(labels, 0.1), P, rows)
    assert (found.memberships.argmax(1) == found.labels).all()


def test_many_rows_find_the_same_neighbours_as_few(monkeypatch):
    rows = two_groups(400)
    frame = Frame.of(rows, scaled=False)
    seen = SeenRows(frame, frame.rows_inward(rows.points[::3]))
    few = seen.nearest(rows.points)
    monkeypatch.setattr(module, "FEW", 10)
    assert np.array_equal(seen.nearest(rows.points), few)
