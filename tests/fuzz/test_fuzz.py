"""A few hundred broken files in every run; ``make fuzz`` tries a hundred and ten thousand."""

import pickle
import time

import pytest

from fuzz import limits, tables, weights


def test_broken_weight_files(tmp_path):
    outcomes = weights.fuzz(300, tmp_path)
    assert outcomes["refused"] > 100
    assert outcomes["loaded"] > 20
    assert outcomes.total() == 300


def test_broken_tables():
    outcomes = tables.fuzz(100)
    assert outcomes["refused"] > 3
    assert outcomes["clustered"] > 30
    assert outcomes.total() == 100


def test_the_guard_notices_a_hang_and_a_pickle():
    with pytest.raises(limits.TooSlow), limits.guarded(seconds=1):
        time.sleep(30)
    with pytest.raises(AssertionError, match="find_class"), limits.guarded(seconds=5):
        pickle.loads(b"cbuiltins\nlen\n.")


def test_a_silent_error_is_not_clear():
    with pytest.raises(AssertionError, match="says nothing"):
        limits.refusal(ValueError("no"))
