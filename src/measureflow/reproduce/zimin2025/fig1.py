"""Figure 1: tokens of one set across the layers of the trained model, and their entropy over many sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from measureflow.flows import entropy
from measureflow.measures import Empirical
from measureflow.measures.priors import paper_test_prior
from measureflow.models import load_pretrained
from measureflow.reproduce.verdicts import Verdict, corrected
from measureflow.reproduce.zimin2025.contestants import BASE
from measureflow.training.config import seeded

TITLE = "Zimin 2025, Figure 1: tokens across the layers of the trained model, and their entropy"
INSTANCES = {"tiny": 3, "small": 40, "paper": 100}
POINTS = {"tiny": 60, "small": 400, "paper": 1000}
SNR_DB = 10.0
SHOWN = (0, 4, 8, 12, 16)
WEIGHTS = (BASE,)


def budget(size: str) -> str:
    """Sets and points."""
    return f"{INSTANCES[size]} sets of {POINTS[size]} points at {SNR_DB:g} dB, the paper 100 of 1000"


@torch.no_grad()
def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Read-out tokens of one set at every layer, and the entropy at every layer of many sets."""
    model: Any = load_pretrained(BASE)
    mixtures = paper_test_prior(SNR_DB).sample(INSTANCES[size], POINTS[size], seeded("fig1", size))
    path = model.flow(mixtures.points, mixtures.snr_db)
    rows = []
    for layer, tokens in enumerate(path):
        values = entropy(Empirical(tokens + 1e-6 * _jitter(tokens)))  # tokens that meet would have entropy -inf
        rows += [(layer, i, float(v)) for i, v in enumerate(values)]
    one = torch.stack([tokens[0] for tokens in path])
    layer, point = np.indices(one.shape[:2])
    tokens = pd.DataFrame({"layer": layer.ravel(), "point": point.ravel()})
    tokens[["x0", "x1"]] = one.reshape(-1, 2).numpy()
    return {"tokens": tokens, "entropy": pd.DataFrame(rows, columns=["layer", "set", "entropy"])}


def _jitter(tokens: torch.Tensor) -> torch.Tensor:
    return torch.randn(tokens.shape, generator=seeded("jitter"))


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """Layers side by side, and the mean entropy with a band of one standard deviation."""
    import matplotlib.pyplot as plt

    tokens, values = tables["tokens"], tables["entropy"]
    last = tokens["layer"].max()
    shown = [layer for layer in SHOWN if layer <= last]
    limits = tokens[["x0", "x1"]].agg(["min", "max"]) + np.array([[-0.2], [0.2]])  # so that no point is cut
    figure, axes = plt.subplots(1, len(shown) + 1, figsize=(2.3 * (len(shown) + 1), 2.5), layout="constrained")
    for axis, layer in zip(axes, shown, strict=False):
        here = tokens[tokens["layer"] == layer]
        axis.scatter(here["x0"], here["x1"], s=4, color="#1f6feb", linewidths=0, alpha=0.6)
        axis.set(title=f"layer {layer}", xticks=[], yticks=[], aspect="equal", xlim=limits["x0"], ylim=limits["x1"])
    mean, sd = values.groupby("layer")["entropy"].mean(), values.groupby("layer")["entropy"].std()
    axes[-1].plot(mean.index, mean, color="#1f6feb")
    axes[-1].fill_between(mean.index, mean - sd, mean + sd, color="#1f6feb", alpha=0.15)
    axes[-1].set(title="entropy", xlabel="layer")
    axes[-1].spines[["top", "right"]].set_visible(False)
    return {"fig1": figure}


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """The paper's entropy grows; it falls."""
    mean = tables["entropy"].groupby("layer")["entropy"].mean()
    steps = mean.diff().dropna()
    found = f"from {mean.iloc[0]:.2f} to {mean.iloc[-1]:.2f}, falling at {(steps < 0).sum()} of {len(steps)} layers"
    falls = mean.iloc[-1] < mean.iloc[0] and (steps < 0).mean() > 0.8
    return [
        corrected("the entropy of the tokens over the layers", "grows", found, bool((steps > 0).all()), bool(falls))
    ]


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """Whether the entropy falls."""
    mean = tables["entropy"].groupby("layer")["entropy"].mean()
    fell = int((mean.diff().dropna() < 0).sum())
    return (
        "The paper shows tokens clustering over the layers of its trained model while a quantity it calls entropy "
        f"grows. With Ent = -int mu log mu, clustering lowers it: the mean over {tables['entropy']['set'].nunique()} "
        f"sets goes from {mean.iloc[0]:.2f} to {mean.iloc[-1]:.2f}, falling at {fell} of {len(mean) - 1} layers "
        "(estimated from third neighbours, tokens jittered by 1e-6)."
    )
