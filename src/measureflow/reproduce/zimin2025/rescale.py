"""The factor that the printed output lacks: the shipped 16-layer model read out as printed, and with it.

C.3 scales the latent tokens to variance one before they are decoded, but the true centres have the variance
SNR / (1 + SNR) of the points. The factor is applied to a model that was trained without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import torch

from measureflow.measures import Empirical
from measureflow.measures.decibels import from_decibels
from measureflow.measures.priors import paper_test_prior
from measureflow.measures.transport import wasserstein2
from measureflow.models import load_pretrained
from measureflow.reproduce.progress import counted
from measureflow.reproduce.verdicts import Verdict, corrected
from measureflow.reproduce.zimin2025.contestants import BASE
from measureflow.reproduce.zimin2025.measurements import CLEAR, LEVELS, POINTS, SEED
from measureflow.training.config import seeded

TITLE = "Zimin 2025, C.3: the output as printed, and rescaled by the root of SNR / (1 + SNR)"
SETS = {"tiny": 2, "small": 20, "paper": 500}
WEIGHTS = (BASE,)


def budget(size: str) -> str:
    """Sets, and what is not trained."""
    return f"{SETS[size]} test sets a level at n = {POINTS[size]}; the factor is applied to a model trained without it"


@torch.no_grad()
def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Of every set: W2 squared as printed and rescaled, and the factor that would have been best at the first plan."""
    model: Any = load_pretrained(BASE)
    rows = []
    for label in counted(list(LEVELS), "levels"):
        snr = LEVELS[label]
        sets = paper_test_prior(snr).sample(SETS[size], POINTS[size], seeded(SEED, "rescale", snr, size))
        factor = float((from_decibels(torch.tensor(snr)) / (1 + from_decibels(torch.tensor(snr)))).sqrt())
        middle = sets.points.mean(1, keepdim=True)
        tokens, truth = model(sets.points, sets.snr_db) - middle, sets.mixing
        atoms = truth.points - middle
        for i in range(SETS[size]):
            w = truth.weights[i]
            costs = [float(wasserstein2(Empirical(c * tokens[i]), atoms[i], atom_weights=w).cost) for c in (1, factor)]
            spread, goal = float(tokens[i].square().sum(-1).mean()), float((w * atoms[i].square().sum(-1)).sum())
            best = (spread + goal - costs[0]) / (2 * spread)  # the least of c^2 spread - 2 c overlap + goal
            rows.append((label, i, costs[0], costs[1], best, factor))
    return {"scores": pd.DataFrame(rows, columns=["data", "set", "as printed", "rescaled", "best factor", "factor"])}


def summary(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for each level: both means, their paired difference with its error, and the factors."""
    table = tables["scores"].assign(gain=tables["scores"]["as printed"] - tables["scores"]["rescaled"])
    groups = table.groupby("data", sort=False)
    return groups[["as printed", "rescaled", "gain", "factor", "best factor"]].mean().assign(error=groups["gain"].sem())


def tabulate(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The levels in numbers."""
    return {"scores": summary(tables).round(5).reset_index()}


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """The printed read-out is as good as the rescaled one, or the factor lowers the error."""
    said = []
    for label, row in summary(tables).iterrows():
        found = f"{row['as printed']:.5f} as printed, {row['rescaled']:.5f} rescaled by {row['factor']:.3f}"
        found += f", difference {row['gain']:+.5f} ± {row['error']:.5f}; the best factor {row['best factor']:.3f}"
        worse, better = row["gain"] > CLEAR * row["error"], row["gain"] < -CLEAR * row["error"]
        claim = f"{label}: the read-out needs no factor"
        said.append(corrected(claim, "no factor", found, bool(better or not worse), bool(worse)))
    return said


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """Both means at each level, with the error of their difference on the second."""
    import matplotlib.pyplot as plt

    table = summary(tables)
    figure, panels = plt.subplots(1, len(table), figsize=(2.8 * len(table), 3), layout="constrained")
    for axis, (label, row) in zip(panels, table.iterrows(), strict=True):
        values = [row["as printed"], row["rescaled"]]
        axis.bar(["as printed", "rescaled"], values, yerr=[0, 2 * row["error"]], width=0.5, capsize=4,
                 color=["#1f6feb", "#d98032"])  # fmt: skip
        axis.set(title=label, ylim=(0, 1.2 * max(values)))
        axis.ticklabel_format(axis="y", style="plain")
        axis.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("W2 squared")
    return {"rescale": figure}


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """Why there should be a factor, and what it does."""
    words = [f"{verdict.claim.partition(':')[0]}: {verdict.ours}." for verdict in verdicts(tables)]
    return (
        "C.3 scales the tokens to the variance of the points before they are decoded; the true centres have SNR / "
        "(1 + SNR) of it. A decoder can learn to make up for it, so the factor is tried on a model trained without. "
        "Error bars: two standard errors of the paired difference. " + " ".join(words)
    )
