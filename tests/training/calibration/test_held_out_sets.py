"""Held-out sets are kept in a folder with what the Gaussians say of them, as long as they would be drawn again."""

import numpy as np
import pytest

from measureflow.measures.shapes.prior import DIMENSIONS
from measureflow.training.calibration import held_out_sets as module
from measureflow.training.calibration.held_out_sets import HeldOutSet, draw, draw_round, held_out_sets


@pytest.fixture
def asked(monkeypatch):
    """The numbers of the sets whose posterior was asked for; sets are small."""
    numbers, of = [], HeldOutSet.of
    monkeypatch.setattr(module, "ROWS", (32, 40))
    monkeypatch.setattr(HeldOutSet, "of", lambda number: numbers.append(number) or of(number))
    return numbers


def test_kept_sets_are_not_searched_again(tmp_path, asked):
    first, again = held_out_sets(tmp_path, 2), held_out_sets(tmp_path, 2)
    assert asked == [0, 1]
    for a, b in zip(first, again, strict=True):
        assert all(np.array_equal(value, vars(b)[name]) for name, value in vars(a).items())


def test_sets_that_are_drawn_otherwise_are_searched_again(tmp_path, asked, monkeypatch):
    held_out_sets(tmp_path, 2)
    monkeypatch.setattr(module, "SEED", module.SEED + 1)
    found = held_out_sets(tmp_path, 2)
    assert asked == [0, 1, 0, 1]
    assert np.array_equal(found[1].points, draw(1)[0])


def test_a_file_is_there_whole_or_not_at_all(tmp_path, asked, monkeypatch):
    monkeypatch.setattr(np, "savez_compressed", lambda file, **_: file.write(b"half") and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        held_out_sets(tmp_path, 1)
    monkeypatch.undo()
    assert not (tmp_path / "0.npz").exists()


def test_round_sets_have_one_round_noise_and_few_or_many_clusters():
    """Rows minus the mean of their cluster vary alike in every column."""
    numbers, columns = [], []
    for seed in range(40):
        X, labels = draw_round(np.random.default_rng(seed), 900)
        K = labels.max() + 1
        counts = np.bincount(labels, minlength=K)
        means = (
            np.stack([np.bincount(labels, column, minlength=K) for column in X.T], 1) / np.maximum(counts, 1)[:, None]
        )
        spread = np.sqrt(((X - means[labels]) ** 2).sum(0) / (len(X) - K))
        np.testing.assert_allclose(spread, spread.mean(), rtol=0.2)  # over four standard errors of 850 rows
        numbers.append(K)
        columns.append(X.shape[1])
    assert min(numbers) == 1
    assert max(numbers) > 30
    assert {1, 2} < set(columns) <= set(DIMENSIONS)
    assert max(columns) > 20
