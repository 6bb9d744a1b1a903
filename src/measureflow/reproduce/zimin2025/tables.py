"""Tables 1 to 11: ours beside the printed number in each cell, and opponents stronger than the paper's."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from measureflow.reproduce.axes import few_decades, ticks_at
from measureflow.reproduce.verdicts import Verdict, judged
from measureflow.reproduce.zimin2025 import orderings
from measureflow.reproduce.zimin2025.contestants import (
    BASE,
    ESTIMATED,
    PAPER_KMEANS,
    STRONG,
    Classical,
    Learned,
    budget_of,
)
from measureflow.reproduce.zimin2025.measurements import LEVELS, POINTS, SETS, SLOW_SETS, measure, shared, summary

REGIMES = (
    PAPER_KMEANS,
    Learned("Uniform -> Uniform", BASE),
    Learned("Uniform -> Unit", BASE, "unit"),
    Learned("Unit -> Uniform", f"{BASE}-unit", "uniform"),
    Learned("Unit -> Unit", f"{BASE}-unit"),
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
SETS_BY_POINTS = {"tiny": 2, "small": 20, "paper": 500}
OURS, PRINTED = "#1f6feb", "0.35"  # colours


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
        """The paper's columns, the strong opponents, and the model that must estimate its SNR, unless n varies."""
        return (*self.columns, *(c for c in (*STRONG, ESTIMATED) if not (self.all_sizes and c.slow)))

    @property
    def WEIGHTS(self) -> tuple[str, ...]:
        """The models whose scores the table shows."""
        return tuple(sorted({c.weights for c in self.everyone if c.weights is not None}))

    def sizes(self, size: str) -> tuple[int, ...]:
        """How many points the sets have."""
        return ((30, 60) if size == "tiny" else (100, 500, 1000, 2000)) if self.all_sizes else (POINTS[size],)

    def sets(self, size: str) -> int:
        """How many sets a cell has: fewer where n varies, as 2000 points take four times as long as 1000."""
        return SETS_BY_POINTS[size] if self.all_sizes else SETS[size]

    def budget(self, size: str) -> str:
        """Test sets and points; what each model was trained on is in the table."""
        points = ", ".join(map(str, self.sizes(size)))
        slow = ", ".join(c.name for c in self.everyone if c.slow)
        fewer = f" ({SLOW_SETS[size]} for {slow})" if slow else ""
        return f"{self.sets(size)} test sets a cell{fewer} at n = {points}, the same for all; the paper does not say"

    def compute(self, size: str, cache: Path) -> dict[str, pd.DataFrame]:
        """The score of every set, and the printed number, ours and the gap for every column."""
        scores = measure(self.everyone, LEVELS, self.sizes(size), self.sets(size), shared(cache), SLOW_SETS[size])
        ours = summary(scores, ["column", "data", "n"])
        numbers, on = printed(self.name), ["data", "column"]
        if self.all_sizes:
            parts = numbers["column"].str.split(", n=", expand=True)
            numbers = numbers.assign(column=parts[0], n=parts[1].astype(int))
            numbers, on = numbers[numbers["n"].isin(self.sizes(size))], [*on, "n"]
        table = ours.merge(numbers, on=on, how="outer")
        table["ours"] = table["log_w2"] if self.logarithm else table["w2"]
        table["error"] = table["log_w2_error"] if self.logarithm else table["w2_error"]
        table["gap"] = table["ours"] - table["printed"]
        trained = {c.name: budget_of(c) for c in self.everyone}
        table["trained on"] = table["column"].map(trained)
        cells = table[["data", "column", "n", "sets", "ours", "error", "printed", "gap", "trained on"]]
        return {"cells": cells, "scores": scores.assign(w2=scores["w2"].map("{:.6g}".format).astype(float))}

    def tabulate(self, tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """A row for each column of the paper's table and each opponent: ours with its error, and the printed number."""
        cells = in_order(tables["cells"])
        at = cells["data"] + cells["n"].map(lambda n: f", n = {n:.0f}" if self.all_sizes and n == n else "")
        text = cells.assign(at=at, cell=[_cell(row) for row in cells.itertuples()])
        wide = text.pivot(index="column", columns="at", values="cell").reindex([c.name for c in self.everyone])
        trained = cells.groupby("column")["trained on"].first()
        return {"cells": wide[list(at.unique())].assign(**{"trained on": trained}).reset_index()}

    def render(self, tables: dict[str, pd.DataFrame]) -> dict:
        """Ours and the printed numbers, a panel for each level: by column, or against the number of points."""
        names, what = [c.name for c in self.everyone], "log W2 squared" if self.logarithm else "W2 squared"
        if self.all_sizes:
            return {self.name: draw_sizes(tables["cells"], names, list(LEVELS), what)}
        return {self.name: draw_columns(tables["cells"], names, len(self.columns), list(LEVELS), what)}

    def verdicts(self, tables: dict[str, pd.DataFrame]) -> list[Verdict]:
        """The printed numbers of k-means and of our base model, and the orderings of the columns with paired errors."""
        cells, said = tables["cells"], []
        weak = PAPER_KMEANS.name
        for column, words in ((weak, "K-means, the paper's opponent"), (self._base, "the 16-layer model")):
            mine = in_order(cells[cells["column"] == column].dropna(subset=["ours", "printed"]))
            if column is not None and len(mine):
                off = (mine["ours"] - mine["printed"]) / mine["error"]
                meets = off.abs() <= 3 if column == weak else off <= 2
                found = ", ".join(f"{row.ours:.4f} ± {row.error:.4f}" for row in mine.itertuples())
                wanted = ", ".join(f"{value:.4f}" for value in mine["printed"])
                if self.all_sizes:
                    found, wanted = f"in {meets.sum()} of {len(mine)} cells", f"{len(mine)} cells"
                said.append(judged(f"{words} has the printed error", wanted, found, bool(meets.all())))
        if self.all_sizes:
            said.append(self._falls(cells))
        pairs = orderings.paired(tables["scores"], cells, self.columns, self.logarithm)
        return said + orderings.verdicts(pairs)

    def _falls(self, cells: pd.DataFrame) -> Verdict:
        """E.6: the losses decrease with the sample size."""
        mine = cells[cells["column"] == self._base].pivot(index="data", columns="n", values="ours")
        falls = mine.diff(axis=1).iloc[:, 1:].to_numpy() < 0
        claim = "the error of the 16-layer model falls with the number of points"
        return judged(claim, "falls", f"in {falls.sum()} of {falls.size} steps of n", bool(falls.all()))

    @property
    def _base(self) -> str | None:
        """The column of the shipped 16-layer model, run as it was trained."""
        names = [c.name for c in self.columns if isinstance(c, Learned) and c.weights == BASE and not c.then_kmeans]
        return names[0] if names else None

    def findings(self, tables: dict[str, pd.DataFrame]) -> str:
        """Who is best at each level, which of the paper's orderings hold, and what is missing."""
        cells = tables["cells"]
        missing = cells[cells["ours"].isna()]["column"].unique()
        lines, most = [], cells["n"].max()
        at = f" at n = {most:.0f}" if self.all_sizes else ""
        for label in LEVELS:
            here = cells[(cells["data"] == label) & (cells["n"] == most)].dropna(subset="ours").sort_values("ours")
            best = here[here["sets"] == here["sets"].max()].iloc[0]  # fewer sets are other sets
            sets = int(best["sets"])
            lines.append(f"{label}{at}: least is {best['column']} with {best['ours']:.4f} over {sets} sets.")
        lines.append(orderings.in_words(orderings.paired(tables["scores"], cells, self.columns, self.logarithm)))
        if len(missing):
            lines.append(f"No weights ship yet for: {', '.join(missing)}; their cells show the printed number alone.")
        return " ".join(lines)


def _cell(row) -> str:
    """Ours with its standard error, and the printed number in brackets; what is not there is left out."""
    ours = f"{row.ours:.4f} ± {row.error:.4f}" if row.ours == row.ours else ""
    return f"{ours} ({row.printed:.4f})".strip() if row.printed == row.printed else ours


def in_order(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells from the highest SNR to the lowest, and from few points to many."""
    return cells.assign(level=cells["data"].map(list(LEVELS).index)).sort_values(["level", "n"], kind="stable")


def _spaced(name: str) -> str:
    return f"Table {name.removeprefix('table')}"


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


BY_NAME = {
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
