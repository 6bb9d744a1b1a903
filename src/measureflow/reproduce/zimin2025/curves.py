"""Figures 4, 7, 9, 10 and 11: W2 squared against the SNR, one curve for each contestant."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from measureflow.reproduce.verdicts import Verdict, judged, unsettled
from measureflow.reproduce.zimin2025.contestants import ESTIMATED, STRONG, Classical, Learned, budget_of
from measureflow.reproduce.zimin2025.measurements import POINTS, SETS, SLOW_SETS, measure, shared, summary
from measureflow.reproduce.zimin2025.tables import DEPTHS, LAYERS, REGIMES, ROUNDED

GRID = {"tiny": (5.0, 15.0), "small": (3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0), "paper": tuple(np.arange(3.0, 15.5, 1.0))}


@dataclass(frozen=True)
class Curves:
    """One figure: the contestants whose curves it shows."""

    name: str
    what: str
    columns: tuple[Classical | Learned, ...]

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
        sets = max(2, SETS[size] // 4)
        slow = f"{min(sets, SLOW_SETS[size] // 2)} where it estimates the SNR"
        return f"{len(GRID[size])} levels of the SNR of the paper's 13, {sets} sets of {POINTS[size]} points, {slow}"

    def compute(self, size: str, cache: Path) -> dict[str, pd.DataFrame]:
        """Mean W2 squared with its standard error at each SNR."""
        levels = {f"{snr:g} dB": float(snr) for snr in GRID[size]}
        sets = max(2, SETS[size] // 4)  # many levels, so fewer sets at each
        scores = measure(self.everyone, levels, (POINTS[size],), sets, shared(cache), SLOW_SETS[size] // 2)
        curves = summary(scores, ["column", "snr_db"])
        trained = {c.name: budget_of(c) for c in self.everyone}
        return {"curves": curves.assign(trained=curves["column"].map(trained))}

    def render(self, tables: dict[str, pd.DataFrame]) -> dict:
        """Curves with bands of one standard error."""
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(6, 4))
        for name, curve in tables["curves"].groupby("column", sort=False):
            axes.plot(curve["snr_db"], curve["w2"], marker=".", label=name)
            axes.fill_between(
                curve["snr_db"], curve["w2"] - curve["w2_error"], curve["w2"] + curve["w2_error"], alpha=0.15
            )
        axes.set(xlabel="SNR (dB)", ylabel="W2 squared", yscale="log")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=7)
        return {self.name: figure}

    def tabulate(self, tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
        """W2 squared with its standard error, a row for each contestant."""
        curves = tables["curves"]
        text = curves.assign(cell=[f"{row.w2:.4f} ± {row.w2_error:.4f}" for row in curves.itertuples()])
        text["at"] = text["snr_db"].map("{:g} dB".format)
        wide = text.pivot(index="column", columns="at", values="cell")
        order = list(dict.fromkeys(text.sort_values("snr_db")["at"]))
        trained = curves.groupby("column")["trained"].first()
        return {"curves": wide[order].assign(**{"trained on": trained}).reset_index()}

    def verdicts(self, tables: dict[str, pd.DataFrame]) -> list[Verdict]:
        """Every learned curve lies below the paper's k-means at every level; missing ones are open."""
        mean = tables["curves"].pivot(index="snr_db", columns="column", values="w2")
        said = []
        for column in self.columns[1:]:
            claim = f"{column.name} lies below {self.columns[0].name}"
            if column.name not in mean:
                said.append(unsettled(claim, "at every SNR", "its weights do not ship"))
                continue
            below = mean[column.name] < mean[self.columns[0].name]
            said.append(judged(claim, "at every SNR", f"at {below.sum()} of {len(below)} levels", bool(below.all())))
        return said

    def findings(self, tables: dict[str, pd.DataFrame]) -> str:
        """Who is least at each end of the range."""
        curves = tables["curves"]
        ends = (curves["snr_db"].min(), curves["snr_db"].max())
        words = []
        for snr in ends:
            best = curves[curves["snr_db"] == snr].sort_values("w2").iloc[0]
            words.append(f"At {snr:g} dB the least is {best['column']} with {best['w2']:.4f}.")
        missing = [c.name for c in self.columns if not c.available]
        return " ".join(words + ([f"No weights ship yet for: {', '.join(missing)}."] if missing else []))


BY_NAME = {
    curves.name: curves
    for curves in [
        Curves("fig4", "average performance against the SNR", DEPTHS[:2]),
        Curves("fig7", "depth, and no flow", DEPTHS),
        Curves("fig9", "flow-speed regimes", REGIMES),
        Curves("fig10", "shared and distinct layers", LAYERS),
        Curves("fig11", "k-means on the outputs", ROUNDED),
    ]
}
