"""The figures of section 4 are sweeps: one quantity varied, scores with bands over seeds, opponents beside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from measureflow.measures.he_mixtures import HeMixtures
from measureflow.reproduce.he2025 import sizes
from measureflow.reproduce.he2025.trained import Setting, measured


@dataclass(frozen=True)
class Sweep:
    """A row of a figure: the name of what varies, its values by size, and the mixtures at a value."""

    name: str
    values: dict[str, tuple]
    mixtures: Callable[[float], HeMixtures]
    own_sizes: bool = False  # the number of points is what varies, so training must not choose its own


DISTANCE = Sweep("minimum distance", sizes.DISTANCE, sizes.by_distance)
DIMENSION = Sweep("dimension", sizes.DIMENSION, sizes.by_dimension)
DATA = Sweep("points per class", sizes.DATA, sizes.by_data, own_sizes=True)
CLASSES = Sweep("number of classes", sizes.CLASSES, sizes.by_classes)
IMBALANCE = Sweep("imbalance ratio", sizes.IMBALANCE, sizes.by_imbalance)


def swept(sweep: Sweep, size: str, cache: Path, **model) -> pd.DataFrame:
    """All seeds at all values: a long table with columns sweep, value, seed and the scores."""
    plan = sizes.SIZES[size]
    recipe = replace(plan.recipe, n_per_class=None) if sweep.own_sizes else plan.recipe
    grid = [(value, seed) for value in sweep.values[size] for seed in range(plan.seeds)]
    settings = [Setting(sweep.mixtures(value), recipe, seed, plan.n_test, model) for value, seed in grid]
    table = measured(settings, cache, f"{sweep.name}{', averaged heads' if model.get('averaged_heads') else ''}")
    heads = "averaged" if model.get("averaged_heads") else "concatenated"
    table.insert(0, "value", [value for value, _ in grid])
    table.insert(0, "sweep", sweep.name)
    return table.assign(heads=heads)


def draw(tables: list[pd.DataFrame], title: str):
    """A figure with a row for each sweep and columns ARI, NMI, loss; bands are one standard deviation over seeds."""
    import matplotlib.pyplot as plt

    everything = pd.concat(tables)
    names = list(dict.fromkeys(everything["sweep"]))
    figure, axes = plt.subplots(len(names), 3, figsize=(11, 2.9 * len(names)), squeeze=False)
    for row, name in zip(axes, names, strict=True):
        part = everything[everything["sweep"] == name]
        for ax, score in zip(row, ("ARI", "NMI", "loss"), strict=True):
            _draw_score(ax, part, score)
            ax.set_xlabel(name)
            ax.set_ylabel(score)
    figure.suptitle(title)
    figure.tight_layout()
    legend_below(figure)
    return figure


def legend_below(figure) -> None:
    """One legend for all panels, under them; it takes the place of an earlier one."""
    for legend in figure.legends:
        legend.remove()
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False, fontsize=9)


def _draw_score(ax, part: pd.DataFrame, score: str) -> None:
    for heads, colour in (("concatenated", "C0"), ("averaged", "C3")):
        mine = part[part["heads"] == heads].groupby("value")[score]
        if len(mine):
            mean, spread = mine.mean(), mine.std(ddof=0)
            ax.plot(mean.index, mean, "o-", color=colour, label=f"transformer, {heads} heads")
            ax.fill_between(mean.index, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0)
    if score != "loss":
        ax.set_ylim(-0.02, 1.02)
        for opponent, style in (("Lloyd", "k--"), ("spectral", "k:")):
            there = part.groupby("value")[f"{opponent} {score}"].mean()
            ax.plot(there.index, there, style, lw=1, label=opponent)


def sentence(table: pd.DataFrame) -> str:
    """What a sweep found, in one sentence."""
    mean = table.groupby("value")[["ARI", "Lloyd ARI"]].mean()
    steps = ", ".join(f"{value:g}: {row['ARI']:.2f} ({row['Lloyd ARI']:.2f})" for value, row in mean.iterrows())
    return f"{table['sweep'].iloc[0]}, ARI of the transformer (of Lloyd): {steps}."
