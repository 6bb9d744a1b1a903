"""Experiment 1: the transition in the minimum distance; and at distance 30 the printed recipe against ours."""

import numpy as np
import pandas as pd

from measureflow.reproduce.he2025.learned import sizes
from measureflow.reproduce.he2025.learned.sweeps import DISTANCE, draw, legend_below, sentence, swept
from measureflow.reproduce.he2025.learned.trained import STARTED, TURNED, TURNS, Setting, measured
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "He 2025, experiment 1: minimum distance, and how long to train"


def budget(size: str) -> str:
    """Steps and seeds of the two recipes."""
    plan = sizes.SIZES[size]
    return (
        f"sweep: the trainings of Figure 1, {plan.seeds} seeds; printed recipe {plan.printed.n_steps} steps, 1 seed; "
        f"ours {plan.found.n_steps} steps, {plan.found_seeds} seeds; the paper 10 seeds"
    )


def compute(size, cache):
    """The sweep of Figure 1, and one setting trained by two recipes: He's 300 steps, and the one found here."""
    plan = sizes.SIZES[size]
    runs = [("printed", plan.printed, 0, {"layer_norm": False})]
    runs += [("found", plan.found, seed, {}) for seed in range(plan.found_seeds)]
    settings = [Setting(sizes.by_distance(30), recipe, seed, plan.n_test, model) for _, recipe, seed, model in runs]
    table = measured(settings, cache, "recipes at distance 30")
    table.insert(0, "recipe", [name for name, *_ in runs])
    table["steps"] = [recipe.n_steps for _, recipe, *_ in runs]
    return {"sweep": swept(DISTANCE, size, cache), "recipes": table}


def crossing(sweep: pd.DataFrame, level: float = 0.5) -> float:
    """The distance at which the mean ARI first reaches ``level``, by linear interpolation; nan if it never does."""
    mean = sweep.groupby("value")["ARI"].mean()
    above = np.flatnonzero(mean.to_numpy() >= level)
    if not len(above):
        return float("nan")
    i = above[0]
    if i == 0:
        return float(mean.index[0])
    return float(np.interp(level, mean.to_numpy()[[i - 1, i]], mean.index.to_numpy(float)[[i - 1, i]]))


def render(tables):
    """The sweep, with the two recipes marked at distance 30."""
    figure = draw([tables["sweep"]], "minimum distance")
    recipes = tables["recipes"].groupby("recipe", sort=False)
    for score, ax in zip(("ARI", "NMI", "loss"), figure.axes, strict=True):
        for (name, part), marker in zip(recipes, ("v", "*"), strict=True):
            label = f"{name} recipe, {part['steps'].iloc[0]} steps"
            ax.plot([30] * len(part), part[score], marker, color="C2", ms=9, ls="none", label=label)
    legend_below(figure)
    return {"separation": figure}


def verdicts(tables) -> list[Verdict]:
    """There is a transition; and who comes near Lloyd at distance 30."""
    at = crossing(tables["sweep"])
    found = "one half not reached" if np.isnan(at) else f"ARI one half at distance {at:.1f}"
    said = [judged("clustering sets in as the minimum distance grows", "a transition", found, bool(np.isfinite(at)))]
    for name, part in tables["recipes"].groupby("recipe", sort=False):
        ari, lloyd = part["ARI"].mean(), part["Lloyd ARI"].mean()
        words = f"{ari:.3f} for Lloyd's {lloyd:.3f}, {part['steps'].iloc[0]} steps"
        said.append(
            judged(f"{name} recipe at distance 30: a strong alternative", "to Lloyd", words, bool(ari > lloyd - 0.05))
        )
        ari, lloyd = part[TURNED].mean(), part[STARTED].mean()
        claim = f"{name} recipe at distance 30: with {TURNS} turns as good as Lloyd with {TURNS} starts"
        said.append(judged(claim, "to Lloyd", f"{ari:.3f} for {lloyd:.3f}", bool(ari > lloyd - 0.02)))
    return said


def findings(tables):
    """Where the transition lies, and what each recipe gives."""
    at = crossing(tables["sweep"])
    where = (
        "not reached on this grid"
        if np.isnan(at)
        else f"crossed at distance {at:.1f}, {at / 5:.1f} standard deviations"
    )
    rows = [
        f"{name} recipe ({part['steps'].iloc[0]} steps, {part['seconds'].mean():.0f} s a seed): ARI "
        + ", ".join(f"{ari:.3f}" for ari in part["ARI"])
        + f", Lloyd {part['Lloyd ARI'].iloc[0]:.3f}; of {TURNS} turns "
        + ", ".join(f"{ari:.3f}" for ari in part[TURNED])
        + f", Lloyd of {TURNS} starts {part[STARTED].iloc[0]:.3f}"
        for name, part in tables["recipes"].groupby("recipe", sort=False)
    ]
    why = (
        "What limits one look is the naming: two clusters come by one name, by where they lie. A set turned about its "
        f"mean is the same problem, so each set may be turned {TURNS} times and the answer kept that the model is "
        "surest of."
    )
    return f"ARI one half is {where}. At distance 30, {'; '.join(rows)}. {why} " + sentence(tables["sweep"])
