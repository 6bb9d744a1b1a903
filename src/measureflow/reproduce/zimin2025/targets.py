"""The 16-layer uniform model, told the true SNR, on enough test sets to compare it with the printed row."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from measureflow.reproduce.verdicts import Verdict, judged
from measureflow.reproduce.zimin2025.contestants import BASE, BUDGETS
from measureflow.reproduce.zimin2025.measurements import LEVELS, POINTS, measure, shared, summary
from measureflow.reproduce.zimin2025.tables import DEPTHS, printed

TITLE = "Zimin 2025, the 16-layer row of Table 2 on five hundred sets"
SETS = {"tiny": 2, "small": 500, "paper": 2000}
TARGETS = {"High SNR": 0.0018, "Moderate SNR": 0.0088, "Low SNR": 0.0400}  # for training on processors
WEIGHTS = (BASE,)


def budget(size: str) -> str:
    """Test sets, and what the model was trained on beside the paper's."""
    sets, _ = BUDGETS[BASE]
    return f"{SETS[size]} test sets a level at n = {POINTS[size]}; trained on {sets:,} sets, the paper's on 2.6 million"


MODEL = next(column for column in DEPTHS if column.name == "16 layers")


def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Mean W2 squared with its standard error, the target and the printed number."""
    ours = summary(measure((MODEL,), LEVELS, (POINTS[size],), SETS[size], shared(cache)), ["column", "data"])
    table = ours.merge(printed("table2"), on=["data", "column"])
    table["target"] = table["data"].map(TARGETS)
    return {"targets": table[["data", "w2", "w2_error", "sets", "target", "printed"]]}


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """Bars with two standard errors, the target and the printed number as lines across them."""
    import matplotlib.pyplot as plt

    table = tables["targets"]
    figure, panels = plt.subplots(1, len(table), figsize=(2.6 * len(table), 3), layout="constrained")
    for axis, row in zip(panels, table.itertuples(), strict=True):
        axis.bar([0], row.w2, yerr=2 * row.w2_error, width=0.5, color="#1f6feb", capsize=4, label="ours")
        axis.axhline(row.target, color="#d98032", linestyle="--", label="target")
        axis.axhline(row.printed, color="0.4", linestyle=":", label="printed")
        axis.set(
            title=row.data, xticks=[], xlim=(-0.6, 0.6), ylim=(0, 1.15 * max(row.w2 + 2 * row.w2_error, row.target))
        )
        axis.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("W2 squared")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return {"targets": figure}


def tabulate(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Ours, the target and the printed number."""
    return {"targets": tables["targets"].round({"w2": 5, "w2_error": 5})}


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """The printed row, within two standard errors; and our own target."""
    said = []
    for row in tables["targets"].itertuples():
        found = f"{row.w2:.5f} ± {row.w2_error:.5f}"
        reached = row.w2 <= row.printed + 2 * row.w2_error
        said.append(judged(f"16 layers, {row.data}", f"{row.printed:.4f}", found, bool(reached)))
    return said


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """Which targets are met."""
    words = [
        f"{row.data}: {row.w2:.4f} +- {row.w2_error:.4f} over {row.sets} sets, printed {row.printed:.4f}, "
        f"target {row.target:.4f} {'met' if row.w2 <= row.target else 'not met'}."
        for row in tables["targets"].itertuples()
    ]
    return " ".join(words)
