"""Tables 1 to 11: the printed number, ours, and the gap in each cell, beside opponents stronger than the paper's."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

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

    def compute(self, size: str, cache: Path) -> dict[str, pd.DataFrame]:
        """Scores of all columns, the strong opponents and the model that must estimate its SNR."""
        columns = (*self.columns, *STRONG, ESTIMATED)
        sizes = ((30, 60) if size == "tiny" else (100, 500, 1000, 2000)) if self.all_sizes else (POINTS[size],)
        shared = cache.parents[2] / "scores" / size  # the tables share most columns
        shared.mkdir(parents=True, exist_ok=True)
        ours = summary(measure(columns, LEVELS, sizes, SETS[size], shared), ["column", "data", "n"])
        if self.all_sizes:
            ours["column"] = ours["column"] + ", n=" + ours["n"].astype(str)
        table = ours.merge(_printed(self.name), on=["data", "column"], how="outer")
        table["ours"] = table["log_w2"] if self.logarithm else table["w2"]
        table["gap"] = table["ours"] - table["printed"]
        return {"cells": table[["data", "column", "n", "sets", "ours", "w2_error", "printed", "gap"]]}

    def render(self, tables: dict[str, pd.DataFrame]) -> dict:
        """The table as a picture: printed above ours in each cell."""
        import matplotlib.pyplot as plt

        cells = tables["cells"]
        columns = list(dict.fromkeys(cells["column"]))
        text = [[_cell(cells, label, column) for column in columns] for label in LEVELS]
        figure, axes = plt.subplots(figsize=(1.25 * len(columns) + 1.5, 2.2))
        axes.axis("off")
        drawn = axes.table(
            text, rowLabels=list(LEVELS), colLabels=[_wrapped(c) for c in columns], loc="center", cellLoc="center"
        )
        drawn.auto_set_font_size(False)
        drawn.set_fontsize(7)
        drawn.scale(1, 2.2)
        axes.set_title(f"{self.TITLE}\nprinted / ours", fontsize=9)
        return {self.name: figure}

    def findings(self, tables: dict[str, pd.DataFrame]) -> str:
        """What was compared, what is missing, and who is best at each level."""
        cells = tables["cells"]
        missing = cells[cells["ours"].isna()]["column"].unique()
        lines = []
        for label in LEVELS:
            here = cells[(cells["data"] == label) & cells["ours"].notna()].sort_values("ours")
            best = here.iloc[0]
            lines.append(f"{label}: least is {best['column']} with {best['ours']:.4f} over {int(best['sets'])} sets.")
        if len(missing):
            lines.append(f"No weights ship yet for: {', '.join(missing)}; their cells show the printed number alone.")
        return " ".join(lines)


def _spaced(name: str) -> str:
    return f"Table {name.removeprefix('table')}"


def _wrapped(text: str) -> str:
    return text.replace(" ", "\n", 1) if len(text) > 12 else text


def _cell(cells: pd.DataFrame, label: str, column: str) -> str:
    row = cells[(cells["data"] == label) & (cells["column"] == column)]
    if row.empty:
        return ""
    shown = [f"{v:.4f}" if pd.notna(v) else "-" for v in (row["printed"].iloc[0], row["ours"].iloc[0])]
    return "\n".join(shown)


def _printed(name: str) -> pd.DataFrame:
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
