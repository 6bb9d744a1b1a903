"""Figure 8: how much a trained model flows, against the SNR."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import torch

from measureflow.models import load_pretrained
from measureflow.reproduce.zimin2025.contestants import BASE

TITLE = "Zimin 2025, Figure 8: flow speed and total flow against the SNR"
WEIGHTS = {16: BASE, 32: f"{BASE}-32", 64: f"{BASE}-64"}


@torch.no_grad()
def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Total flow T = F(SNR) and speed T / L of each depth that ships."""
    snr = torch.linspace(3, 15, 49)
    frames = []
    for layers, name in WEIGHTS.items():
        if name in load_pretrained.available():
            T = load_pretrained(name).speed(snr)
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


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """Range of the flow at each depth."""
    words = []
    for layers, curve in tables["flow"].groupby("layers"):
        falls = bool((curve["total"].diff().dropna() <= 1e-6).all())
        ends = curve["total"].iloc[[0, -1]]
        words.append(
            f"{layers} layers: total flow {ends.iloc[0]:.2f} at 3 dB and {ends.iloc[1]:.2f} at 15 dB, "
            f"{'falling throughout' if falls else 'not monotone'}."
        )
    total = tables["flow"].pivot(index="snr_db", columns="layers", values="total")
    if total.shape[1] > 1:
        spread = ((total.max(axis=1) - total.min(axis=1)) / total.mean(axis=1)).max()
        words.append(f"Between depths it differs by at most {spread:.0%}.")
    return "The paper finds a total flow that falls with the SNR and hardly depends on the depth. " + " ".join(words)
