"""Figure 8: how much a trained model flows, against the SNR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import torch

from measureflow.models import load_pretrained
from measureflow.reproduce.verdicts import Verdict, judged, unsettled
from measureflow.reproduce.zimin2025.contestants import BASE, BUDGETS

TITLE = "Zimin 2025, Figure 8: flow speed and total flow against the SNR"
BY_DEPTH = {16: BASE, 32: f"{BASE}-32", 64: f"{BASE}-64"}
WEIGHTS = tuple(BY_DEPTH.values())


def budget(size: str) -> str:
    """The models and what they were trained on."""
    trained = [f"{layers} layers: {sets:,} sets{f' after {before:,} with 16 layers' if before else ''}"
               for layers, name in BY_DEPTH.items() if name in BUDGETS for sets, before in [BUDGETS[name]]]  # fmt: skip
    return "; ".join([*trained, "the paper: 2.6 million each, from random weights"])


@torch.no_grad()
def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Total flow T = F(SNR) and speed T / L of each depth that ships."""
    snr = torch.linspace(3, 15, 49)
    frames = []
    for layers, name in BY_DEPTH.items():
        if name in load_pretrained.available():
            model: Any = load_pretrained(name)
            T = model.speed(snr)
            frames.append(pd.DataFrame({"layers": layers, "snr_db": snr, "total": T, "speed": T / layers}))
    return {"flow": pd.concat(frames, ignore_index=True)}


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """Speed on the left, total flow on the right."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for layers, curve in tables["flow"].groupby("layers"):
        for axis, what in zip(axes, ("speed", "total"), strict=True):
            axis.plot(curve["snr_db"], curve[what], label=f"{layers} layers")
            axis.set(xlabel="SNR (dB)", ylabel={"speed": "flow speed T / L", "total": "total flow T"}[what])
            axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    return {"fig8": figure}


def spread(tables: dict[str, pd.DataFrame]) -> float:
    """The largest difference of the total flow between depths, over its mean; nan for one depth."""
    total = tables["flow"].pivot(index="snr_db", columns="layers", values="total")
    return (
        float(((total.max(axis=1) - total.min(axis=1)) / total.mean(axis=1)).max())
        if total.shape[1] > 1
        else float("nan")
    )


def independent(tables: dict[str, pd.DataFrame]) -> bool:
    """Whether every depth was trained from weights of its own, so that a common flow says something."""
    return all(not BUDGETS[BY_DEPTH[layers]][1] for layers in tables["flow"]["layers"].unique())


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """The flow falls with the SNR; what the depth does can be judged only by models trained apart."""
    said = []
    for layers, curve in tables["flow"].groupby("layers"):
        falls = bool((curve["total"].diff().dropna() <= 1e-6).all())
        found = f"{curve['total'].iloc[0]:.2f} at 3 dB to {curve['total'].iloc[-1]:.2f} at 15 dB"
        said.append(judged(f"{layers} layers: the total flow falls with the SNR", "falls", found, falls))
    claim, apart = "the total flow hardly depends on the depth", f"{spread(tables):.0%} apart at most"
    if independent(tables):
        return [*said, judged(claim, "hardly", apart, spread(tables) < 0.1)]
    why = f"{apart}, but the deeper model began from the weights of the other: this says nothing"
    return [*said, unsettled(claim, "hardly", why)]


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """Range of the flow at each depth, and why the depths cannot be compared."""
    words = [f"{verdict.claim}: {verdict.ours}." for verdict in verdicts(tables)]
    return "The paper finds a total flow that falls with the SNR and hardly depends on the depth. Found: " + " ".join(
        words
    )
