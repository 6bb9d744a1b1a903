"""Figure 4: softmax, L2 and multi-head attention with the same negative definite A all go to zero."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from measureflow.reproduce.castin2025.covariances import panels as common
from measureflow.reproduce.castin2025.covariances import values
from measureflow.reproduce.castin2025.covariances.drawing import draw_cones
from measureflow.reproduce.castin2025.covariances.panels import Panel
from measureflow.reproduce.castin2025.covariances.parameters import SHRINKING, l2, multi_head, softmax
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "Castin 2025, Figure 4: A + A^T < 0 sends softmax, L2 and multi-head attention to zero"
PANELS = [
    Panel("a", "softmax", softmax, SHRINKING, view=(20, -174)),
    Panel("b", "L2", l2, SHRINKING, view=(20, -174)),
    Panel("c", "multi-head", multi_head, SHRINKING, view=(20, -174)),
]
ATTENTIONS = {"softmax": values.softmax, "L2": values.l2, "multi-head": values.multi_head}


def budget(size: str) -> str:
    """Starts of each panel, and draws of V."""
    return f"{common.budget(PANELS, size)}; {values.budget(size)}"


def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Curves and fates of every panel, and the fates under many V."""
    return common.compute(PANELS, size, cache) | {"values": values.compute(ATTENTIONS, size)}


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """The three cones."""
    return {"fig4": draw_cones(tables, PANELS)}


def tabulate(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """How many runs under random V go to zero."""
    return {"values": values.tabulate(tables["values"]).rename(columns=lambda name: name.replace("_", " "))}


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """The three panels, and the claim that V does not matter."""
    largest = tables["fates"].groupby("panel", sort=False).largest.max()
    panels = [
        judged(f"({panel.name}) {panel.caption}, the V of the figure: to zero", "all trajectories",
               f"largest eigenvalue left {largest[panel.name]:.1e}", largest[panel.name] < 1e-3)
        for panel in PANELS
    ]  # fmt: skip
    return [*panels, *values.verdicts(tables["values"])]


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What the paper says of these panels and what the runs did."""
    largest = tables["fates"].groupby("panel", sort=False).largest.max()
    sizes = ", ".join(f"({name}) {value:.1e}" for name, value in largest.items())
    return (
        "The paper: with A + A^T negative definite all trajectories go to the origin, for softmax, multi-head and L2. "
        f"Found: at time 1e6 the largest eigenvalue over all runs is {sizes}; it falls like 1/t. "
        f"{common.in_words(tables, PANELS)} Section 4.5 says that V does not matter. The figure's V is positive; with "
        "a Gaussian V, Q drawn anew each time, many runs leave, see the table. It counts apart the runs that settled "
        "away from zero and those that were still on the way when the time was up."
    )
