"""Figure 5: Figure 1 again for L2 attention."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from measureflow.reproduce.castin2025 import panels as common
from measureflow.reproduce.castin2025.drawing import draw_cones
from measureflow.reproduce.castin2025.panels import Panel
from measureflow.reproduce.castin2025.parameters import RANK_ONE, SHRINKING, TWO_LINES, l2

TITLE = "Castin 2025, Figure 5: L2 attention with the matrices of Figure 1 (a, b, d)"
PANELS = [
    Panel("a", "L2, V random, A + Aᵀ < 0", l2, SHRINKING, view=(20, -174)),
    Panel("b", "L2, V = I, A + Aᵀ ≤ 0 of rank 1", l2, RANK_ONE, view=(20, -86)),
    Panel("c", "L2, A + Aᵀ of both signs", l2, TWO_LINES, reach=0.95, view=(20, -88)),
]


def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Curves and fates of every panel."""
    return common.compute(PANELS, size)


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """The three cones."""
    return {"fig5": draw_cones(tables, PANELS)}


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What the paper says of these panels and what the runs did."""
    return (
        "The paper: L2 attention behaves as softmax attention in Figure 1. (The published script draws both mixed "
        f"panels from the L2 run; here each is its own.) Found: {common.in_words(tables, PANELS)}"
    )
