"""Verdicts on models that an artefact trains itself follow the data."""

import numpy as np
import pandas as pd
import pytest

from measureflow.reproduce.zimin2025.measurements import LEVELS
from measureflow.reproduce.zimin2025.trained import equal_budgets
from measureflow.reproduce.zimin2025.trained.equal_budgets import AGAIN, BASE, MODELS
from reproduce.tables import the, words

NOISE = np.random.default_rng(0).uniform(0.5, 1.5, size=40)


def tables(errors: dict[str, float], flows: dict[str, float] | None = None) -> dict[str, pd.DataFrame]:
    """Models whose errors are so many times those of the base, set by set; total flows likewise."""
    rng = np.random.default_rng(1)
    scores = [
        pd.DataFrame({"data": data, "set": range(40), "column": name, "w2": errors.get(name, 1.0) * NOISE})
        for data in LEVELS
        for name in MODELS
    ]
    scores = pd.concat(scores, ignore_index=True)
    scores["w2"] *= 1 + 0.001 * rng.normal(size=len(scores))
    snr = np.linspace(3, 15, 5)
    flow = [
        pd.DataFrame({"column": name, "snr_db": snr, "total": (flows or {}).get(name, 1.0) * (20 - snr)})
        for name in MODELS
    ]
    return {"scores": scores, "flow": pd.concat(flow, ignore_index=True)}


@pytest.mark.parametrize(
    ("errors", "claim", "word"),
    [
        ({"32 layers": 0.8, "64 layers": 0.7}, f"32 layers before {BASE}", "holds"),
        ({"32 layers": 1.2}, f"32 layers before {BASE}", "fails"),
        ({}, f"32 layers before {BASE}", "open"),
        ({"32 layers": 1.2, AGAIN: 1.3}, f"32 layers before {BASE}", "open"),  # seeds differ by more
        ({"32 layers": 0.8, "64 layers": 0.9}, "64 layers before 32 layers", "fails"),
        ({"no flow": 1.5}, f"{BASE} before no flow", "holds"),
        ({"unit flow": 0.9}, f"{BASE} before unit flow", "fails"),
        ({"distinct layers": 0.9}, f"distinct layers before {BASE}", "holds"),
    ],
)
def test_orders_are_clear_beyond_their_errors_and_the_seeds(errors, claim, word):
    assert the(words(equal_budgets, tables(errors)), claim) == word


@pytest.mark.parametrize(
    ("flows", "word"),
    [
        ({"64 layers": 1.05, "no flow": 2.0}, "holds"),
        ({"64 layers": 1.3, "no flow": 2.0}, "fails"),
        ({"64 layers": 1.05}, "open"),  # nothing has moved from where it began
    ],
)
def test_total_flows_of_depths_are_compared_once_they_have_moved(flows, word):
    assert the(words(equal_budgets, tables({}, flows)), "total flow hardly") == word


def test_only_the_kind_of_the_model_differs():
    recipes = {name: equal_budgets.recipe(name, "small") for name in MODELS}
    base = recipes[BASE]
    for name, recipe in recipes.items():
        assert recipe.stages == base.stages
        assert (recipe.seed == base.seed) == (name != AGAIN)
        assert not recipe.start
