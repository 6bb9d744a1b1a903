"""Where clusters lie, and scenes that clusters placed one by one could not make."""

import numpy as np
import pytest

from measureflow.measures.shapes import PLACEMENTS, SCENES
from measureflow.measures.shapes.placement import moved_apart


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("rule", PLACEMENTS, ids=lambda r: r.__name__)
@pytest.mark.parametrize("d", [1, 2, 9])
def test_every_placement_gives_distinct_centres(rule, d):
    centers = rule(rng(), 7, d)
    assert centers.shape == (7, d)
    gaps = np.linalg.norm(centers[:, None] - centers[None], axis=-1) + np.eye(7)
    assert gaps.min() > 0


@pytest.mark.parametrize("overlap", [0.02, 0.1])
@pytest.mark.parametrize("d", [2, 20])
def test_the_overlap_drawn_is_the_overlap_met(overlap, d):
    """Equal round clusters: the share of rows nearer to another centre is what was asked for."""
    random, K, n = rng(3), 4, 4000
    labels = random.integers(K, size=n)
    points = random.standard_normal((n, d))
    centers = moved_apart(points, labels, PLACEMENTS_BY_NAME["scattered"](random, K, d), overlap)
    X = points + centers[labels]
    nearest = np.linalg.norm(X[:, None] - centers, axis=-1).argmin(1)
    assert np.mean(nearest != labels) == pytest.approx(overlap, rel=0.15)


PLACEMENTS_BY_NAME = {rule.__name__: rule for rule in PLACEMENTS}


@pytest.mark.parametrize("scene", SCENES, ids=lambda s: s.__name__)
@pytest.mark.parametrize("d", [2, 5])
def test_every_scene_fills_every_row(scene, d):
    labels = rng(1).integers(3, size=300)
    X = scene(rng(), labels, 3, d)
    assert X.shape == (300, d)
    assert np.isfinite(X).all()


def test_nested_shells_share_their_centre():
    labels = np.arange(900) % 3
    X = SCENES_BY_NAME["nested"](rng(), labels, 3, 2)
    means = np.stack([X[labels == k].mean(0) for k in range(3)])
    reach = np.linalg.norm(X, axis=1)
    assert np.linalg.norm(means, axis=1).max() < 0.3
    assert reach[labels == 2].min() > reach[labels == 1].max() - 0.5


def test_links_pass_through_one_another():
    labels = np.arange(2000) % 2
    X = SCENES_BY_NAME["linked"](rng(), labels, 2, 3)
    first, second = X[labels == 0], X[labels == 1]
    centre, axes = first.mean(0), np.linalg.svd(first - first.mean(0), full_matrices=False)[2]
    height = (second - centre) @ axes[2]  # above and below the disc that the first ring bounds
    through = second[np.abs(height) < 0.1] - centre
    distance = np.linalg.norm(through, axis=1)
    assert (distance < 0.6).any()
    assert (distance > 1.4).any()


@pytest.mark.parametrize("d", [2, 3, 6])
def test_interlaced_curves_keep_apart_and_reach_into_one_another(d):
    labels, inside = np.arange(600) % 3, 0
    for seed in range(12):
        X = SCENES_BY_NAME["interlaced"](rng(seed), labels, 3, d)
        gaps = np.linalg.norm(X[:, None] - X[None], axis=-1)
        apart = np.where(labels[:, None] == labels, np.inf, gaps).min()
        size = max(np.median(gaps[labels == k][:, labels == k]) for k in range(3))
        assert apart > 0.05 * size
        means = np.stack([X[labels == k].mean(0) for k in range(3)])
        inside += (np.linalg.norm(X[:, None] - means, axis=-1).argmin(1) != labels).mean() > 0.02
    assert inside >= 4  # in a third of them rows lie nearer to the middle of another curve


@pytest.mark.parametrize("d", [2, 6])
def test_wandering_clusters_keep_their_distance(d):
    """Balls or strokes: nearly no row is nearer to another cluster than to its own."""
    labels = np.arange(1600) % 4
    for seed in range(8):
        X = SCENES_BY_NAME["wandering"](rng(seed), labels, 4, d)
        gaps = np.linalg.norm(X[:, None] - X[None], axis=-1)
        np.fill_diagonal(gaps, np.inf)
        same = labels[:, None] == labels
        assert np.where(same, np.inf, gaps).min() > 0.25
        assert (np.where(same, gaps, np.inf).min(1) < np.where(same, np.inf, gaps).min(1)).mean() > 0.99


SCENES_BY_NAME = {scene.__name__: scene for scene in SCENES}
