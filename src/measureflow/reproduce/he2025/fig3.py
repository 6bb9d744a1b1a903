"""Figure 3: layers of a transformer against iterations of Lloyd's algorithm, on six classes."""

from dataclasses import replace

import pandas as pd
import torch

from measureflow.reproduce.he2025 import sizes
from measureflow.reproduce.he2025.baselines import lloyd, plus_plus
from measureflow.reproduce.he2025.scores import scores
from measureflow.reproduce.he2025.trained import TEST_SEED, Setting, measured

TITLE = "He 2025, Figure 3: number of layers against Lloyd's iterations"
STEPS = {"tiny": 2, "small": 300, "paper": 500}


def compute(size, cache):
    """ARI and NMI by number of layers (trained) and by number of iterations (Lloyd from k-means++)."""
    plan = sizes.SIZES[size]
    recipe = replace(plan.recipe, n_steps=STEPS[size])
    grid = [(layers, seed) for layers in plan.layers for seed in range(plan.seeds)]
    settings = [Setting(sizes.six_classes(), recipe, seed, plan.n_test, {"n_layers": layers}) for layers, seed in grid]
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


def findings(tables):
    """The claim, and both curves in numbers."""
    curves = []
    for name, by in (("transformer", "layers"), ("lloyd", "iterations")):
        mean = tables[name].groupby(by)["ARI"].mean()
        curves.append(f"{name} by {by}: " + ", ".join(f"{i}: {value:.3f}" for i, value in mean.items()))
    return "The paper says that more layers help as more iterations do. Found, ARI: " + "; ".join(curves) + "."
