"""Shapes of one cluster: each is what it says it is."""

import numpy as np
import pytest
from scipy.stats import kurtosis, skew

from measureflow.measures.shapes import SHAPES, catalogue
from measureflow.measures.shapes.catalogue import draw_shape


def rng(seed=0):
    return np.random.default_rng(seed)


def radii(shape, n=4000, d=3, seed=0):
    return np.linalg.norm(draw_shape(rng(seed), shape, n, d), axis=1)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.__name__)
@pytest.mark.parametrize("d", [1, 2, 7])
def test_every_shape_has_the_common_size_and_centre(shape, d):
    X = draw_shape(rng(), shape, 500, d)
    assert X.shape == (500, d)
    assert np.isfinite(X).all()
    assert np.median(np.linalg.norm(X, axis=1)) == pytest.approx(np.sqrt(d))
    np.testing.assert_allclose(np.median(X, 0), 0, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.__name__)
def test_one_point_of_every_shape(shape):
    assert np.isfinite(draw_shape(rng(), shape, 1, 2)).all()


@pytest.mark.parametrize("shape", [catalogue.student, catalogue.laplace, catalogue.hub], ids=lambda s: s.__name__)
def test_tails_are_heavier_than_normal(shape):
    assert kurtosis(draw_shape(rng(1), shape, 4000, 3).ravel()) > 1


@pytest.mark.parametrize("shape", [catalogue.ball, catalogue.box], ids=lambda s: s.__name__)
def test_bounded_shapes_end(shape):
    r = radii(shape)
    assert r.max() < 2.2 * np.median(r)


def test_a_graded_box_is_densest_at_one_edge():
    """Along the direction in which it grows, more rows lie in the last fifth before the edge than in any other."""
    for seed in range(5):
        X = catalogue.graded(rng(seed), 4000, 2)
        counts = [np.histogram(X @ (np.cos(t), np.sin(t)), 5)[0] for t in np.linspace(0, 2 * np.pi, 120)]
        assert max(c[0] / c.sum() for c in counts if c.argmax() == 0) > 0.24


@pytest.mark.parametrize("d", [1, 2, 8])
def test_the_lumps_of_a_cluster_leave_no_gap(d):
    """No direction parts the rows: along the principal axis the thinnest place between the quartiles is not empty."""
    for seed in range(20):
        X = catalogue.lumpy(rng(seed), 4000, d)
        axis = np.linalg.svd(X - X.mean(0), full_matrices=False)[2][0]
        along = X @ axis
        low, high = np.quantile(along, [0.25, 0.75])
        counts = np.histogram(along[(along > low) & (along < high)], 8)[0]
        assert counts.min() > 0.5 * counts.max()


@pytest.mark.parametrize("shape", [catalogue.ring, catalogue.wave, catalogue.spiral], ids=lambda s: s.__name__)
def test_in_one_column_a_curve_is_laid_out_straight(shape):
    for seed in range(5):
        counts = np.histogram(shape(rng(seed), 4000, 1), 12)[0][2:-2]
        assert counts.min() > 0.6 * counts.max()


def test_skewed_columns_lean():
    assert np.abs(skew(draw_shape(rng(), catalogue.skewed, 4000, 3))).min() > 0.5


def test_a_shell_is_hollow():
    r = radii(catalogue.shell)
    assert r.min() > 0.2 * np.median(r)


def test_shares_are_parts_of_a_whole():
    """The last part is one minus the others, so the columns lean against one another."""
    X = catalogue.shares(rng(), 3000, 4)
    assert np.corrcoef(X.T)[~np.eye(4, dtype=bool)].mean() < 0


def test_a_flat_cloud_has_few_dimensions():
    values = np.linalg.svd(draw_shape(rng(), catalogue.flat, 2000, 10), compute_uv=False)
    assert values[0] > 5 * values[-1]


def test_counts_take_few_values():
    X = catalogue.counts(rng(), 3000, 3)
    assert max(len(np.unique(column)) for column in X.T) < 60


def test_a_bent_cloud_is_not_an_ellipsoid():
    """Whitened, a normal cloud of 2000 rows has squared radii whose kurtosis is near that of chi-square; most bent ones
    are farther off than any of a dozen normal clouds."""

    def oddness(shape, seed):
        X = draw_shape(rng(seed), shape, 2000, 3)
        Z = (X - X.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(X.T))).T
        return np.abs(kurtosis(Z)).max() + np.abs(skew(Z)).max()

    normal = max(oddness(catalogue.gaussian, seed) for seed in range(12))
    assert sum(oddness(catalogue.bent, seed) > normal for seed in range(12)) >= 9


@pytest.mark.parametrize("d", [2, 3])
def test_a_shear_changes_no_volume(d):
    """The determinant of its derivative, by differences around a few places, is one; and it moves something."""
    at = rng(1).standard_normal((5, 1, d))
    corners = np.concatenate([at, at + 1e-5 * np.eye(d)], 1)
    moved = catalogue.sheared(rng(2), corners.reshape(-1, d)).reshape(corners.shape)
    np.testing.assert_allclose(np.linalg.det((moved[:, 1:] - moved[:, :1]) / 1e-5), 1.0, atol=1e-4)
    assert np.abs(moved - corners).max() > 0.1


@pytest.mark.parametrize("name", ["arc", "ring", "spiral", "wave", "parabola", "segment"])
def test_threads_are_thin(name):
    """A thread leaves many cells of the rectangle around it empty."""
    X = draw_shape(rng(), getattr(catalogue, name), 1500, 2)
    cells = {tuple(cell) for cell in np.floor(X / 0.25).astype(int)}
    low, high = X.min(0), X.max(0)
    assert len(cells) < 0.75 * np.prod(np.ceil((high - low) / 0.25))


def test_points_lie_as_dense_on_steep_parts_of_a_curve_as_on_flat_ones():
    """Half of the length of a corner goes up: half of the points do, though all of them share one abscissa."""
    corner = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    X = catalogue.evenly_along(rng(), corner, 4000)
    assert np.mean(X[:, 1] > 0) == pytest.approx(0.5, abs=0.03)
    assert X[X[:, 1] > 0, 1].mean() == pytest.approx(0.5, abs=0.03)


def test_clusters_that_are_alone_have_every_shape_and_most_often_one_that_looks_like_several():
    drawn = [catalogue.any_shape(random, alone=True).__name__ for random in [rng(3)] for _ in range(3200)]
    for shape in SHAPES:
        expected = 300 if shape in catalogue.SEVERAL else 100
        assert drawn.count(shape.__name__) == pytest.approx(expected, abs=5 * expected**0.5)
