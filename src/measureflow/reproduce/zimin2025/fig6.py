"""Figure 6: example test sets at the three signal-to-noise ratios."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from measureflow.measures.priors import paper_test_prior, signal_to_noise
from measureflow.reproduce.verdicts import Verdict, judged
from measureflow.reproduce.zimin2025.measurements import LEVELS
from measureflow.training.config import seeded

TITLE = "Zimin 2025, Figure 6: example data at high, moderate and low SNR"
POINTS = {"tiny": 100, "small": 1000, "paper": 1000}


def budget(size: str) -> str:
    """One set at each level."""
    return f"one set of {POINTS[size]} points at each of the three levels, as the paper"


def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Points with their labels, and the centres."""
    points, centers = [], []
    for label, snr_db in LEVELS.items():
        m = paper_test_prior(snr_db).sample(1, POINTS[size], seeded("fig6", snr_db))
        snr = float(signal_to_noise(m.centers, m.proportions, m.noise_variance))
        points.append(
            pd.DataFrame(m.points[0].numpy(), columns=["x0", "x1"]).assign(label=m.labels[0].numpy(), data=label)
        )
        centers.append(pd.DataFrame(m.centers[0].numpy(), columns=["x0", "x1"]).assign(data=label, snr=snr))
    return {"points": pd.concat(points, ignore_index=True), "centers": pd.concat(centers, ignore_index=True)}


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """Colours are components, stars their centres."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
    for axis, label in zip(axes, LEVELS, strict=True):
        part = tables["points"].query("data == @label")
        stars = tables["centers"].query("data == @label")
        axis.scatter(part["x0"], part["x1"], c=part["label"], cmap="tab10", s=5, linewidths=0, vmin=0, vmax=9)
        axis.scatter(stars["x0"], stars["x1"], marker="*", s=110, color="black", edgecolor="white")
        axis.set(title=label, xticks=[], yticks=[])
        axis.set_aspect("equal", adjustable="datalim")
    return {"fig6": figure}


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """The SNR of each set is the one asked for."""
    snr = tables["centers"].groupby("data", sort=False)["snr"].first()
    return [
        judged(f"{label}: the SNR is {db:g} dB", f"{10 ** (db / 10):.2f}", f"{snr[label]:.2f}",
               bool(abs(snr[label] / 10 ** (db / 10) - 1) < 1e-3))
        for label, db in LEVELS.items()
    ]  # fmt: skip


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """That the SNR is what it should be."""
    snr = tables["centers"].groupby("data", sort=False)["snr"].first()
    return (
        "Linear SNR of the three sets, from their centres: " + ", ".join(f"{k} {v:.2f}" for k, v in snr.items()) + "."
    )
