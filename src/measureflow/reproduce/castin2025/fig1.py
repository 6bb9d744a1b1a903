"""Figure 1: where covariances of trace one go in the cone of 2 x 2 covariances."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from measureflow.reproduce.castin2025 import panels as common
from measureflow.reproduce.castin2025.drawing import draw_cones
from measureflow.reproduce.castin2025.panels import Panel
from measureflow.reproduce.castin2025.parameters import (
    RANK_ONE,
    RANK_ONE_BOTH_HEADS,
    SHRINKING,
    TWO_LINES,
    multi_head,
    softmax,
)

TITLE = "Castin 2025, Figure 1: softmax and multi-head attention on 2-dimensional Gaussians"
PANELS = [
    Panel("a", "softmax, V random, A + Aᵀ < 0", softmax, SHRINKING, view=(20, -174)),
    Panel("b", "softmax, V = I, A + Aᵀ ≤ 0 of rank 1", softmax, RANK_ONE, view=(20, -86)),
    Panel("c", "multi-head, V = I, rank 1, one head idle", multi_head, RANK_ONE, view=(20, -45)),
    Panel("c2", "multi-head, V = I, rank 1, both heads at work", multi_head, RANK_ONE_BOTH_HEADS, view=(20, -45)),
    Panel("d", "softmax, A + Aᵀ of both signs", softmax, TWO_LINES, reach=0.95, view=(20, -88)),
]


def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Curves and fates of every panel."""
    return common.compute(PANELS, size)


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """The five cones."""
    return {"fig1": draw_cones(tables, PANELS)}


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What the paper says of these panels and what the runs did."""
    return (
        "The paper: (a) everything goes to zero, (b) to a line, (c) to a plane, (d) to a pattern of two lines. "
        f"Found: {common.in_words(tables, PANELS)} "
        "The plane of (c) needs an idle head: A of rank one is then carried by one head, and the limits are the S "
        "with e1ᵀ S q = 0, of rank one or two. With the same A shared by both heads the limits solve S q = 0, the "
        "line of (b) again: panel (c2)."
    )
