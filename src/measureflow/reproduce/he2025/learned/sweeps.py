"""The figures of section 4 are sweeps: one quantity varied, scores with bands over seeds, opponents beside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import torch

from measureflow.measures.he_mixtures import HeMixtures
from measureflow.reproduce.he2025.learned import families, sizes
from measureflow.reproduce.he2025.learned.families import Family
from measureflow.reproduce.he2025.learned.trained import STARTED, TURNED, TURNS, Setting, measured
from measureflow.reproduce.progress import counted
from measureflow.reproduce.verdicts import Verdict, judged


@dataclass(frozen=True)
class Sweep:
    """A row of a figure: the name of what varies, its values by size, and the mixtures at a value."""

    name: str
    values: dict[str, tuple]
    mixtures: Callable[..., HeMixtures]
    own_sizes: bool = False  # the number of points is what varies, so training must not choose its own


DISTANCE = Sweep("minimum distance", sizes.DISTANCE, sizes.by_distance)
DIMENSIONS = sizes.DIMENSION | {"small": (5, 10)}
DIMENSION = Sweep("dimension", DIMENSIONS, sizes.by_dimension)
DIMENSION_APART = Sweep("dimension, least distance 15 attained", DIMENSIONS, sizes.by_dimension_apart)
DATA = Sweep("points per class", sizes.DATA, sizes.by_data, own_sizes=True)
CLASSES = Sweep("number of classes", sizes.CLASSES, sizes.by_classes)
IMBALANCE = Sweep("imbalance ratio", sizes.IMBALANCE, sizes.by_imbalance)
SWEEPS = (DISTANCE, DIMENSION, DIMENSION_APART, DATA, CLASSES, IMBALANCE)


def relatives(mixtures: HeMixtures, size: str) -> tuple[HeMixtures, ...]:
    """All settings of the sweeps that share classes and dimension with one of them."""
    everyone = dict.fromkeys(sweep.mixtures(value) for sweep in SWEEPS for value in sweep.values[size])
    same = (mixtures.n_classes, mixtures.dimension)
    return tuple(other for other in everyone if (other.n_classes, other.dimension) == same)


def swept(sweep: Sweep, size: str, cache: Path, **model) -> pd.DataFrame:
    """All seeds at all values: a long table with columns sweep, value, seed and the scores."""
    grid = [(value, seed) for value in sweep.values[size] for seed in range(sizes.SIZES[size].seeds)]
    table = (
        _shared(sweep, size, cache, grid, model) if size in families.RECIPES else _each(sweep, size, cache, grid, model)
    )
    heads = "averaged" if model.get("averaged_heads") else "concatenated"
    table.insert(0, "attained", [attained(sweep.mixtures(value)) for value, _ in grid])
    table.insert(0, "value", [value for value, _ in grid])
    table.insert(0, "sweep", sweep.name)
    return table.assign(heads=heads)


def _each(sweep: Sweep, size: str, cache: Path, grid: list[tuple], model: dict) -> pd.DataFrame:
    """A training for each value and seed, as printed."""
    plan = sizes.SIZES[size]
    recipe = replace(plan.recipe, n_per_class=None) if sweep.own_sizes else plan.recipe
    settings = [Setting(sweep.mixtures(value), recipe, seed, plan.n_test, model) for value, seed in grid]
    return measured(settings, cache, f"{sweep.name}{', averaged heads' if model.get('averaged_heads') else ''}")


def _shared(sweep: Sweep, size: str, cache: Path, grid: list[tuple], model: dict) -> pd.DataFrame:
    """Tests of trainings that each serve all settings of the same classes and dimension."""
    rows = []
    for value, seed in counted(grid, sweep.name):
        mixtures = sweep.mixtures(value)
        family = Family(relatives(mixtures, size), families.RECIPES[size], seed, families.TESTS[size], model)
        rows.append(families.tests(family, cache)[mixtures])
    return pd.DataFrame(rows)


def attained(mixtures: HeMixtures) -> float:
    """The mean least distance of two centres: at least the one asked for, which is only a constraint."""
    centers = mixtures.sample(256, torch.Generator().manual_seed(0)).centers
    apart = torch.cdist(centers, centers) + torch.diag(torch.full((mixtures.n_classes,), torch.inf))
    return float(apart.amin((-2, -1)).mean())


def sweep_budget(rows: dict[str, Sweep], size: str) -> str:
    """Steps, seeds and values."""
    plan, recipe = sizes.SIZES[size], families.RECIPES.get(size)
    values = "; ".join(f"{sweep.name} {', '.join(map(str, sweep.values[size]))}" for sweep in rows.values())
    if recipe is None:
        spent = f"{plan.recipe.n_steps} steps and {plan.seeds} seeds a setting (the paper 300 and 10)"
        return f"{spent}, {plan.n_test} test sets; {values}"
    spent = (
        f"one training of {recipe.n_steps} steps for all settings of the same classes and dimension, "
        f"{plan.seeds} seeds (the paper 300 steps and 10 seeds for each setting)"
    )
    return f"{spent}, {families.TESTS[size]} test sets a setting; {values}"


def rises(table: pd.DataFrame, column: str = "ARI") -> bool:
    """Whether the mean score rises from the first value to the last, by more than the spread of the seeds."""
    groups = table.groupby("value")[column]
    mean, spread = groups.mean(), groups.std(ddof=0)
    return bool(mean.iloc[-1] - mean.iloc[0] > max(spread.iloc[0] + spread.iloc[-1], 0.02))


def ends(table: pd.DataFrame, column: str = "ARI") -> str:
    """The mean score at the first and the last value."""
    mean = table.groupby("value")[column].mean()
    return f"{mean.iloc[0]:.2f} at {mean.index[0]:g} to {mean.iloc[-1]:.2f} at {mean.index[-1]:g}"


def near_lloyd(table: pd.DataFrame) -> list[Verdict]:
    """Section 4: a strong alternative to Lloyd's algorithm. Strong is within 0.05 of its ARI with as many tries."""
    mean, said = table.groupby("value")[["ARI", "Lloyd ARI", TURNED, STARTED]].mean(), []
    for ours, theirs, tries in (("ARI", "Lloyd ARI", "one look, one start"), (TURNED, STARTED, f"{TURNS} of each")):
        short = mean[theirs] - mean[ours]
        found = f"below Lloyd's ARI by {short.min():.2f} to {short.max():.2f}"
        claim = f"{table['sweep'].iloc[0]}: a strong alternative to Lloyd ({tries})"
        said.append(judged(claim, "strong", found, bool(short.max() <= 0.05)))
    return said


def tabulated(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """For each sweep the means over seeds, with the attained distance and both opponents."""
    shown = {}
    for name, table in tables.items():
        groups = table.groupby(["heads", "value"], sort=False)
        columns = ["attained", "ARI", TURNED, "NMI", "loss", "Lloyd ARI", STARTED, "spectral ARI"]
        means = groups[columns].mean().round(3)
        means["ARI, spread over seeds"] = groups["ARI"].std(ddof=0).round(3)
        shown[name] = means.reset_index().rename(
            columns={"value": table["sweep"].iloc[0], "attained": "attained distance"}
        )
    return shown


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
            _attained_ticks(ax, part)
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


def _attained_ticks(ax, part: pd.DataFrame) -> None:
    """The attained least distance above each value, where it is not the value itself."""
    distance = part.groupby("value")["attained"].mean()
    if part["sweep"].iloc[0] == "minimum distance" or distance.max() - distance.min() > 0.5:
        top = ax.secondary_xaxis("top")
        top.set_xticks(distance.index, [f"{value:.0f}" for value in distance], fontsize=7)
        top.set_xlabel("attained least distance", fontsize=7)


def _draw_score(ax, part: pd.DataFrame, score: str) -> None:
    for heads, colour in (("concatenated", "C0"), ("averaged", "C3")):
        mine = part[part["heads"] == heads].groupby("value")[score]
        if len(mine):
            mean, spread = mine.mean(), mine.std(ddof=0)
            ax.plot(mean.index, mean, "o-", color=colour, label=f"transformer, {heads} heads")
            ax.fill_between(mean.index, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0)
        if len(mine) and score == "ARI":
            best = part[part["heads"] == heads].groupby("value")[TURNED].mean()
            ax.plot(best.index, best, "s:", ms=4, color=colour, label=f"{heads}, surest of {TURNS} turns")
    if score == "ARI":
        there = part.groupby("value")[STARTED].mean()
        ax.plot(there.index, there, "-.", color="0.4", lw=1, label=f"Lloyd, best of {TURNS} starts")
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
