"""Open question 4: what a layer norm before each sub-layer does to training, all else equal; the theory has none."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from measureflow.reproduce.he2025.learned import sizes
from measureflow.reproduce.he2025.learned.context import QUARTERS
from measureflow.reproduce.he2025.learned.trained import Setting, measured
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "He 2025, future work 1: with and without layer norm"
DISTANCE = 30.0
KINDS = {"layer norm": {}, "no layer norm": {"layer_norm": False}}


def budget(size: str) -> str:
    """Steps and seeds."""
    plan = sizes.SIZES[size]
    return (
        f"{plan.recipe.n_steps} steps, {plan.seeds} seeds, {plan.n_test} test sets at minimum distance {DISTANCE:g}; "
        "the paper does not say which it trains"
    )


def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Both kinds from the same seeds by the same recipe."""
    plan, mixtures = sizes.SIZES[size], sizes.by_distance(DISTANCE)
    grid = [(kind, seed) for kind in KINDS for seed in range(plan.seeds)]
    settings = [Setting(mixtures, plan.recipe, seed, plan.n_test, KINDS[kind]) for kind, seed in grid]
    table = measured(settings, cache, "layer norm")
    table.insert(0, "kind", [kind for kind, _ in grid])
    return {"norms": table}


def tabulate(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Every run."""
    return {"norms": tables["norms"][["kind", "seed", "ARI", "NMI", "loss", "Lloyd ARI", *QUARTERS]].round(3)}


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """Whether it can be left out, as the theory does."""
    ari = tables["norms"].groupby("kind")["ARI"]
    found = ", ".join(f"{ari.mean()[kind]:.3f} ± {ari.std(ddof=0)[kind]:.3f} with {kind}" for kind in KINDS)
    same = ari.mean()["no layer norm"] > ari.mean()["layer norm"] - 0.05
    return [judged("training does as well without layer norm", "the theory has none", found, bool(same))]


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """Training loss by quarter, and final ARI."""
    import matplotlib.pyplot as plt

    table = tables["norms"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for kind, part in table.groupby("kind", sort=False):
        left.plot(range(1, 5), part[QUARTERS].mean(), "o-", label=kind)
        right.bar(kind, part["ARI"].mean(), yerr=part["ARI"].std(ddof=0), width=0.6)
    right.axhline(table["Lloyd ARI"].mean(), color="k", ls="--", lw=1, label="Lloyd")
    left.set(xlabel="quarter of training", ylabel="mean loss", xticks=range(1, 5))
    right.set(ylabel="ARI", ylim=(0, 1.1))
    for axis in (left, right):
        axis.legend(frameon=False, fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    return {"layer_norm": figure}


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """Both kinds in numbers."""
    mean = tables["norms"].groupby("kind", sort=False)[["ARI", "Lloyd ARI", *QUARTERS]].mean()
    rows = "; ".join(
        f"{kind}: ARI {row['ARI']:.3f}, loss by quarter of training " + ", ".join(f"{row[q]:.3f}" for q in QUARTERS)
        for kind, row in mean.iterrows()
    )
    return (
        f"The theory leaves layer norm out and names it future work. Same recipe, same seeds: {rows}. "
        f"Lloyd has {mean['Lloyd ARI'].iloc[0]:.3f}."
    )
