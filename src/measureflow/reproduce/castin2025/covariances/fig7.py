"""Figure 7: Sinkhorn attention in a case that shrinks and in one that grows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from measureflow.reproduce.castin2025.covariances import panels as common
from measureflow.reproduce.castin2025.covariances import values
from measureflow.reproduce.castin2025.covariances.drawing import draw_cones, draw_discs
from measureflow.reproduce.castin2025.covariances.panels import Panel
from measureflow.reproduce.castin2025.covariances.parameters import GROWING, SHRINKING, sinkhorn, sinkhorn_as_published
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "Castin 2025, Figure 7: Sinkhorn attention on 2-dimensional Gaussians"
PANELS = [
    Panel("a", "Sinkhorn, matrices of Figure 1 (a)", sinkhorn, SHRINKING, view=(20, -174)),
    Panel("a2", "the same, A as published", sinkhorn_as_published, SHRINKING, view=(20, -174)),
    Panel("b", "Sinkhorn, matrices of Figure 2", sinkhorn, GROWING, reach=1.0, side=40, limit=1e3),
    Panel("b2", "the same, A as published", sinkhorn_as_published, GROWING, reach=1.0, side=40, limit=1e3),
]


def budget(size: str) -> str:
    """Starts of each panel, and draws of V."""
    return f"{common.budget(PANELS, size)}; {values.budget(size)}"


def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Curves and fates of every panel, and the fates under many V."""
    return common.compute(PANELS, size, cache) | {"values": values.compute({"Sinkhorn": values.sinkhorn}, size)}


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """Cones for the shrinking case, discs for the growing one."""
    return {"fig7a": draw_cones(tables, PANELS[:2]), "fig7b": draw_discs(tables, PANELS[2:])}


def tabulate(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """How many runs under random V go to zero."""
    return {"values": values.tabulate(tables["values"]).rename(columns=lambda name: name.replace("_", " "))}


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """The text and the caption on the shrinking case, and the growing one."""
    counts = common.summary(tables)
    largest = tables["fates"].groupby("panel", sort=False).largest.max()
    rows = values.summary(tables["values"]).set_index("V")
    said = [
        judged(f"caption, ({name}): behaves as softmax, to zero", "similar to softmax",
               f"largest eigenvalue left {largest[name]:.1e}", largest[name] < 1e-3)
        for name in ("a", "a2")
    ]  # fmt: skip
    gone = int(rows.loc["Gaussian", ["blow_up", "diverge"]].sum())
    said.append(
        judged("section 4.5: A + Aᵀ < 0 does not always send to zero", "not the case", values.in_words(rows), gone > 0)
    )
    for name in ("b", "b2"):
        row = counts.loc[name]
        words = f"{row['finite time']} of {row['runs']} blow up, {row['infinite time']} diverge in infinite time"
        blows = row["finite time"] == row["runs"]
        said.append(
            judged(f"caption, ({name}): behaves as softmax, which blows up", "similar to softmax", words, blows)
        )
    return said


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What the paper says of these panels and what the runs did."""
    return (
        "The paper is of two minds: section 4.5 says that A + A^T < 0 does not send Sinkhorn attention to zero, as it "
        "does the others; the caption that it behaves as softmax does. "
        f"Found: {common.in_words(tables, PANELS)} The one V of the figure "
        "bears the caption out. Which of the two is right depends on V, for Sinkhorn as for the others: see "
        "the table. (The published script leaves A unscaled here, panels a2 and b2.)"
    )
