"""How the tables look: a dot for each of our numbers, a ring for each printed one."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from measureflow.reproduce.axes import few_decades, ticks_at

OURS, PRINTED = "#1f6feb", "0.35"


def draw_columns(cells: pd.DataFrame, names: list[str], of_the_paper: int, levels: list[str], what: str) -> Figure:
    """A row for each column of the table, the opponents that the paper lacks under a line, and a panel for each level.

    ``what`` is on the horizontal axis: "W2 squared", which is logarithmic, or its logarithm.
    """
    size = (10, 0.3 * len(names) + 1.5)
    figure, axes = plt.subplots(1, len(levels), figsize=size, sharey=True, layout="constrained")
    for panel, label in zip(axes, levels, strict=True):
        here = cells[cells["data"] == label].set_index("column").reindex(names)
        rows = range(len(names))
        panel.hlines(rows, *_ends(here), color="0.85", lw=3, zorder=0)
        panel.plot(here["printed"], rows, "o", mfc="none", mew=1.3, ms=9, color=PRINTED, label="printed")
        panel.errorbar(
            here["ours"], rows, xerr=here["error"], fmt="o", ms=4.5, color=OURS, label="ours ± standard error"
        )
        panel.axhline(of_the_paper - 0.5, color="0.6", lw=0.8, ls=":")
        panel.set_title(label, fontsize=10)
        panel.set_xlabel(what)
        if what == "W2 squared":
            panel.set_xscale("log")
            few_decades(panel.xaxis)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].set_ylim(len(names) - 0.4, -0.6)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _ends(here: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """From our number to the printed one, nowhere if either is missing."""
    both = here[["ours", "printed"]].where(here[["ours", "printed"]].notna().all(axis=1))
    return both.min(axis=1), both.max(axis=1)


def draw_sizes(cells: pd.DataFrame, names: list[str], levels: list[str], what: str) -> Figure:
    """A curve against the number of points for each column, rings for the printed numbers; a panel for each level."""
    figure, axes = plt.subplots(1, len(levels), figsize=(10, 3.6), layout="constrained")
    for panel, label in zip(axes, levels, strict=True):
        for i, name in enumerate(names):
            here = cells[(cells["data"] == label) & (cells["column"] == name)].sort_values("n")
            panel.errorbar(here["n"], here["ours"], yerr=here["error"], fmt="o-", ms=4, color=f"C{i}", label=name)
            panel.plot(here["n"], here["printed"], "o", mfc="none", mew=1.3, ms=9, color=f"C{i}")
        panel.set_title(label, fontsize=10)
        panel.set(xlabel="number of points", xscale="log")
        ticks_at(panel, cells["n"].dropna())
        if what == "W2 squared":
            panel.set_yscale("log")
            few_decades(panel.yaxis)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(what)
    axes[0].plot([], [], "o", mfc="none", mew=1.3, ms=9, color=PRINTED, label="printed")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return figure
