"""The sequel's embedding: exact Lloyd in d + ceil(log2 k) slots instead of d + k, with its parameter count."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from measureflow.circuits import kmeans_transformer, textbook
from measureflow.circuits.clarkson.lean import lean_kmeans_transformer, matrix_entries
from measureflow.reproduce.axes import ticks_at
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "Clarkson 2025, the sequel's binary codes: Lloyd in d + log2 k slots"
CLUSTERS = {"tiny": (2, 5), "small": (2, 3, 5, 8, 16, 33, 64), "paper": (2, 3, 5, 8, 16, 33, 64, 100, 128)}
POINTS = {"tiny": 60, "small": 600, "paper": 2000}
D, LAYERS = 4, 10


def budget(size: str) -> str:
    """Data; the sequel (Park et al.) states the width."""
    return f"{POINTS[size]} points in {D} dimensions, k up to {max(CLUSTERS[size])}, {LAYERS} layers"


def compute(size, cache):
    """For each k the widths and parameters of both circuits, and how far the lean one is from Lloyd's algorithm."""
    return {"lean": pd.DataFrame([_row(k, POINTS[size]) for k in CLUSTERS[size]])}


def _row(k: int, n: int) -> dict:
    rng = np.random.default_rng(k)
    X = rng.normal(size=(n, D)) + 6 * rng.normal(size=(k, D))[np.arange(n) % k]
    C = X[:k].copy()  # one point of each cluster, so that none is empty
    lean, plain = lean_kmeans_transformer(D, k, n_layers=LAYERS), kmeans_transformer(D, k, n_layers=LAYERS)
    path, labels, gap = textbook.run(textbook.lloyd, X, C, LAYERS), 0, 0.0
    for got, (Y, centers) in zip(lean.trace(torch.tensor(X), torch.tensor(C)), path, strict=True):
        labels += int((got.labels.numpy() != Y.argmax(1)).sum())
        gap = max(gap, float(np.abs(got.centers.numpy() - centers).max()))
    return {
        "k": k, "slots": lean.stream.width, "slots, unit vectors": plain.stream.width,
        "parameters": matrix_entries(lean), "parameters, unit vectors": matrix_entries(plain),
        "labels that differ": labels, "largest difference": gap,
    }  # fmt: skip


def tabulate(tables):
    """The widths and counts."""
    table = tables["lean"]
    return {"lean": table.assign(**{"largest difference": table["largest difference"].map("{:.1e}".format)})}


def verdicts(tables) -> list[Verdict]:
    """Exact, and as narrow as stated."""
    table = tables["lean"]
    exact = table["labels that differ"].sum() == 0 and table["largest difference"].max() < 1e-12
    narrow = (table["slots"] == D + np.maximum(1, np.ceil(np.log2(table["k"])))).all()
    last = table.iloc[-1]
    found = f"{table['labels that differ'].sum()} labels differ, centres by {table['largest difference'].max():.1e}"
    saved = f"k = {last['k']:.0f}: {last['parameters']:,.0f} parameters for {last['parameters, unit vectors']:,.0f}"
    return [
        judged("each layer is an iteration of Lloyd's algorithm", "exactly", found, bool(exact)),
        judged("d + ceil(log2 k) slots are enough", "d + ceil(log2 k)", saved, bool(narrow and exact)),
    ]


def render(tables):
    """Parameters of both circuits against k."""
    import matplotlib.pyplot as plt

    table = tables["lean"]
    figure, axis = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
    axis.loglog(table["k"], table["parameters, unit vectors"], "o-", color="#d98032", label="unit vectors, d + k slots")
    axis.loglog(table["k"], table["parameters"], "o-", color="#1f6feb", label="binary codes, d + log2 k slots")
    ticks_at(axis, table["k"])
    axis.set(xlabel="clusters k", ylabel=f"parameters of {LAYERS} layers")
    axis.legend(frameon=False, fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    return {"lean": figure}


def findings(tables):
    """What the narrow stream changes."""
    return (
        "A sequel of the paper reaches exact Lloyd with an embedding of d + ceil(log2 k): the assignment is a binary "
        "code instead of a unit vector. Found: the same matrices on the narrower stream are exact while no cluster is "
        "empty and no point is tied. An empty cluster moves to the mean of the points of the nearest code, where unit "
        "vectors move it to the mean of all."
    )
