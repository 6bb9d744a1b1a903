"""Figure 3: layers of a transformer against iterations of Lloyd's algorithm, on six classes."""

from dataclasses import replace

import pandas as pd
import torch

from measureflow.reproduce.he2025.baselines import lloyd, plus_plus
from measureflow.reproduce.he2025.learned import sizes
from measureflow.reproduce.he2025.learned.trained import TEST_SEED, Setting, measured
from measureflow.reproduce.he2025.scores import scores
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "He 2025, Figure 3: number of layers against Lloyd's iterations"


def budget(size: str) -> str:
    """Steps for each layer, depths and seeds."""
    plan = sizes.SIZES[size]
    depths = ", ".join(map(str, plan.layers))
    return (
        f"{plan.steps_per_layer} steps for each layer (the paper 500), L = {depths} (the paper 3 to 20), "
        f"{plan.seeds} seeds (the paper 10)"
    )


def compute(size, cache):
    """ARI and NMI by number of layers (trained) and by number of iterations (Lloyd from k-means++)."""
    plan = sizes.SIZES[size]
    grid = [(layers, seed) for layers in plan.layers for seed in range(plan.seeds)]
    settings = [
        Setting(sizes.six_classes(), replace(plan.recipe, n_steps=layers * plan.steps_per_layer), seed, plan.n_test,
                {"n_layers": layers})
        for layers, seed in grid
    ]  # fmt: skip
    table = measured(settings, cache, "layers")
    table.insert(0, "layers", [layers for layers, _ in grid])
    return {"transformer": table, "lloyd": pd.DataFrame(_lloyd_rows(plan))}


def _lloyd_rows(plan):
    mixtures = sizes.six_classes()
    test = mixtures.sample(plan.n_test, torch.Generator().manual_seed(TEST_SEED))
    points, k = test.points.double(), mixtures.n_classes
    for seed in range(plan.seeds):
        start = plus_plus(points, k, torch.Generator().manual_seed(seed))
        for iterations in range(1, 7):
            yield {"iterations": iterations, "seed": seed, **scores(test.labels, lloyd(points, start, iterations), k)}


def render(tables):
    """Left the transformer, right Lloyd, the same scale."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), sharey=True)
    for ax, (table, by) in zip(axes, ((tables["transformer"], "layers"), (tables["lloyd"], "iterations")), strict=True):
        for score, colour in (("ARI", "C0"), ("NMI", "C1")):
            group = table.groupby(by)[score]
            mean, spread = group.mean(), group.std(ddof=0)
            ax.plot(mean.index, mean, "o-", color=colour, label=score)
            ax.fill_between(mean.index, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0)
        ax.set_xlabel(by)
        ax.set_title("transformer" if by == "layers" else "Lloyd's algorithm")
    axes[0].legend(frameon=False)
    figure.tight_layout()
    return {"fig3": figure}


def verdicts(tables) -> list[Verdict]:
    """More layers help, as more iterations do."""
    said = []
    for name, by in (("transformer", "layers"), ("lloyd", "iterations")):
        groups = tables[name].groupby(by)["ARI"]
        mean, spread = groups.mean(), groups.std(ddof=0)
        found = f"{mean.iloc[0]:.3f} at {mean.index[0]} to {mean.iloc[-1]:.3f} at {mean.index[-1]}"
        gained = mean.iloc[-1] - mean.iloc[0] > max(0.02, spread.iloc[0] + spread.iloc[-1])
        said.append(judged(f"{name}: more {by} help", "ARI rises", found, bool(gained)))
    return said


def findings(tables):
    """The claim, and both curves in numbers."""
    curves = []
    for name, by in (("transformer", "layers"), ("lloyd", "iterations")):
        mean = tables[name].groupby(by)["ARI"].mean()
        curves.append(f"{name} by {by}: " + ", ".join(f"{i}: {value:.3f}" for i, value in mean.items()))
    return "The paper says that more layers help as more iterations do. Found, ARI: " + "; ".join(curves) + "."
