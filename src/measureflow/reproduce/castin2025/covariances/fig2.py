"""Figure 2: the trace-one shadows of covariances that blow up or diverge."""

from __future__ import annotations

from functools import partial

import pandas as pd

from measureflow.reproduce.castin2025.covariances import panels as common
from measureflow.reproduce.castin2025.covariances.drawing import draw_discs
from measureflow.reproduce.castin2025.covariances.panels import Panel
from measureflow.reproduce.castin2025.covariances.parameters import (
    DIVIDED,
    GROWING,
    l2,
    l2_as_published,
    multi_head,
    multi_head_scaled,
    softmax,
)
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "Castin 2025, Figure 2: blow-up of softmax and multi-head attention where L2 attention only diverges"
PANELS = [
    Panel("a", "softmax, V = I, A + Aᵀ > 0", softmax, GROWING, reach=1.0, side=40),
    Panel("b", "multi-head, same matrices", multi_head, GROWING, reach=1.0, side=40),
    Panel("b2", "multi-head, scaled as softmax", multi_head_scaled, GROWING, reach=1.0, side=40),
    Panel("c", "L2, same matrices", l2, GROWING, reach=1.0, side=40),
    Panel("c2", "L2, scaled as published", l2_as_published, GROWING, reach=1.0, side=40),
    Panel("d", "softmax, A + Aᵀ of both signs", softmax, DIVIDED, reach=1.0, side=30),
]
budget = partial(common.budget, PANELS)
compute = partial(common.compute, PANELS)


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """A disc for each panel."""
    return {"fig2": draw_discs(tables, PANELS)}


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """One for each panel, and one for the heads scaled as the softmax."""
    counts = common.summary(tables)
    said = {"a": "softmax", "b": "multi-head", "b2": "multi-head, scores scaled as the softmax's"}
    found = [
        judged(f"({name}) {what} blows up in finite time", "explodes in finite time",
               f"{counts.loc[name, 'finite time']} of {counts.loc[name, 'runs']}",
               counts.loc[name, "finite time"] == counts.loc[name, "runs"])
        for name, what in said.items()
    ]  # fmt: skip
    for name in ("c", "c2"):
        row = counts.loc[name]
        words = f"{row['infinite time']} of {row['runs']} diverge, {row['finite time']} blow up"
        holds = row["infinite time"] == row["runs"]
        found.append(judged(f"({name}) L2 diverges and stays well-posed", "diverges in infinite time", words, holds))
    row = counts.loc["d"]
    words = (
        f"{row['finite time']} blow up, {row['converged']} converge, {row['infinite time']} diverge, of {row['runs']}"
    )
    both = row["finite time"] > 0 and row["converged"] > 0
    return [*found, judged("(d) the start decides between blow-up and convergence", "both occur", words, both)]


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What the paper says of these panels and what the runs did."""
    said = [verdict.verdict for verdict in verdicts(tables)]
    return (
        "The paper: softmax (a) and multi-head (b) explode in finite time, L2 (c) diverges but stays well-posed "
        "(Lemma 4.12), and in (d) the start decides between blow-up and convergence. "
        f"Found: {common.in_words(tables, PANELS)} {said.count('holds')} of {len(said)} statements hold. In (b2) the "
        "heads are scaled as the softmax is; in (c2) the L2 attention is scaled as in the published script."
    )
