"""What happens to the columns of real tables."""

import numpy as np
import pytest

from measureflow.measures.shapes import COLUMN_EFFECTS, ShapePrior, columns, prior
from measureflow.measures.shapes.prior import WIDE


def rng(seed=0):
    return np.random.default_rng(seed)


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
