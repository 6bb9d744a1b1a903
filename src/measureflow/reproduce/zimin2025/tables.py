"""Tables 1 to 11: the printed number, ours, and the gap in each cell, beside opponents stronger than the paper's."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from textwrap import fill

import pandas as pd

from measureflow.reproduce.zimin2025.contestants import BASE, ESTIMATED, PAPER_KMEANS, STRONG, Classical, Learned
from measureflow.reproduce.zimin2025.measurements import LEVELS, POINTS, SETS, measure, summary

REGIMES = (
    PAPER_KMEANS,
    Learned("Uniform -> Uniform", BASE, "uniform"),
    Learned("Uniform -> Unit", BASE, "unit"),
    Learned("Unit -> Uniform", f"{BASE}-unit", "uniform"),
    Learned("Unit -> Unit", f"{BASE}-unit", "unit"),
)
DEPTHS = (
    PAPER_KMEANS,
    Learned("16 layers", BASE),
    Learned("32 layers", f"{BASE}-32"),
    Learned("64 layers", f"{BASE}-64"),
    Learned("No flow", f"{BASE}-no-flow"),
)
LAYERS = (
    PAPER_KMEANS,
    Learned("Identical 16 layers", BASE),
    Learned("16 layers (Unit)", f"{BASE}-unit"),
    Learned("Distinct 16 layers", f"{BASE}-distinct"),
)
ROUNDED = (PAPER_KMEANS, *(Learned(f"K-means ({c.name})", c.weights, then_kmeans=True) for c in DEPTHS[1:]))


@dataclass(frozen=True)
class Table:
    """One printed table: its columns, and whether it prints W2 squared or its logarithm."""

    name: str
    what: str
    columns: tuple[Classical | Learned, ...]
    logarithm: bool
    all_sizes: bool = False  # Tables 10 and 11 vary the number of points

    @property
    def TITLE(self) -> str:
        """What it is, in one line."""
        return f"Zimin 2025, {_spaced(self.name)}: {self.what}"

    @property
    def everyone(self) -> tuple[Classical | Learned, ...]:
        """The paper's columns, the strong opponents, and the model that must estimate its SNR."""
        return (*self.columns, *STRONG, ESTIMATED)

    def compute(self, size: str, cache: Path) -> dict[str, pd.DataFrame]:
        """The printed number, ours and the gap for every column."""
        sizes = ((30, 60) if size == "tiny" else (100, 500, 1000, 2000)) if self.all_sizes else (POINTS[size],)
        shared = cache.parents[2] / "scores" / size  # the tables share most columns
        shared.mkdir(parents=True, exist_ok=True)
        ours = summary(measure(self.everyone, LEVELS, sizes, SETS[size], shared), ["column", "data", "n"])
        numbers, on = printed(self.name), ["data", "column"]
        if self.all_sizes:
            parts = numbers["column"].str.split(", n=", expand=True)
            numbers = numbers.assign(column=parts[0], n=parts[1].astype(int))
            numbers, on = numbers[numbers["n"].isin(sizes)], [*on, "n"]
        table = ours.merge(numbers, on=on, how="outer")
        table["ours"] = table["log_w2"] if self.logarithm else table["w2"]
        table["error"] = table["log_w2_error"] if self.logarithm else table["w2_error"]
        table["gap"] = table["ours"] - table["printed"]
        return {"cells": table[["data", "column", "n", "sets", "ours", "error", "printed", "gap"]]}

    def render(self, tables: dict[str, pd.DataFrame]) -> dict:
        """The table as a picture: in each cell ours with its standard error, the printed number and the gap."""
        import matplotlib.pyplot as plt

        cells = tables["cells"]
        columns = [c.name for c in self.everyone]
        sizes = sorted(cells["n"].dropna().unique()) if self.all_sizes else [None]
        rows = [(label, n) for label in LEVELS for n in sizes]
        figure, axes = plt.subplots(figsize=(1.15 * len(columns) + 1.6, 0.62 * len(rows) + 1.2), layout="constrained")
        axes.set(xlim=(-1.2, len(columns) - 0.4), ylim=(len(rows) - 0.4, -1.3))
        axes.axis("off")
        axes.set_title(f"{self.TITLE}\nours, standard error; below: printed (gap)", fontsize=9)
        for j, name in enumerate(columns):
            axes.text(j, -0.9, fill(name, 12), ha="center", va="center", fontsize=8)
        axes.axhline(-0.45, color="black", linewidth=0.8)
        for i, (label, n) in enumerate(rows):
            here = cells[(cells["data"] == label) & ((cells["n"] == n) | (n is None))].set_index("column")
            axes.text(-1.2, i, label if n is None else f"{label}\nn = {n:.0f}", va="center", fontsize=8)
            for j, name in enumerate(columns):
                if name in here.index:
                    _draw_cell(axes, j, i, here.loc[name], here["ours"].min())
        return {self.name: figure}

    def findings(self, tables: dict[str, pd.DataFrame]) -> str:
        """Who is best at each level, which of the paper's orderings hold, and what is missing."""
        cells = tables["cells"]
        missing = cells[cells["ours"].isna()]["column"].unique()
        lines = []
        for label in LEVELS:
            here = cells[(cells["data"] == label) & cells["ours"].notna()].sort_values("ours")
            best = here.iloc[0]
            lines.append(f"{label}: least is {best['column']} with {best['ours']:.4f} over {int(best['sets'])} sets.")
        lines.append(_orderings(cells))
        if len(missing):
            lines.append(f"No weights ship yet for: {', '.join(missing)}; their cells show the printed number alone.")
        return " ".join(lines)


def _orderings(cells: pd.DataFrame) -> str:
    """How many pairs of columns come in the order the paper prints them, and which do not."""
    both = cells.dropna(subset=["ours", "printed"])
    held, failed = 0, []
    for (label, _), here in both.groupby(["data", "n"], sort=False):
        for (_, a), (_, b) in combinations(here.sort_values("printed").iterrows(), 2):
            if a["printed"] == b["printed"]:
                continue
            if a["ours"] < b["ours"]:
                held += 1
            else:
                failed.append(f"{a['column']} below {b['column']} ({label})")
    words = f"Of the {held + len(failed)} orderings of two columns that the paper prints, {held} hold"
    return f"{words}; not: {', '.join(failed)}." if failed else f"{words}."


def _spaced(name: str) -> str:
    return f"Table {name.removeprefix('table')}"


def _draw_cell(axes, x: int, y: int, cell: pd.Series, least: float) -> None:
    """Ours in blue where it is the least of its row; what is not there is left out."""
    if pd.notna(cell["ours"]):
        best = cell["ours"] == least
        text = f"{cell['ours']:.4f} \u00b1 {cell['error']:.4f}"
        axes.text(x, y - 0.13, text, ha="center", va="center", fontsize=7.5, color="#1f6feb" if best else "black")
    if pd.notna(cell["printed"]):
        gap = f" ({cell['gap']:+.4f})" if pd.notna(cell["gap"]) else ""
        axes.text(x, y + 0.2, f"{cell['printed']:.4f}{gap}", ha="center", va="center", fontsize=6.5, color="0.45")


def printed(name: str) -> pd.DataFrame:
    """The numbers of a table as the paper prints them."""
    with (files("measureflow.reproduce") / "published" / "zimin2025.csv").open() as file:
        table = pd.read_csv(file)
    return table[table["table"] == name][["data", "column", "value"]].rename(columns={"value": "printed"})


def _both(number: int, what: str, columns, **kwargs) -> list[Table]:
    return [
        Table(f"table{number}", f"{what}, W2 squared", columns, logarithm=False, **kwargs),
        Table(f"table{number + 1}", f"{what}, log W2 squared", columns, logarithm=True, **kwargs),
    ]


TABLES_BY_NAME = {
    table.name: table
    for table in [
        Table("table1", "flow-speed regimes, training -> evaluation, W2 squared", REGIMES, logarithm=False),
        *_both(2, "depth", DEPTHS),
        *_both(4, "flow-speed regimes, training -> evaluation", REGIMES),
        *_both(6, "shared and distinct layers", LAYERS),
        *_both(8, "k-means on the outputs", ROUNDED),
        *_both(10, "number of points", (Learned("16 layers", BASE), PAPER_KMEANS), all_sizes=True),
    ]
}
