r"""Lemma 2.1: the minimax rate of misclustering beside the error of the constructed transformer and of Lloyd.

For two clusters at distance Delta with noise sigma the Bayes rule errs at :math:`\Phi(-\Delta/2\sigma)`, which is
:math:`\exp(-(1+o(1))\Delta^2/8\sigma^2)`, the rate of the lemma and of Theorem 3.3.
"""

import math

import numpy as np
import pandas as pd
import torch
from scipy.special import ndtr

from measureflow.circuits import em_transformer
from measureflow.circuits.textbook_em import lloyd_path
from measureflow.reproduce.he2025.baselines import spectral
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "He 2025, Lemma 2.1 and Theorem 3.3: misclustering against the minimax rate"
SEPARATIONS = (1.0, 2.0, 3.0, 4.0, 5.0)  # Delta / sigma
DRAWS = {"tiny": 5, "small": 40, "paper": 1000}
N, D, SIGMA, BLOCKS, HEADS, RADIUS = 200, 3, 0.1, 3, 128, 1.2


def budget(size: str) -> str:
    """Draws; the paper has a proof and no such curve."""
    return (
        f"{DRAWS[size]} sets of {N} points at each of {len(SEPARATIONS)} separations, k = 2, d = {D}; no run in print"
    )


def compute(size, cache):
    """Share of points mislabelled, up to a swap, at each separation and draw."""
    net, rows = em_transformer(2, D, N, BLOCKS, HEADS, radius=RADIUS, margin=0.005), []
    for separation in SEPARATIONS:
        for seed in range(DRAWS[size]):
            x, truth, first = draw(separation, seed)
            start = np.stack([x[first == j].mean(0) for j in range(2)])
            built = net(net.context(x, start)).argmax(-1).numpy()
            found = {"spectral start": first, "Lloyd": lloyd_path(x, start, BLOCKS)[-1][0], "transformer": built}
            for who, labels in found.items():
                error = _mislabelled(labels, truth)
                rows.append({"separation": separation, "seed": seed, "who": who, "error": error})
    return {"errors": pd.DataFrame(rows)}


def draw(separation: float, seed: int):
    """Points of two clusters, their labels, and the labels of the spectral start."""
    rng = np.random.default_rng([seed, round(separation)])
    truth = np.arange(N) % 2
    x = SIGMA * (rng.normal(size=(N, D)).clip(-4, 4) + separation * (truth[:, None] - 0.5) * np.eye(D)[0])
    first = spectral(torch.from_numpy(x)[None], 2, torch.Generator().manual_seed(seed))[0]
    return x, truth, first.numpy()


def _mislabelled(labels, truth) -> float:
    wrong = float((labels != truth).mean())
    return min(wrong, 1 - wrong)


def bayes(separation):
    """The error of the best rule that knows both centres."""
    return ndtr(-np.asarray(separation) / 2)


def minimax(separation):
    """The rate of Lemma 2.1 without its o(1)."""
    return np.exp(-(np.asarray(separation) ** 2) / 8)


def means(tables) -> pd.DataFrame:
    """Mean errors by separation, with the Bayes error and the rate."""
    mean = tables["errors"].groupby(["separation", "who"], sort=False)["error"].mean().unstack("who")
    return mean.assign(**{"Bayes": bayes(mean.index), "exp(-Δ²/8σ²)": minimax(mean.index)})


def tabulate(tables):
    """Mean errors."""
    return {"errors": means(tables).round(4).reset_index()}


def verdicts(tables) -> list[Verdict]:
    """The transformer reaches the Bayes error where clusters part, as Lloyd does; nobody is below it."""
    mean, error = means(tables), tables["errors"].groupby(["separation", "who"])["error"].sem().unstack("who")
    far = mean[mean.index >= 3]
    slack = 1.25 * far["Bayes"] + 3 * error.loc[far.index, "transformer"].fillna(0)
    found = ", ".join(f"{row['transformer']:.4f} for {row['Bayes']:.4f} at {gap:g}" for gap, row in far.iterrows())
    low = mean["transformer"] + 3 * error["transformer"].fillna(0) >= mean["Bayes"]
    same = (mean["transformer"] - mean["Lloyd"]).abs().max()
    below = f"below the Bayes error at {int((~low).sum())} of {len(mean)} separations"
    return [
        judged(
            "the transformer reaches the minimax rate", "exp(-Δ²/8σ²)", found, bool((far["transformer"] <= slack).all())
        ),
        judged("no estimator is below the lower bound", "lower bound", below, bool(low.all())),
        judged("the transformer errs as Lloyd does", "Theorem 3.1", f"apart by at most {same:.4f}", bool(same < 0.01)),
    ]


def render(tables):
    """Errors against separation, on a logarithmic axis."""
    import matplotlib.pyplot as plt

    mean = means(tables)
    figure, axis = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
    fine = np.linspace(min(SEPARATIONS), max(SEPARATIONS), 100)
    axis.plot(fine, minimax(fine), "k:", label="exp(-Δ²/8σ²)")
    axis.plot(fine, bayes(fine), "k-", lw=0.8, label="Bayes, Φ(-Δ/2σ)")
    for who, marker in (("spectral start", "v"), ("Lloyd", "s"), ("transformer", "o")):
        axis.plot(mean.index, mean[who], marker, mfc="none", label=who)
    axis.set(yscale="log", xlabel="Δ / σ", ylabel="share mislabelled")
    axis.legend(frameon=False, fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    return {"minimax": figure}


def findings(tables):
    """The exponent that the transformer shows."""
    mean = means(tables)
    far = mean[(mean.index >= 3) & (mean["transformer"] > 0)]
    exponents = ", ".join(f"{-8 * math.log(row['transformer']) / gap**2:.2f} at {gap:g}" for gap, row in far.iterrows())
    return (
        "Lemma 2.1 bounds the error below by exp(-(1 + o(1)) Δ²/8σ²), and Theorem 3.3 says that a trained transformer "
        "reaches it. Found for the constructed one: -8 log(error) / (Δ/σ)², which tends to one, is "
        f"{exponents}; the Bayes error has the same o(1)."
    )
