"""Figure 7: Sinkhorn attention in a case that shrinks and in one that grows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from measureflow.reproduce.castin2025 import panels as common
from measureflow.reproduce.castin2025.drawing import draw_cones, draw_discs
from measureflow.reproduce.castin2025.panels import Panel
from measureflow.reproduce.castin2025.parameters import GROWING, SHRINKING, sinkhorn

TITLE = "Castin 2025, Figure 7: Sinkhorn attention on 2-dimensional Gaussians"
PANELS = [
    Panel("a", "Sinkhorn, matrices of Figure 1 (a)", sinkhorn, SHRINKING, view=(20, -174)),
    Panel("b", "Sinkhorn, matrices of Figure 2", sinkhorn, GROWING, reach=0.98, limit=1e3),
]


def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Curves and fates of both panels."""
    return common.compute(PANELS, size)


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """A cone for the shrinking case, a disc for the growing one."""
    return {"fig7a": draw_cones(tables, PANELS[:1]), "fig7b": draw_discs(tables, PANELS[1:])}


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What the paper says of these panels and what the runs did."""
    counts = common.summary(tables)
    largest = tables["fates"].query("panel == 'a'").largest.max()
    same = "bears the caption out" if largest < 1e-3 else "bears the text out"
    return (
        "The paper is of two minds: section 4.5 says that A + A^T < 0 does not send Sinkhorn attention to zero, the "
        f"caption that it behaves as softmax does. Found: {common.in_words(tables, PANELS)} In (a) the largest "
        f"eigenvalue left over all runs is {largest:.1e}, which {same}. In (b) "
        f"{counts.loc['b', 'finite time']} runs blow up in finite time, where all softmax runs do."
    )
