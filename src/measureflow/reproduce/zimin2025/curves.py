"""Figures 4, 7, 9, 10 and 11: W2 squared against the SNR, one curve for each contestant."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from measureflow.reproduce.verdicts import Verdict, judged, unsettled
from measureflow.reproduce.zimin2025.contestants import ESTIMATED, STRONG, Classical, Learned, budget_of
from measureflow.reproduce.zimin2025.measurements import (
    CLEAR,
    LEVELS,
    POINTS,
    measure,
    shared,
    summary,
)
from measureflow.reproduce.zimin2025.tables import DEPTHS, LAYERS, REGIMES, ROUNDED, printed

GRID = {"tiny": (5.0, 15.0), "small": (3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0), "paper": tuple(np.arange(3.0, 15.5, 1.0))}
SETS_BY_LEVEL = {"tiny": 2, "small": 10, "paper": 125}  # many levels, so fewer sets at each than in the tables


@dataclass(frozen=True)
class Curves:
    """One figure: the contestants whose curves it shows, and the table that prints them at three levels."""

    name: str
    what: str
    columns: tuple[Classical | Learned, ...]
    table: str

    @property
    def TITLE(self) -> str:
        """What it is, in one line."""
        return f"Zimin 2025, Figure {self.name.removeprefix('fig')}: {self.what}"

    @property
    def everyone(self) -> tuple[Classical | Learned, ...]:
        """The paper's curves, two strong opponents, and the model that must estimate its SNR."""
        return (*self.columns, *STRONG[:2], ESTIMATED)

    @property
    def WEIGHTS(self) -> tuple[str, ...]:
        """The models whose scores the figure shows."""
        return tuple(sorted({c.weights for c in self.everyone if c.weights is not None}))

    def budget(self, size: str) -> str:
        """Levels and sets."""
        levels = f"{len(GRID[size])} levels of the SNR of the paper's 13"
        return f"{levels}, {SETS_BY_LEVEL[size]} sets of {POINTS[size]} points at each; the paper does not say"

    def compute(self, size: str, cache: Path) -> dict[str, pd.DataFrame]:
        """Mean W2 squared with its standard error at each SNR, and how far each model lies from the paper's k-means."""
        levels = {f"{snr:g} dB": float(snr) for snr in GRID[size]}
        scores = measure(self.everyone, levels, (POINTS[size],), SETS_BY_LEVEL[size], shared(cache))
        curves = summary(scores, ["column", "snr_db"])
        trained = {c.name: budget_of(c) for c in self.everyone}
        curves = curves.assign(trained=curves["column"].map(trained))
        return {"curves": curves, "gaps": paired_gaps(scores, [c.name for c in self.columns])}

    def render(self, tables: dict[str, pd.DataFrame]) -> dict:
        """Curves with bands of one standard error; those that the paper does not have are dashed."""
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(8.5, 4), layout="constrained")
        curves, of_the_paper = tables["curves"], {c.name for c in self.columns}
        for name in self._in_order(curves["column"]):
            curve = curves[curves["column"] == name].sort_values("snr_db")
            low, high = (curve["w2"] + sign * curve["w2_error"] for sign in (-1, 1))
            axes.plot(curve["snr_db"], curve["w2"], marker=".", ls="-" if name in of_the_paper else "--", label=name)
            axes.fill_between(curve["snr_db"], low, high, alpha=0.12, lw=0)
        axes.set(xlabel="SNR (dB)", ylabel="W2 squared", yscale="log", xticks=sorted(curves["snr_db"].unique()))
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9)
        return {self.name: figure}

    def _in_order(self, columns: pd.Series) -> list[str]:
        """Those of the contestants that have curves, the paper's first."""
        return [c.name for c in self.everyone if c.name in set(columns)]

    def tabulate(self, tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """W2 squared with its standard error, a row for each contestant."""
        curves = tables["curves"]
        text = curves.assign(cell=[f"{row.w2:.4f} ± {row.w2_error:.4f}" for row in curves.itertuples()])
        text["at"] = text["snr_db"].map("{:g} dB".format)
        wide = text.pivot(index="column", columns="at", values="cell")
        order = list(dict.fromkeys(text.sort_values("snr_db")["at"]))
        trained = curves.groupby("column")["trained"].first()
        wide = wide[order].assign(**{"trained on": trained}).reindex(self._in_order(curves["column"]))
        return {"curves": wide.reset_index()}

    def verdicts(self, tables: dict[str, pd.DataFrame]) -> list[Verdict]:
        """On which side of the paper's k-means each model lies, against the sides that the table prints."""
        numbers = printed(self.table).pivot(index="data", columns="column", values="printed").rename(index=LEVELS)
        base, said = self.columns[0].name, []
        for column in self.columns[1:]:
            claim = f"{column.name} and {base}: which is better at which SNR"
            expected = np.sign(numbers[column.name] - numbers[base])
            mine = tables["gaps"][tables["gaps"]["column"] == column.name].set_index("snr_db")
            if len(mine):
                sides = np.sign(mine["gap"]).where(mine["gap"].abs() > CLEAR * mine["error"], 0.0)
                said.append(judged_sides(claim, expected, sides))
            else:
                said.append(unsettled(claim, in_words(expected), "its weights do not ship"))
        return said

    def findings(self, tables: dict[str, pd.DataFrame]) -> str:
        """Who is least at each end of the range."""
        curves = tables["curves"]
        ends = (curves["snr_db"].min(), curves["snr_db"].max())
        words = []
        for snr in ends:
            best = curves[curves["snr_db"] == snr].sort_values("w2").iloc[0]
            words.append(f"At {snr:g} dB the least error is {best['w2']:.4f}, that of {best['column']}.")
        missing = [c.name for c in self.columns if not c.available]
        return " ".join(words + ([f"No weights ship yet for: {', '.join(missing)}."] if missing else []))


def paired_gaps(scores: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """W2 squared of each column minus that of the first on the same sets, for each SNR: the mean and its error."""
    wide = scores.pivot(index=["snr_db", "set"], columns="column", values="w2")
    gaps = wide[[name for name in names[1:] if name in wide]].sub(wide[names[0]], axis=0)
    long = (
        gaps.melt(ignore_index=False, value_name="gap").reset_index().groupby(["column", "snr_db"], sort=False)["gap"]
    )
    return long.agg(gap="mean", error="sem").reset_index()


def judged_sides(claim: str, expected: pd.Series, sides: pd.Series) -> Verdict:
    """Signs by SNR, -1 for below: as printed, and as found, 0 where two standard errors do not tell.

    Where the print is on one side throughout, so must all levels be; else those that it has. Open if none tells.
    """
    if expected.nunique() == 1:
        expected_here = pd.Series(expected.iloc[0], index=sides.index)
    else:
        expected_here = expected.reindex(sides.index).dropna()
    agree = expected_here * sides[expected_here.index]
    if not agree.any():
        return unsettled(claim, in_words(expected), in_words(sides))
    return judged(claim, in_words(expected), in_words(sides), bool((agree >= 0).all()))


def in_words(sides: pd.Series) -> str:
    """Signs by SNR in words: where the model lies below, above, or too close to tell."""
    parts = []
    for sign, word in ((-1, "below"), (1, "above"), (0, "too close to tell")):
        levels = sorted(sides.index[sides == sign])
        if levels:
            parts.append(f"{word} at {', '.join(f'{level:g}' for level in levels)} dB")
    return "; ".join(parts)


BY_NAME = {
    curves.name: curves
    for curves in [
        Curves("fig4", "average performance against the SNR", DEPTHS[:2], "table2"),
        Curves("fig7", "depth, and no flow", DEPTHS, "table2"),
        Curves("fig9", "flow-speed regimes", REGIMES, "table4"),
        Curves("fig10", "shared and distinct layers", LAYERS, "table6"),
        Curves("fig11", "k-means on the outputs", ROUNDED, "table8"),
    ]
}
