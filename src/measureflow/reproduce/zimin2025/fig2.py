"""Figure 2: clustering that is too fine or too coarse for the data."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import torch

from measureflow.measures.priors import paper_test_prior
from measureflow.models import load_pretrained
from measureflow.reproduce.verdicts import Verdict, judged
from measureflow.reproduce.zimin2025.contestants import BASE
from measureflow.training.config import seeded
from measureflow.training.losses import mixing_w2

TITLE = "Zimin 2025, Figure 2: the same data seen at a high and at a low signal-to-noise ratio"
POINTS = {"tiny": 100, "small": 1000, "paper": 1000}
LEVELS = (15.0, 5.0)
WEIGHTS = (BASE,)


def budget(size: str) -> str:
    """One set at each level."""
    return (
        f"one set of {POINTS[size]} points at each of two levels; one model told two SNRs, the paper trains two models"
    )


@torch.no_grad()
def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Tokens for each pair of the data's SNR and the SNR the model is told."""
    model, frames, centers = load_pretrained(BASE), [], []
    for data_snr in LEVELS:
        mixtures = paper_test_prior(data_snr).sample(1, POINTS[size], seeded("fig2", data_snr))
        true = mixtures.centers[0][mixtures.proportions[0] > 0]
        centers.append(pd.DataFrame(true.numpy(), columns=["x0", "x1"]).assign(data_snr=data_snr))
        for told in LEVELS:
            tokens = model(mixtures.points, torch.tensor([told]))
            frame = pd.DataFrame(mixtures.points[0].numpy(), columns=["x0", "x1"])
            frame[["y0", "y1"]] = tokens[0].numpy()
            w2 = float(mixing_w2(tokens, mixtures))
            frames.append(frame.assign(data_snr=data_snr, told_snr=told, w2=w2))
    return {"tokens": pd.concat(frames, ignore_index=True), "centers": pd.concat(centers, ignore_index=True)}


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """Four panels: data in grey, output tokens in blue, true centres as crosses."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(11, 3), layout="constrained")
    for axis, ((data, told), part) in zip(axes, tables["tokens"].groupby(["data_snr", "told_snr"]), strict=True):
        axis.scatter(part["x0"], part["x1"], s=4, color="#c9d1d9", linewidths=0)
        axis.scatter(part["y0"], part["y1"], s=14, color="#1f6feb", linewidths=0, alpha=0.6)
        true = tables["centers"].query("data_snr == @data")
        axis.scatter(true["x0"], true["x1"], s=40, marker="x", color="black", linewidths=1)
        axis.set(title=f"data {data:g} dB, told {told:g} dB", xticks=[], yticks=[])
        axis.set_aspect("equal", adjustable="datalim")
    return {"fig2": figure}


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """Being told the wrong SNR costs, both ways."""
    w2 = tables["tokens"].groupby(["data_snr", "told_snr"])["w2"].first()
    said = []
    for data, told, words in ((15.0, 5.0, "too coarse"), (5.0, 15.0, "too fine")):
        found = f"W2 squared {w2[data, told]:.4f} for {w2[data, data]:.4f}"
        claim = f"data at {data:g} dB seen at {told:g} dB: clustering is {words}"
        said.append(judged(claim, "shown, no number", found, bool(w2[data, told] > w2[data, data])))
    return said


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What being told the wrong SNR costs."""
    scores = tables["tokens"].groupby(["data_snr", "told_snr"])["w2"].first()
    cells = "; ".join(f"data {d:g} dB told {t:g} dB: {w2:.4f}" for (d, t), w2 in scores.items())
    return (
        "The paper compares models trained on high and on low SNR. The flow speed makes one model both: told a high "
        "SNR it flows briefly and keeps clusters apart, told a low one it flows long and merges them. "
        f"W2 squared of one set each: {cells}."
    )
