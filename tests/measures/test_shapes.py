"""The prior of clusters of many shapes: each member of its lists is what it says it is."""

import numpy as np
import pytest
from scipy.stats import kurtosis, skew

from measureflow.measures.shapes import (
    COLUMN_EFFECTS,
    PLACEMENTS,
    SCENES,
    SHAPES,
    ShapePrior,
    catalogue,
    columns,
    prior,
)
from measureflow.measures.shapes.catalogue import draw_shape
from measureflow.measures.shapes.placement import moved_apart
from measureflow.measures.shapes.prior import OUTLIERS, WIDE, background, crumbs, far_rows
from measureflow.measures.shapes.scenes import round_mixture


def rng(seed=0):
    return np.random.default_rng(seed)


def radii(shape, n=4000, d=3, seed=0):
    return np.linalg.norm(draw_shape(rng(seed), shape, n, d), axis=1)


# ---- shapes


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


# ---- placement


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


# ---- scenes


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


@pytest.mark.parametrize("d", [2, 6])
def test_wandering_clusters_keep_their_distance(d):
    """A chain is longer than it is thick, and no row is nearer to another cluster than to its own."""
    labels = np.arange(1600) % 4
    for seed in range(5):
        X = SCENES_BY_NAME["wandering"](rng(seed), labels, 4, d)
        gaps = np.linalg.norm(X[:, None] - X[None], axis=-1)
        np.fill_diagonal(gaps, np.inf)
        same = labels[:, None] == labels
        assert np.where(same, np.inf, gaps).min() > 0.25
        assert (np.where(same, gaps, np.inf).min(1) < np.where(same, np.inf, gaps).min(1)).mean() > 0.99


def test_round_mixtures_have_the_noise_they_were_drawn_with():
    labels = np.arange(4000) % 4
    for seed in range(5):
        X = round_mixture(rng(seed), labels, 4, 3)
        within = [np.cov(X[labels == k].T) for k in range(4)]
        noise = np.mean([np.trace(W) / 3 for W in within])
        assert (
            max(np.abs(W - noise * np.eye(3)).max() for W in within) < 0.15 * noise
        )  # round, one size; 1,000 rows each
        assert 10**-2.1 < noise < 10**-0.25  # 3 to 20 decibels below centres of variance one


def test_single_clusters_have_every_shape_equally_often():
    drawn = [catalogue.any_shape(random, evenly=True).__name__ for random in [rng(3)] for _ in range(1900)]
    counts = np.array([drawn.count(shape.__name__) for shape in SHAPES])
    assert counts.min() > 60  # 100 each, five standard deviations below


SCENES_BY_NAME = {scene.__name__: scene for scene in SCENES}


# ---- columns


@pytest.mark.parametrize("effect", COLUMN_EFFECTS, ids=lambda e: e.__name__)
def test_every_effect_keeps_the_shape_and_changes_the_points(effect):
    labels = rng(1).integers(3, size=200)
    X = rng(2).standard_normal((200, 6)) + 4 * labels[:, None]
    Y = effect(rng(), X.copy(), labels)
    assert Y.shape == X.shape
    assert np.isfinite(Y).all()
    assert not np.array_equal(X, Y)


def test_effects_come_together_in_some_sets(monkeypatch):
    """Counts of effects in a set vary more than if each came by itself."""
    counts = []
    named = {_counted(effect, counts): chance for effect, chance in COLUMN_EFFECTS.items()}
    monkeypatch.setattr(columns, "COLUMN_EFFECTS", named)
    monkeypatch.setattr(columns, "FEWEST_COLUMNS", {})
    found, random = [], rng(5)
    for _ in range(600):
        counts.clear()
        columns.with_effects(random, rng(2).standard_normal((30, 4)), np.zeros(30, int))
        found.append(len(counts))
    mean = np.mean(found)
    alone = sum(p * (1 - p) for p in COLUMN_EFFECTS.values())  # the variance if effects were independent
    assert mean > 1.2 * sum(COLUMN_EFFECTS.values())
    assert np.var(found) > 1.5 * alone


def _counted(effect, counts):
    def recorded(random, X, labels):
        counts.append(effect)
        return X

    return recorded


def test_irrelevant_columns_say_nothing_about_the_clusters():
    labels = np.repeat([0, 1], 500)
    X = rng(2).standard_normal((1000, 6)) + 6 * labels[:, None]
    Y = columns.irrelevant(rng(), X, labels)
    told = np.abs(Y[labels == 0].mean(0) - Y[labels == 1].mean(0)) / Y.std(0)
    assert (told < 0.2).any()
    assert (told > 1).any()


def test_rounded_columns_have_few_values():
    X = columns.rounded(rng(), rng(1).standard_normal((2000, 6)), np.zeros(2000, int))
    assert min(len(np.unique(column)) for column in X.T) < 120


def test_some_tables_have_rounded_columns_only():
    def all_are(seed):
        X = columns.rounded(rng(seed), rng(1).standard_normal((2000, 3)), np.zeros(2000, int))
        return max(len(np.unique(column)) for column in X.T) < 120

    assert 5 < sum(all_are(seed) for seed in range(30)) < 25


def test_a_few_things_measured_by_many_columns():
    """Each column goes with exactly one of the things, up or down, and every thing is measured."""
    X = rng(1).standard_normal((2000, 3))
    Y = columns.measured_again(rng(), X, 12)
    agreement = np.abs(np.corrcoef(X.T, Y.T)[:3, 3:])
    assert Y.shape == (2000, 12)
    assert (np.sort(agreement, 0)[-1] > 0.8).all()
    assert (np.sort(agreement, 0)[-2] < 0.1).all()
    assert set(agreement.argmax(0)) == {0, 1, 2}


def test_some_wide_tables_measure_a_few_things_and_narrow_ones_do_not(monkeypatch):
    widths = []

    def recorded(random, X, d):
        widths.append(X.shape[1])
        return columns.measured_again(random, X, d)

    monkeypatch.setattr(prior, "measured_again", recorded)
    for d in (WIDE - 1, 20):
        ShapePrior().sample(300, 40, rng(), d=d)
    assert 30 < len(widths) < 90  # a fifth of 300, five standard deviations about
    assert min(widths) == 2
    assert 5 < max(widths) <= 10


def test_copied_rows_stay_in_their_cluster():
    labels = np.repeat([0, 1], 100)
    X = rng(1).standard_normal((200, 2)) + 100 * labels[:, None]
    Y = columns.copied_rows(rng(4), X.copy(), labels)
    assert len(np.unique(Y, axis=0)) < 200
    assert ((Y[:, 0] > 50) == (labels == 1)).all()


# ---- whole sets


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
