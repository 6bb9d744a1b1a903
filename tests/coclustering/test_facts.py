"""What speaks for the Gaussians: how their centres are spaced, and how round the noise around them is."""

import numpy as np
import pytest

from measureflow.coclustering.facts import Balls, crowding, elongation, noise_shape, spacing


def around(centers: np.ndarray, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Points to either side of each centre in every column, whose noise is as given, and who is whose."""
    d = centers.shape[1]
    offsets = noise * np.sqrt(d) * np.concatenate([np.eye(d), -np.eye(d)])
    points = (centers[:, None] + offsets).reshape(-1, d)
    return points, np.repeat(np.eye(len(centers)), 2 * d, 0)


def test_centres_are_as_far_apart_as_the_nearest_in_units_of_the_noise():
    centers = np.array([[0.0, 0.0], [6.0, 0.0], [6.0, 12.0]])
    mean, deviation = spacing(Balls.of(*around(centers, noise=2.0)))
    logs = np.log([3.0, 3.0, 6.0])
    assert (mean, deviation) == pytest.approx((logs.mean(), logs.std()))


def test_even_spacing_has_no_deviation_and_scale_does_not_matter():
    line = 3.0 * np.stack([np.arange(9), np.zeros(9)], 1)
    assert spacing(Balls.of(*around(line))) == pytest.approx((np.log(3.0), 0.0))
    points, r = around(line)
    assert spacing(Balls.of(1e6 * points, r)) == pytest.approx((np.log(3.0), 0.0))


def test_a_single_centre_and_centres_without_rows_say_nothing():
    points, r = around(np.zeros((1, 2)))
    assert spacing(Balls.of(points, r)) == (0.0, 0.0)
    empty = np.concatenate([r, np.full((len(r), 1), 1e-9)], 1)
    assert spacing(Balls.of(points, empty)) == (0.0, 0.0)


def test_round_noise_of_one_size_is_neither_uneven_nor_long():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 2000)
    points = 30 * rng.standard_normal((3, 4))[labels] + rng.standard_normal((6000, 4))
    assert noise_shape(points, labels) == pytest.approx((0, 0, 0), abs=0.12)
    assert noise_shape(1e6 * points, labels) == pytest.approx(noise_shape(points, labels))


def test_uneven_spreads_and_long_directions_are_measured():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 4000)
    noise = rng.standard_normal((8000, 2))
    wide, narrow = np.log(100 / 50.5), np.log(1 / 50.5)  # mean squares 100 and 1 over their mean
    uneven, long, own = noise_shape(noise * np.where(labels, 1.0, 10.0)[:, None], labels)
    assert uneven == pytest.approx(np.sqrt((wide**2 + narrow**2) / 2), rel=0.02)
    assert (long, own) == pytest.approx((0.0, 0.0), abs=0.1)
    crossed = np.where(labels[:, None] == 0, noise * [3.0, 1.0], noise * [1.0, 3.0])  # each long, together round
    uneven, long, own = noise_shape(crossed, labels)
    assert own == pytest.approx(np.log(9 / 5), abs=0.1)
    assert (uneven, long) == pytest.approx((0.0, 0.0), abs=0.1)
    assert elongation(noise * [3.0, 1.0]) == pytest.approx(np.log(9 / 5), abs=0.1)


def test_few_rows_of_many_columns_look_no_longer_than_chance_makes_them():
    rng = np.random.default_rng(0)
    assert abs(elongation(rng.standard_normal((20, 200)))) < 0.3
    assert elongation(np.zeros((9, 2))) == 0.0
    assert noise_shape(np.arange(8.0).reshape(4, 2), np.arange(4)) == (0.0, 0.0, 0.0)  # no cluster of a few rows
    assert noise_shape(np.ones((8, 2)), np.zeros(8, int)) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("d", [1, 2, 8])
def test_rows_of_the_gaussians_themselves_are_as_crowded_as_they_should_be(d):
    """Normal scores: their mean is zero and their deviation one, but for neighbours that share a ball."""
    rng = np.random.default_rng(d)
    labels = rng.integers(3, size=900)
    points = 10.0 * labels[:, None] + rng.standard_normal((900, d))
    mean, deviation = crowding(points, Balls.of(points, np.eye(3)[labels]))
    assert (mean, deviation) == pytest.approx((0.0, 1.0), abs=0.15)


def test_rows_along_a_curve_are_nearer_to_one_another_and_those_of_a_heavy_tail_uneven():
    rng = np.random.default_rng(0)
    t, one = rng.uniform(-3, 3, 600), np.ones((600, 1))
    curve = np.stack([t, 0.05 * rng.standard_normal(600)], 1)
    cut = np.eye(3)[np.digitize(t, [-1, 1])]  # three balls in a row
    crowded, _ = crowding(curve, Balls.of(curve, cut))
    assert crowded > 2  # balls of radius one would spread the rows over an area
    tail = rng.standard_t(1.5, (600, 2))
    assert crowding(tail, Balls.of(tail, one))[1] > 2
    assert crowding(1e6 * tail, Balls.of(1e6 * tail, one)) == pytest.approx(crowding(tail, Balls.of(tail, one)))
    assert crowding(tail[:5], Balls.of(tail[:5], one[:5])) == (0.0, 0.0)
    same = np.ones((30, 2))
    assert np.isfinite(crowding(same, Balls.of(same, one[:30]))).all()
