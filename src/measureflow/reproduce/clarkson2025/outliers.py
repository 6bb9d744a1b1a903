"""Do the trimmed and the robust circuits help? Centres found beside outliers, against the true ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from scipy.optimize import linear_sum_assignment

from measureflow.attention import Softmax
from measureflow.circuits import kmeans_transformer
from measureflow.circuits.clarkson import rows
from measureflow.reproduce.axes import plain_decades
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "Clarkson 2025, trimmed and robust k-means beside outliers"
SHARES = (0.0, 0.02, 0.05, 0.1)
SEEDS = {"tiny": 2, "small": 20, "paper": 200}
N, D, K, LAYERS = 300, 2, 3, 10


def budget(size: str) -> str:
    """Data; the paper has no such run."""
    return f"{SEEDS[size]} draws for each share of outliers, {N} points, k = {K}, {LAYERS} layers; the paper has no run"


def draw(share: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of K unit blobs, a share of them thrown over a box three times as wide; true centres; first centres."""
    rng = np.random.default_rng(seed)
    centers = 6 * np.array([[np.cos(a), np.sin(a)] for a in 2 * np.pi * np.arange(K) / K]) + rng.normal(size=(K, D)) / 2
    X = centers[np.arange(N) % K] + rng.normal(size=(N, D))
    wild = rng.choice(N, round(share * N), replace=False)
    X[wild] = rng.uniform(-30, 30, size=(len(wild), D))
    return X, centers, centers + rng.normal(size=(K, D))


def circuits(X: np.ndarray) -> dict[str, rows.Configuration]:
    """The three circuits; the gap hides all points of another cluster."""
    gap = float(((X[:, None] - X) ** 2).sum(-1).max() / 2)
    return {
        "Lloyd": rows.lloyd(),
        "trimmed, 80th percentile": rows.trimmed_by_percentile(80.0, delta=64 * gap),
        "robust, softmax": rows.robust(Softmax(0.2), delta=gap),
    }


def compute(size, cache):
    """The root mean square distance of the centres found from the true ones, matched."""
    table = []
    for share in SHARES:
        for seed in range(SEEDS[size]):
            X, truth, start = draw(share, seed)
            for name, row in circuits(X).items():
                found = kmeans_transformer(D, K, row, n_layers=LAYERS)(torch.tensor(X), torch.tensor(start)).numpy()
                cost = ((found[:, None] - truth) ** 2).sum(-1)
                table.append({"outliers": share, "seed": seed, "circuit": name,
                              "error": float(np.sqrt(cost[linear_sum_assignment(cost)].mean()))})  # fmt: skip
    return {"errors": pd.DataFrame(table)}


def means(tables) -> pd.DataFrame:
    """Mean error by share of outliers, a column for each circuit."""
    return tables["errors"].groupby(["outliers", "circuit"], sort=False)["error"].mean().unstack("circuit")


def tabulate(tables):
    """Mean errors."""
    return {"errors": means(tables).round(3).reset_index()}


def verdicts(tables) -> list[Verdict]:
    """With outliers the error is at most half of Lloyd's; without them nearly the same."""
    mean = means(tables)
    said = []
    for name in mean.columns.drop("Lloyd"):
        wild = mean.loc[mean.index >= 0.05]
        found = ", ".join(f"{row[name]:.2f} for {row['Lloyd']:.2f} at {share:.0%}" for share, row in wild.iterrows())
        helps = (wild[name] <= 0.5 * wild["Lloyd"]).all()
        said.append(judged(f"{name}: helps beside outliers", "motivation of A.4, A.5", found, bool(helps)))
        clean = mean.loc[0.0]
        words = f"{clean[name]:.2f} for {clean['Lloyd']:.2f}"
        said.append(
            judged(f"{name}: costs little without outliers", "-", words, bool(clean[name] <= 1.5 * clean["Lloyd"]))
        )
    return said


def render(tables):
    """Error against the share of outliers."""
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
    for name, part in tables["errors"].groupby("circuit", sort=False):
        group = part.groupby("outliers")["error"]
        axis.errorbar(group.mean().index, group.mean(), group.sem(), marker="o", capsize=3, label=name)
    axis.set(xlabel="share of outliers", ylabel="error of the centres, in blob deviations", yscale="log")
    plain_decades(axis)
    axis.legend(frameon=False, fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    return {"outliers": figure}


def findings(tables):
    """The errors in words."""
    mean = means(tables)
    worst = mean.iloc[-1]
    words = ", ".join(f"{name} {error:.2f}" for name, error in worst.items())
    return (
        "The paper offers trimmed and robust k-means as circuits against outliers and runs neither. Found, with "
        f"{mean.index[-1]:.0%} of the points thrown over a wide box, the error of the centres: {words}."
    )
