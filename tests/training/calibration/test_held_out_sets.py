"""Held-out sets are kept in a folder with what the Gaussians say of them, as long as they would be drawn again."""

import numpy as np
import pytest

from measureflow.training.calibration import held_out_sets as module
from measureflow.training.calibration.held_out_sets import HeldOutSet, draw, held_out_sets


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
