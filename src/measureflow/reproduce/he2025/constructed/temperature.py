"""Check 2: the temperature of the last soft-max, by separation; and the gap of Lemma B.1."""

import math

import numpy as np
import pandas as pd

from measureflow.circuits import em_transformer
from measureflow.circuits.textbook_em import lloyd_path
from measureflow.reproduce.he2025.constructed.draws import at_separation
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "He 2025, check 2: temperature of the soft-max against separation, constructed"
DRAWS = {"tiny": 2, "small": 10, "paper": 100}
N, RADIUS, SHARPNESS = 100, 1.2, 2.0
MULTIPLES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # beta over log N
SEPARATIONS = (2.0, 4.0, 6.0, 10.0)


def budget(size: str) -> str:
    """Draws."""
    return f"{DRAWS[size]} draws for each temperature and separation, N = {N}; the paper has no such run"


def compute(size, cache):
    """Mean and worst distance of the labels from one-hot, and the share that Lloyd labels otherwise."""
    rows = []
    for multiple in MULTIPLES:
        net = em_transformer(3, 2, N, 1, 256, radius=RADIUS, margin=SHARPNESS / multiple, sharpness=SHARPNESS, pad=True)
        for separation in SEPARATIONS:
            for seed in range(DRAWS[size]):
                rows.append({"beta / log N": multiple, "separation": separation, **_measured(net, seed, separation)})
    return {"temperature": pd.DataFrame(rows)}


def _measured(net, seed, separation):
    x, start = at_separation(seed, N, separation)
    soft, truth = net(net.context(x, start)).numpy(), lloyd_path(x, start, 1)[-1][0]
    off = abs(soft - np.eye(3)[truth]).max(1)
    return {
        "beta": net.design.beta,
        "mean error": off.mean(),
        "worst error": off.max(),
        "wrong": (soft.argmax(1) != truth).mean(),
    }


def render(tables):
    """Mean error against beta, a curve for each separation."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5.5, 3.4))
    for separation, part in tables["temperature"].groupby("separation"):
        mean = part.groupby("beta / log N")["mean error"].mean()
        ax.loglog(mean.index, mean.clip(lower=1e-12), "o-", label=f"separation {separation:g} sigma")
    ax.set_xlabel("beta / log N")
    ax.set_ylabel("mean distance from one-hot")
    ax.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    return {"temperature": figure}


def verdicts(tables) -> list[Verdict]:
    """Lemma B.1: the gap to one-hot falls with beta, the faster the wider the separation."""
    mean = tables["temperature"].groupby(["separation", "beta / log N"])["mean error"].mean().unstack("beta / log N")
    falls = bool((mean.diff(axis=1).iloc[:, 1:] <= 1e-12).all().all())
    last = mean.iloc[:, -1]
    wide = bool(last.iloc[-1] <= last.iloc[0])
    ends = [f"{error:.1e} at separation {apart:g}" for apart, error in last.iloc[[0, -1]].items()]
    found = f"at the largest beta {ends[0]}, {ends[1]}"
    return [judged("labels come nearer to one-hot as beta grows", "exp(-beta Delta)", found, falls and wide)]


def findings(tables):
    """No temperature leaves labels soft; low separation leaves them soft at any temperature shown."""
    mean = tables["temperature"].groupby(["separation", "beta / log N"])["mean error"].mean().unstack("beta / log N")
    rows = "; ".join(f"separation {s:g}: " + ", ".join(f"{v:.1e}" for v in row) for s, row in mean.iterrows())
    at = ", ".join(f"{m:g}" for m in mean.columns)
    return (
        f"Lemma B.1 says the gap falls as exp(-beta Delta), N = {N}, log N = {math.log(N):.1f}. "
        f"Mean distance from one-hot at beta / log N = {at}: {rows}."
    )
