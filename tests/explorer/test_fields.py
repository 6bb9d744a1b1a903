"""The cases that the page's mathematics is held to are what the library computes."""

import importlib.util
import json
from pathlib import Path

import pytest

from measureflow.simulate import ATTENTIONS

SPEC = importlib.util.spec_from_file_location("fields", Path(__file__).with_name("fields.py"))
fields = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fields)
CASES = json.loads(fields.FILE.read_text(encoding="utf-8"))


def flat(value) -> list[float]:
    return [x for part in value for x in flat(part)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['attention']}{', relative' * case['relative']}")
def test_a_case_is_what_the_library_computes(case):
    for name, value in fields.answers(case).items():
        if value is None:
            assert case[name] is None
        else:
            assert flat(case[name]) == pytest.approx(flat(value), rel=1e-9, abs=1e-9)  # Sinkhorn's own tolerance


def test_every_attention_has_its_cases():
    assert {(case["attention"], case["relative"]) for case in CASES} == {(a, r) for a in ATTENTIONS for r in (0, 1)}
