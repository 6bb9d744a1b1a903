"""Theorems 3.1 and 3.2 measured: labels against Lloyd's, and errors against M, N, tau, d with their fitted slopes."""

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from measureflow.circuits import em_transformer
from measureflow.circuits.textbook_em import lloyd_path
from measureflow.reproduce.he2025.draws import good_start

TITLE = "He 2025, Theorems 3.1 and 3.2: the construction against Lloyd's algorithm"
K, N, RADIUS = 3, 200, 1.2
DRAWS = {"tiny": 1, "small": 5, "paper": 50}
HEADS = {"tiny": (16, 32), "small": (16, 32, 64, 128, 256), "paper": (16, 32, 64, 128, 256, 512, 1024)}
POINTS = {"tiny": (40, 80), "small": (50, 100, 200, 400), "paper": (50, 100, 200, 400, 800, 1600)}
VARIANTS = {"Theorem 3.1": False, "Theorem 3.2": True}


def compute(size, cache):
    """Three tables: labels by variant, d, tau; errors by M; the E step's error by N."""
    grid = [(variant, d) for variant in VARIANTS for d in ((4,) if size == "tiny" else (2, 3, 4, 5))]
    labels, heads = [], []
    for variant, d in tqdm(grid, desc="theorem", unit="network"):
        labels += _label_rows(variant, d, size)
        heads += _head_rows(variant, d, size)
    return {"labels": pd.DataFrame(labels), "heads": pd.DataFrame(heads), "points": pd.DataFrame(_point_rows(size))}


def _label_rows(variant, d, size):
    """Labels after tau = 1, 2, 3 blocks of one network, as the blocks share their weights."""
    net = em_transformer(K, d, N, 3, max(HEADS[size]), plus=VARIANTS[variant], radius=RADIUS, pad=True)
    for draw in range(DRAWS[size]):
        x, start = good_start(draw, K, d, N)
        path, states = lloyd_path(x, start, 3), net.states(net.context(x, start))
        for tau in (1, 2, 3):
            soft = net.readout(states[tau * net.n_layers // 3]).numpy()
            row = {"variant": variant, "d": d, "tau": tau, "heads": net.distance.n_heads, "draw": draw}
            wrong = int((soft.argmax(1) != path[tau][0]).sum())
            yield row | {"wrong": wrong, "sup error": abs(soft - np.eye(K)[path[tau][0]]).max()}


def _head_rows(variant, d, size):
    """With beta = 2 log N, as printed: how far labels are from those of exact distances, the M term alone."""
    x, start = good_start(0, K, d, N)
    means = lloyd_path(x, start, 1)[-1][1]
    for M in HEADS[size]:
        net = em_transformer(K, d, N, 1, M, plus=VARIANTS[variant], radius=RADIUS, margin=1.0, pad=True)
        exact = np.sqrt(((x[:, None] - means[None]) ** 2).sum(-1) + (RADIUS / 2) ** 2)
        soft = torch.softmax(torch.as_tensor(-net.design.beta * exact), -1)
        off = float((net(net.context(x, start)) - soft).abs().max())
        yield {"variant": variant, "d": d, "heads": M, "distance error": net.distance.error, "label error": off}


def _point_rows(size):
    """Theorem 3.1's E step at C = 1 and 2: two clusters of equal points, whose means are known."""
    for sharpness in (1.0, 2.0):
        for n in POINTS[size]:
            x = np.array([[-0.5, 0, 0], [0.5, 0, 0]])[np.arange(n) % 2]
            net = em_transformer(2, 3, n, 1, 8, sharpness=sharpness)
            mu = net.states(net.context(x, x[:2]))[1][:2, net.design.slots["mu"]]
            yield {"C": sharpness, "points": n, "error": float((mu - torch.as_tensor(x[:2])).abs().max())}


def slope(x, y) -> float:
    """The slope of log y against log x."""
    return float(np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)[0])


def theory(heads) -> float:
    """The slope that sqrt(log M / M) has on the same grid."""
    M = np.asarray(sorted(set(heads)), float)
    return slope(M, np.sqrt(np.log(M) / M))


def render(tables):
    """Errors against M for both variants, with the theory's slope, and the E step's against N."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.5))
    for ax, variant in zip(axes, VARIANTS, strict=False):
        part = tables["heads"][tables["heads"]["variant"] == variant]
        for d, rows in part.groupby("d"):
            ax.loglog(rows["heads"], rows["label error"], "o-", label=f"d = {d}")
        M = np.array(sorted(set(part["heads"])), float)
        ax.loglog(M, np.sqrt(np.log(M) / M), "k:", label="sqrt(log M / M)")
        ax.set_title(variant)
        ax.set_xlabel("heads M")
        ax.set_ylabel("sup error of the labels")
        ax.legend(frameon=False, fontsize=8)
    for C, rows in tables["points"].groupby("C"):
        axes[2].loglog(
            rows["points"], rows["error"], "o-", label=f"C = {C:g}, slope {slope(rows['points'], rows['error']):.2f}"
        )
    axes[2].set_title("E step of Theorem 3.1")
    axes[2].set_xlabel("points N")
    axes[2].set_ylabel("error of the centres")
    axes[2].legend(frameon=False, fontsize=8)
    for ax in axes:
        ax.set_xscale("log", base=2)
    figure.tight_layout()
    return {"theorem": figure}


def findings(tables):
    """Labels equal or not, and every slope beside its theory."""
    labels, heads, points = tables["labels"], tables["heads"], tables["points"]
    wrong = int(labels["wrong"].sum())
    sets = len(labels)
    said = f"Labels differ from Lloyd's at {wrong} points over {sets} (variant, d, tau, draw) cases, k = {K}, N = {N}; "
    said += f"sup error there {labels['sup error'].max():.1e}, by tau: "
    said += ", ".join(f"{tau}: {e:.1e}" for tau, e in labels.groupby("tau")["sup error"].max().items()) + ". "
    fits = [
        f"{variant} d={d}: labels {slope(rows['heads'], rows['label error']):.2f}, "
        f"distance {slope(rows['heads'], rows['distance error']):.2f}"
        for (variant, d), rows in heads.groupby(["variant", "d"])
    ]
    rates = [f"C={C:g}: {slope(rows['points'], rows['error']):.2f}" for C, rows in points.groupby("C")]
    return (
        said + f"Slopes in M (sqrt(log M / M) has {theory(heads['heads']):.2f} on this grid): {'; '.join(fits)}. "
        f"Slopes of the E step in N (theory -1; N^-C is what C log N gives): {', '.join(rates)}."
    )
