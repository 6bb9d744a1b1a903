"""Figure 6: the start decides between convergence and divergence, for three attentions."""

from __future__ import annotations

from functools import partial

import pandas as pd

from measureflow.reproduce.castin2025.covariances import panels as common
from measureflow.reproduce.castin2025.covariances.drawing import draw_discs
from measureflow.reproduce.castin2025.covariances.panels import Panel
from measureflow.reproduce.castin2025.covariances.parameters import (
    DIVIDED,
    l2,
    l2_as_published,
    multi_head,
    multi_head_scaled,
    softmax,
)
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "Castin 2025, Figure 6: convergence or divergence, depending on the start"
PANELS = [
    Panel("a", "softmax", softmax, DIVIDED, reach=1.0, side=30),
    Panel("b", "multi-head, two heads", multi_head, DIVIDED, reach=1.0, side=30),
    Panel("b2", "multi-head, scaled as softmax", multi_head_scaled, DIVIDED, reach=1.0, side=30),
    Panel("c", "L2", l2, DIVIDED, reach=1.0, side=30),
    Panel("c2", "L2, scaled as published", l2_as_published, DIVIDED, reach=1.0, side=30),
]
budget = partial(common.budget, PANELS)
compute = partial(common.compute, PANELS)


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """A disc for each panel."""
    return {"fig6": draw_discs(tables, PANELS)}


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """Both fates under softmax and multi-head, and infinite time instead of finite under L2."""
    counts = common.summary(tables)
    said = []
    for name, what in (("a", "softmax"), ("b", "multi-head"), ("b2", "multi-head, scaled as softmax")):
        both = counts.loc[name, "finite time"] > 0 and counts.loc[name, "converged"] > 0
        said.append(judged(f"({name}) {what}: part converges, part blows up", "both", _counts(counts.loc[name]), both))
    for name, what in (("c", "L2"), ("c2", "L2, scaled as published")):
        row = counts.loc[name]
        instead = row["finite time"] == 0 and row["infinite time"] >= 0.5 * counts.loc["a", "finite time"]
        words = f"{_counts(row)}; softmax: {counts.loc['a', 'finite time']} blow up"
        said.append(
            judged(f"({name}) {what}: the runs that blew up diverge in infinite time", "replaces", words, instead)
        )
    return said


def _counts(row: pd.Series) -> str:
    return (
        f"of {row['runs']}: {row['converged']} converge, {row['finite time']} blow up, "
        f"{row['infinite time']} diverge in infinite time"
    )


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What the paper says of these panels and what the runs did."""
    return (
        "The paper: softmax and multi-head are very similar, part of the starts converging and part blowing up; L2 "
        "replaces finite-time by infinite-time divergence. (The published multi-head panel was run with one head, "
        f"which is softmax again; here it has two.) Found: {common.in_words(tables, PANELS)}"
    )
