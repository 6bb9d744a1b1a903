"""What speaks for the Gaussians: how their centres are spaced."""

import numpy as np
import pytest

from measureflow.coclustering.facts import spacing


def around(centers: np.ndarray, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Points to either side of each centre in every column, whose noise is as given, and who is whose."""
    d = centers.shape[1]
    offsets = noise * np.sqrt(d) * np.concatenate([np.eye(d), -np.eye(d)])
    points = (centers[:, None] + offsets).reshape(-1, d)
    return points, np.repeat(np.eye(len(centers)), 2 * d, 0)


def test_centres_are_as_far_apart_as_the_nearest_in_units_of_the_noise():
    centers = np.array([[0.0, 0.0], [6.0, 0.0], [6.0, 12.0]])
    mean, deviation = spacing(*around(centers, noise=2.0))
    logs = np.log([3.0, 3.0, 6.0])
    assert (mean, deviation) == pytest.approx((logs.mean(), logs.std()))


def test_even_spacing_has_no_deviation_and_scale_does_not_matter():
    line = 3.0 * np.stack([np.arange(9), np.zeros(9)], 1)
    assert spacing(*around(line)) == pytest.approx((np.log(3.0), 0.0))
    points, r = around(line)
    assert spacing(1e6 * points, r) == pytest.approx((np.log(3.0), 0.0))


def test_a_single_centre_and_centres_without_rows_say_nothing():
    points, r = around(np.zeros((1, 2)))
    assert spacing(points, r) == (0.0, 0.0)
    empty = np.concatenate([r, np.full((len(r), 1), 1e-9)], 1)
    assert spacing(points, empty) == (0.0, 0.0)
