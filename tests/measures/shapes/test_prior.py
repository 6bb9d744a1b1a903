"""Whole sets of the prior of shapes."""

import numpy as np
import pytest

from measureflow.measures.shapes import ShapePrior
from measureflow.measures.shapes.prior import OUTLIERS, background, crumbs, far_rows


def rng(seed=0):
    return np.random.default_rng(seed)


def test_sets_are_centred_and_of_unit_size():
    sets = ShapePrior().sample(20, 150, rng())
    X = sets.points.double().numpy()
    np.testing.assert_allclose(X.mean(1), 0, atol=0.1)  # clipping at fifty may move it
    assert np.isfinite(X).all()
    assert np.abs(X).max() <= 50


def test_the_same_seed_gives_the_same_sets():
    one, two, other = (ShapePrior().sample(3, 80, rng(seed), d=3) for seed in (5, 5, 6))
    assert (one.points == two.points).all()
    assert (one.labels == two.labels).all()
    assert not (one.points == other.points).all()


def test_numbers_of_clusters_range_from_one_to_many():
    numbers = np.concatenate([ShapePrior().sample(1, 700, rng(seed), d=2).n_clusters.numpy() for seed in range(150)])
    assert (numbers == 1).mean() > 0.04
    assert numbers.max() > 25
    assert numbers.max() <= 60


def test_some_rows_belong_to_nothing():
    shares = [float((ShapePrior().sample(1, 200, rng(seed), d=2).labels < 0).float().mean()) for seed in range(100)]
    assert 0.15 < np.mean(np.array(shares) > 0) < 0.45
    assert max(shares) <= 0.1


def test_crumbs_are_tight_and_a_background_fills_the_box():
    X = rng().standard_normal((500, 2))
    even, far, tight = (kind(rng(1), X, 60) for kind in (background, far_rows, crumbs))
    nearest = [np.median(np.sort(np.linalg.norm(Y[:, None] - Y, axis=-1))[:, 1]) for Y in (far, tight)]
    assert nearest[1] < nearest[0] / 3
    assert np.abs(far).max() > np.abs(X).max() >= np.abs(even).max() > 0.8 * np.abs(X).max()
    assert sum(OUTLIERS.values()) == pytest.approx(1)


@pytest.mark.parametrize(("batch", "n", "word"), [(0, 10, "batch"), (1, 1, "n at least 2")])
def test_impossible_sizes_are_named(batch, n, word):
    with pytest.raises(ValueError, match=word):
        ShapePrior().sample(batch, n, rng())
