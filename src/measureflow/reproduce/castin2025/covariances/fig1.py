"""Figure 1: where covariances of trace one go in the cone of 2 x 2 covariances."""

from __future__ import annotations

from functools import partial

import pandas as pd

from measureflow.reproduce.castin2025.covariances import panels as common
from measureflow.reproduce.castin2025.covariances.drawing import draw_cones
from measureflow.reproduce.castin2025.covariances.panels import Panel
from measureflow.reproduce.castin2025.covariances.parameters import (
    RANK_ONE,
    RANK_ONE_BOTH_HEADS,
    SHRINKING,
    TWO_LINES,
    multi_head,
    softmax,
)
from measureflow.reproduce.verdicts import Verdict, corrected, judged

TITLE = "Castin 2025, Figure 1: softmax and multi-head attention on 2-dimensional Gaussians"
PANELS = [
    Panel("a", "softmax, V random, A + Aᵀ < 0", softmax, SHRINKING, view=(20, -174)),
    Panel("b", "softmax, V = I, A + Aᵀ ≤ 0 of rank 1", softmax, RANK_ONE, view=(20, -86)),
    Panel("c", "multi-head, V = I, rank 1, one head idle", multi_head, RANK_ONE, view=(20, -45)),
    Panel("c2", "multi-head, V = I, rank 1, both heads at work", multi_head, RANK_ONE_BOTH_HEADS, view=(20, -45)),
    Panel("d", "softmax, A + Aᵀ of both signs", softmax, TWO_LINES, reach=1.0, side=20, view=(20, -88)),
]
budget = partial(common.budget, PANELS)
compute = partial(common.compute, PANELS)


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """The five cones."""
    return {"fig1": draw_cones(tables, PANELS)}


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """Zero, line, plane and two lines."""
    counts = common.summary(tables)
    share = lambda panel, kind: f"{counts.loc[panel, kind]} of {counts.loc[panel, 'runs']}"  # noqa: E731
    every = lambda panel, kind: bool(counts.loc[panel, kind] == counts.loc[panel, "runs"])  # noqa: E731
    lines = common.limit_directions(tables, "d")
    off = plane_residual(tables)
    found = f"one head idle: {share('c', 'converged')} converge, |e1ᵀ S q| at most {off:.1e} of the trace; "
    found += f"both heads at work: {share('c2', 'rank_1')} go to rank one"
    return [
        judged("(a) softmax, A + Aᵀ < 0: to zero", "all trajectories", share("a", "rank_0"), every("a", "rank_0")),
        judged("(b) softmax, rank one: to a line", "all trajectories", f"{share('b', 'rank_1')} to rank one",
               every("b", "rank_1") and common.limit_directions(tables, "b") == 1),
        corrected("(c) multi-head, rank one: to a plane", "all trajectories", found,
                  not every("c2", "rank_1") and every("c2", "converged"),
                  every("c", "converged") and off < 1e-4 and every("c2", "rank_1")),
        judged("(d) softmax, both signs: to two lines", "two lines",
               f"{share('d', 'rank_1')} to rank one, on {lines} lines", every("d", "rank_1") and lines == 2),
    ]  # fmt: skip


def plane_residual(tables: dict[str, pd.DataFrame]) -> float:
    """The largest |e1ᵀ S q| over the limits S of panel (c), as a share of their trace."""
    ends = tables["curves"].query("panel == 'c'").groupby("run")[["x", "y", "z"]].last()
    q = RANK_ONE.Q[0]
    return float((((ends.z + ends.x) / 2 * q[0] + ends.y / 2 * q[1]).abs() / ends.z).max())


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What the paper says of these panels and what the runs did."""
    return (
        "The paper: (a) everything goes to zero, (b) to a line, (c) to a plane, (d) to a pattern of two lines. "
        f"Found: {common.in_words(tables, PANELS)} "
        "The plane of (c) needs an idle head: A of rank one is then carried by one head, and the limits are the S "
        "with e1ᵀ S q = 0, of rank one or two. With the same A shared by both heads the limits solve S q = 0, the "
        "line of (b) again: panel (c2)."
    )
