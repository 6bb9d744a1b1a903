"""Figure 4: softmax, L2 and multi-head attention with the same negative definite A all go to zero."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from measureflow.reproduce.castin2025 import panels as common
from measureflow.reproduce.castin2025.drawing import draw_cones
from measureflow.reproduce.castin2025.panels import Panel
from measureflow.reproduce.castin2025.parameters import SHRINKING, l2, multi_head, softmax

TITLE = "Castin 2025, Figure 4: A + A^T < 0 sends softmax, L2 and multi-head attention to zero"
PANELS = [
    Panel("a", "softmax", softmax, SHRINKING, view=(20, -174)),
    Panel("b", "L2", l2, SHRINKING, view=(20, -174)),
    Panel("c", "multi-head", multi_head, SHRINKING, view=(20, -174)),
]


def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Curves and fates of every panel."""
    return common.compute(PANELS, size)


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """The three cones."""
    return {"fig4": draw_cones(tables, PANELS)}


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What the paper says of these panels and what the runs did."""
    largest = tables["fates"].groupby("panel", sort=False).largest.max()
    sizes = ", ".join(f"({name}) {value:.1e}" for name, value in largest.items())
    return (
        "The paper: with A + A^T negative definite all trajectories go to the origin, for softmax, multi-head and L2. "
        f"Found: at time 1e6 the largest eigenvalue over all runs is {sizes}; it falls like 1/t. "
        f"{common.in_words(tables, PANELS)}"
    )
