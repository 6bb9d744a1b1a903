"""A few hundred broken files and odd inputs in every run; ``make fuzz`` tries a hundred and thirteen thousand."""

import pickle
import re
import time

import numpy as np
import pytest

from fuzz import inputs, limits, tables, weights


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


def test_odd_input():
    outcomes, crashes = inputs.fuzz(every=12)
    assert not crashes
    assert outcomes["refused"] > 100
    assert outcomes["answered"] > 80


ONCE_CRASHED = ("FlowMixture.fit(X, sample_weight), weights: all 1e", "FlowMixture(device=", "FlowMixture(model=")
ONCE_CRASHED += ("fit after device=", "fit(X), X: integers beyond", "fit(X), X: torch", "fit(X), X: dask", "one and")


def test_odd_input_that_once_crashed():
    cases = [case for case in inputs.all_cases() if any(word in case.name for word in ONCE_CRASHED)]
    found = {case.name: inputs.tried(case) for case in cases}
    assert len(found) > 120
    assert {name: why for name, (outcome, why) in found.items() if outcome == "crashed"} == {}


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: np.zeros(2) + np.zeros(3), "unclear"),
        (lambda: inputs._sound(np.array([0, 3]), 0, 3), r"labels 0\.\.3"),
        (lambda: inputs._sound(np.array([0.0, np.nan]), 0, 3), "labels are float64"),
        (lambda: time.sleep(30), "hangs"),
    ],
)
def test_the_sweep_notices_a_crash(monkeypatch, call, why):
    monkeypatch.setattr(inputs, "SECONDS", 1)
    outcome, said = inputs.tried(inputs.Case("a case", "X", call))
    assert outcome == "crashed"
    assert re.search(why, said)


def test_the_guard_notices_a_hang_and_a_pickle():
    with pytest.raises(limits.TooSlow), limits.guarded(seconds=1):
        time.sleep(30)
    with pytest.raises(AssertionError, match="find_class"), limits.guarded(seconds=5):
        pickle.loads(b"cbuiltins\nlen\n.")


def test_a_silent_error_is_not_clear():
    with pytest.raises(AssertionError, match="says nothing"):
        limits.refusal(ValueError("no"))
