"""Figure 6: the start decides between convergence and divergence, for three attentions."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from measureflow.reproduce.castin2025 import panels as common
from measureflow.reproduce.castin2025.drawing import draw_discs
from measureflow.reproduce.castin2025.panels import Panel
from measureflow.reproduce.castin2025.parameters import DIVIDED, l2, multi_head, softmax

TITLE = "Castin 2025, Figure 6: convergence or divergence, depending on the start"
PANELS = [
    Panel("a", "softmax", softmax, DIVIDED, reach=0.98),
    Panel("b", "multi-head, two heads", multi_head, DIVIDED, reach=0.98),
    Panel("c", "L2", l2, DIVIDED, reach=0.98),
]


def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Curves and fates of every panel."""
    return common.compute(PANELS, size)


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """The three discs."""
    return {"fig6": draw_discs(tables, PANELS)}


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What the paper says of these panels and what the runs did."""
    counts = common.summary(tables)
    return (
        "The paper: softmax and multi-head are very similar, part of the starts converging and part blowing up; L2 "
        "replaces finite-time by infinite-time divergence. (The published multi-head panel was run with one head; "
        f"here it has two.) Found: {common.in_words(tables, PANELS)} L2 blows up in finite time in "
        f"{counts.loc['c', 'finite time']} runs."
    )
