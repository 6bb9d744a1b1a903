"""Easy-to-hard generalisation, which the paper leaves to future work: sets below every SNR of the training.

The model is told an SNR and flows for the time F(SNR); what it is told changes nothing else. So to tell it less than
the truth is to let it flow for longer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import torch

from measureflow.measures import Empirical
from measureflow.measures.priors import Mixtures, paper_test_prior
from measureflow.models import load_pretrained
from measureflow.reproduce.progress import counted
from measureflow.reproduce.verdicts import Verdict, judged
from measureflow.reproduce.zimin2025.contestants import BASE, PAPER_KMEANS, STRONG, squared_errors
from measureflow.reproduce.zimin2025.measurements import CLEAR
from measureflow.training.config import seeded

TITLE = "Zimin 2025, the closing question: easy-to-hard generalisation below the trained SNRs"
LEAST = 3.0  # the lowest SNR in training
HARD = (1.0, -1.0, -3.0)
LEVELS = (7.0, 5.0, LEAST, *HARD)
TOLD = {"the truth": 0.0, "2 dB more": 2.0, "2 dB less": -2.0}
AT_LEAST = "at least 3 dB"
EM = STRONG[1]
RIVALS = (PAPER_KMEANS, EM)
MEAN = "the mean alone"
SETS = {"tiny": 2, "small": 40, "paper": 500}
POINTS = {"tiny": 60, "small": 500, "paper": 1000}
WEIGHTS = (BASE,)


def budget(size: str) -> str:
    """Levels, sets and points."""
    levels = ", ".join(f"{level:g}" for level in LEVELS)
    return f"{SETS[size]} sets of {POINTS[size]} points at {levels} dB, trained on 3 to 15 dB; the paper has no run"


@torch.no_grad()
def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """W2 squared of every set: the model told the truth, more or less, never less than 3 dB; and the opponents."""
    model: Any = load_pretrained(BASE)
    rows = []
    for level in counted(LEVELS, "levels"):
        sets = paper_test_prior(level).sample(SETS[size], POINTS[size], seeded("easy to hard", size, level))
        told = {name: level + shift for name, shift in TOLD.items()} | {AT_LEAST: max(level, LEAST)}
        flows = {snr: _errors(model(sets.points, torch.full((SETS[size],), snr)), sets) for snr in set(told.values())}
        for name, snr in told.items():
            rows += _rows(level, f"told {name}", flows[snr], float(model.speed(torch.tensor([snr]))))
        for rival in RIVALS:
            rows += _rows(level, rival.name, squared_errors(rival.answers(sets, seed=0), sets))
        rows += _rows(level, MEAN, _errors(sets.points.mean(1, keepdim=True), sets))
    return {"scores": pd.DataFrame(rows, columns=["snr_db", "contestant", "set", "w2", "flow"])}


def _errors(tokens: torch.Tensor, sets: Mixtures) -> list[float]:
    """W2 squared of tokens (B, m, d), 1/m each."""
    return squared_errors([Empirical(x) for x in tokens], sets)


def _rows(level: float, name: str, w2: list[float], flow: float = float("nan")) -> list[tuple]:
    return [(level, name, i, cost, flow) for i, cost in enumerate(w2)]


def by_set(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for each level and set, a column for each contestant."""
    return tables["scores"].pivot(index=["snr_db", "set"], columns="contestant", values="w2")


def tabulate(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Means with their standard errors, a row for each level; and how long the model told the truth flows."""
    groups = by_set(tables).groupby("snr_db", sort=False)
    mean, error = groups.mean(), groups.sem()
    names = list(tables["scores"]["contestant"].unique())
    cells = {n: [f"{m:.4f} ± {e:.4f}" for m, e in zip(mean[n], error[n], strict=True)] for n in names}
    flow = tables["scores"].query("contestant == 'told the truth'").groupby("snr_db")["flow"].first().round(2)
    table = pd.DataFrame(cells, index=mean.index).assign(**{"flow, told the truth": flow}).sort_index(ascending=False)
    return {"scores": table.reset_index().rename(columns={"snr_db": "SNR (dB)"})}


def _gap(tables: dict[str, pd.DataFrame], high: str, low: str, level: float) -> tuple[float, float]:
    """How far one contestant lies above another, over the sets of a level, and the error of it."""
    here = by_set(tables).loc[level]
    gap = here[high] - here[low]
    return gap.mean(), gap.sem()


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """Below the trained SNRs: whom it beats, and whether more flow than was ever trained helps."""
    said = []
    for high, claim in (
        (EM.name, "on sets harder than any of the training the model errs less than EM told K"),
        (MEAN, "on sets harder than any of the training it errs less than the mean alone"),
        (f"told {AT_LEAST}", "on harder sets a flow longer than any of the training helps"),
    ):
        gaps = {level: _gap(tables, high, "told the truth", level) for level in HARD}
        found = ", ".join(f"{gap:+.4f} ± {error:.4f} at {level:g} dB" for level, (gap, error) in gaps.items())
        holds = all(gap > CLEAR * error for gap, error in gaps.values())
        said.append(judged(claim, "left open", f"{found}, {high} minus ours", bool(holds)))
    return said


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """W2 squared against the SNR, the trained range shaded."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 3.8), layout="constrained")
    groups = tables["scores"].groupby(["contestant", "snr_db"])["w2"]
    mean, error = groups.mean(), groups.sem()
    for name in tables["scores"]["contestant"].unique():
        told = name.startswith("told")
        style = {"marker": "o" if told else "s", "ms": 4, "ls": "-" if told else "--", "lw": 1.4}
        axis.errorbar(
            mean[name].index, mean[name], yerr=error[name], label=f"16 layers, {name}" if told else name, **style
        )
    axis.axvspan(LEAST, max(LEVELS) + 0.5, color="0.5", alpha=0.12, lw=0, label="trained on")
    axis.set(xlabel="SNR (dB)", ylabel="W2 squared", yscale="log", xlim=(min(LEVELS) - 0.5, max(LEVELS) + 0.5))
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=8)
    return {"easy_to_hard": figure}


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What was asked, and the verdicts in words."""
    return (
        "The paper names easy-to-hard generalisation as a promising avenue and runs nothing. The model was trained on "
        "3 to 15 dB; at lower SNRs clusters overlap more than in any set it saw. It flows for F(SNR), so that to tell "
        "it less than the truth is to let it flow for longer. "
        + " ".join(f"{verdict.claim[0].upper()}{verdict.claim[1:]}: {verdict.ours}." for verdict in verdicts(tables))
    )
