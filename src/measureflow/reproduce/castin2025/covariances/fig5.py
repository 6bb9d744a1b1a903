"""Figure 5: Figure 1 again for L2 attention."""

from __future__ import annotations

from functools import partial

import pandas as pd

from measureflow.reproduce.castin2025.covariances import panels as common
from measureflow.reproduce.castin2025.covariances.drawing import draw_cones
from measureflow.reproduce.castin2025.covariances.panels import Panel
from measureflow.reproduce.castin2025.covariances.parameters import RANK_ONE, SHRINKING, TWO_LINES, l2
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "Castin 2025, Figure 5: L2 attention with the matrices of Figure 1 (a, b, d)"
PANELS = [
    Panel("a", "L2, V random, A + Aᵀ < 0", l2, SHRINKING, view=(20, -174)),
    Panel("b", "L2, V = I, A + Aᵀ ≤ 0 of rank 1", l2, RANK_ONE, view=(20, -86)),
    Panel("c", "L2, A + Aᵀ of both signs", l2, TWO_LINES, reach=1.0, side=20, view=(20, -88)),
]
budget = partial(common.budget, PANELS)
compute = partial(common.compute, PANELS)


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """The three cones."""
    return {"fig5": draw_cones(tables, PANELS)}


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """The limits of Figure 1: zero, a line, two lines."""
    counts = common.summary(tables)
    said = []
    for panel, rank, lines, where in (("a", 0, 0, "to zero"), ("b", 1, 1, "to a line"), ("c", 1, 2, "to two lines")):
        row, on = counts.loc[panel], common.limit_directions(tables, panel)
        found = f"{row[f'rank_{rank}']} of {row['runs']} to rank {rank}" + (f", on {on} lines" if rank else "")
        holds = row[f"rank_{rank}"] == row["runs"] and on == lines
        said.append(judged(f"({panel}) L2 behaves as softmax in Figure 1: {where}", where, found, holds))
    return said


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What the paper says of these panels and what the runs did."""
    return (
        "The paper: L2 attention behaves as softmax attention in Figure 1. (The published script draws both mixed "
        f"panels from the L2 run; here each is its own.) Found: {common.in_words(tables, PANELS)}"
    )
