"""The ranks of limiting covariances for random matrices: the work behind Figures 3 and 8."""

from __future__ import annotations

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from measureflow.attention import Field
from measureflow.flows import Dopri5
from measureflow.reproduce.castin2025.fates import follow

DIMENSIONS = (3, 4, 5)
RUNS = {"tiny": 12, "small": 60, "paper": 1000}  # for each dimension and kind of V
VALUES = {"identity": "V = I", "random": "V random", "positive": "V = GᵀG random"}
TIME = {"tiny": 1e2, "small": 1e3, "paper": 1e4}  # for random V, where fast and slow directions make long flows dear
LONG = 2e3  # for V = I, where the rank is known
METHOD = Dopri5(rtol=1e-8, atol=1e-12, limit=1e4)
LASTS = 0.7  # an eigenvalue that vanishes falls like 1/t, to a third over the last interval; one that lasts does not
LEFT = ["finite time", "infinite time"]


def draw_matrices(d: int, runs: int, value: str, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Q (B, d // 2, d), V and the initial covariance (B, d, d), all from Gaussian entries; K is -Q."""
    Q, G, X = (torch.randn(runs, rows, d, generator=generator, dtype=torch.float64) for rows in (d // 2, d, d))
    V = {"identity": torch.eye(d, dtype=torch.float64).expand(runs, d, d), "random": G, "positive": G.mT @ G}
    return Q / d**0.25, V[value], X @ X.mT


def compute(attention: Callable[[Tensor, Tensor], Field], size: str, seed: int) -> dict[str, pd.DataFrame]:
    """One row a run: dimension, kind of V, how it ended, its rank, and its eigenvalues; no run is left out."""
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for value in VALUES:
        for d in DIMENSIONS:
            Q, V, S0 = draw_matrices(d, RUNS[size], value, generator)
            time = LONG if value == "identity" else TIME[size]
            fates = follow(attention(Q, V), S0, 14, drawn=False, time=time, still=0.0, method=METHOD)
            before, values = torch.linalg.eigvalsh(fates.covariances[-2:])
            rank = ((values > LASTS * before) & (values > 1e-6 * values[:, -1:])).sum(-1)
            head = {
                "value": value,
                "d": d,
                "time": time,
                "run": np.arange(len(S0)),
                "ending": fates.ending,
                "rank": rank.numpy(),
            }
            spectrum = {f"eigenvalue{i}": values[:, i].numpy() if i < d else np.nan for i in range(max(DIMENSIONS))}
            parts.append(pd.DataFrame(head | spectrum))
    return {"runs": pd.concat(parts, ignore_index=True)}


def counts(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """For each dimension and V: runs, limits, and how many of these have a rank at most d // 2 or d - d // 2."""
    rows = []
    for (value, d), part in tables["runs"].groupby(["value", "d"], sort=False):
        stays = part[~part.ending.isin(LEFT)]
        rows.append({
            "value": value, "d": d, "runs": len(part), "limits": len(stays), "time": part["time"].iloc[0],
            "blow_up": int((part.ending == "finite time").sum()),
            "diverge": int((part.ending == "infinite time").sum()),
            "floor": int((stays["rank"] <= d // 2).sum()), "ceiling": int((stays["rank"] <= d - d // 2).sum()),
        })  # fmt: skip
    return pd.DataFrame(rows)


def render(tables: dict[str, pd.DataFrame]) -> Figure:
    """Histograms of the rank, with a bar for the runs that have none."""
    figure, grid = plt.subplots(len(VALUES), len(DIMENSIONS), figsize=(10, 7.2), sharey=True)
    for row, (value, label) in zip(grid, VALUES.items(), strict=True):
        for axes, d in zip(row, DIMENSIONS, strict=True):
            runs = tables["runs"]
            _draw_histogram(axes, runs[(runs["value"] == value) & (runs["d"] == d)], d)
        row[0].set_ylabel(f"{label}\nshare of runs")
    for axes, d in zip(grid[0], DIMENSIONS, strict=True):
        axes.set_title(f"d = {d}: A of rank {d // 2}, kernel of dimension {d - d // 2}", fontsize=10)
    for axes in grid[-1]:
        axes.set_xlabel("rank of the limit")
    figure.tight_layout()
    return figure


def _draw_histogram(axes, part: pd.DataFrame, d: int) -> None:
    left = part.ending.isin(LEFT)
    shares = [((part["rank"] == r) & ~left).mean() for r in range(d + 1)] + [left.mean()]
    colours = ["#2f7fb8" if r <= d // 2 else "#d98032" for r in range(d + 1)] + ["#5b2a86"]
    bars = axes.bar(range(d + 2), shares, color=colours, width=0.8)
    axes.bar_label(bars, [f"{share:.0%}" if share else "" for share in shares], fontsize=8)
    axes.axvline(d // 2 + 0.5, color="0.4", linestyle=":", linewidth=1)
    axes.set_xticks(range(d + 2), [*map(str, range(d + 1)), "leaves"])
    axes.set_ylim(0, 1.12)
    axes.spines[["top", "right"]].set_visible(False)


def findings(tables: dict[str, pd.DataFrame], name: str) -> str:
    """Counts for every dimension and kind of V."""
    rows = [
        f"{VALUES[row.value]}, d = {row.d}: of {row.runs} runs {row.limits} have not left by time {row.time:g}, "
        f"{row.floor} of rank at most {row.d // 2} and {row.ceiling} of rank at most {row.d - row.d // 2}; "
        f"{row.blow_up} blow up and {row.diverge} diverge"
        for row in counts(tables).itertuples()
    ]
    odd = tables["runs"][(tables["runs"]["value"] == "identity") & (tables["runs"]["d"] % 2 == 1)]
    fails = int((odd["rank"] > odd["d"] // 2).sum())
    return (
        f"The paper: for {name} attention the limiting rank is at most floor(d/2). Found, with no run left out: "
        + "; ".join(rows)
        + ". With V = I Proposition 4.4 gives the rank exactly: the dimension of the kernel of A, d - floor(d/2). For "
        f"odd d that is one more than the paper's bound, which fails in {fails} of {len(odd)} such runs. (The "
        "published script keeps runs up to ceil(d/2), with eigenvalues below 0.1 counted as zero, and drops the "
        "others; its random V is positive, the third row. A rank counted here for random V is that at the "
        "time named: a direction that has not begun to vanish by then counts.)"
    )
