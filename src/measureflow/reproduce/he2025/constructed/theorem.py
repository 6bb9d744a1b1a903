"""Theorems 3.1 and 3.2 measured: labels against Lloyd's, and errors against M, N, tau, d with their fitted slopes."""

import numpy as np
import pandas as pd
import torch

from measureflow.circuits import em_transformer
from measureflow.circuits.textbook_em import lloyd_path
from measureflow.reproduce.he2025.constructed.draws import good_start, moving_start, rough_start
from measureflow.reproduce.progress import counted
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "He 2025, Theorems 3.1 and 3.2: the construction against Lloyd's algorithm"
K, N, RADIUS = 3, 200, 1.2
DRAWS = {"tiny": 1, "small": 5, "paper": 50}
HEADS = {"tiny": (16, 32), "small": (16, 32, 64, 128, 256), "paper": (16, 32, 64, 128, 256, 512, 1024)}
POINTS = {"tiny": (40, 80), "small": (50, 100, 200, 400), "paper": (50, 100, 200, 400, 800, 1600)}
VARIANTS = {"Theorem 3.1": False, "Theorem 3.2": True}
MARGIN = 0.02  # of softened distances, for rough starts: points nearer to a border than this may have soft labels
POWERS = (1.0, 2.0, 4.0)  # C of the logits C log N


def budget(size: str) -> str:
    """Draws, heads and points; the paper has a proof and no run."""
    return (
        f"{DRAWS[size]} draws of each kind of start for each theorem and d, k = {K}, N = {N}, "
        f"up to {max(HEADS[size])} heads; the paper proves and runs nothing here"
    )


def compute(size, cache):
    """Three tables: labels by variant, d, tau; errors by M; the E step's error by N."""
    grid = [(variant, d) for variant in VARIANTS for d in ((4,) if size == "tiny" else (2, 3, 4, 5))]
    labels, heads = [], []
    for variant, d in counted(grid, "theorem"):
        labels += _label_rows(variant, d, size)
        heads += _head_rows(variant, d, size)
    return {"labels": pd.DataFrame(labels), "heads": pd.DataFrame(heads), "points": pd.DataFrame(_point_rows(size))}


def _label_rows(variant, d, size):
    """Labels after tau = 1, 2, 3 blocks of one network, from starts where Lloyd moves labels.

    ``moved`` counts the labels that differ from those of the start: what a network that returns its input would miss.
    """
    for kind, margin in (("wide gaps", None), ("rough", MARGIN)):
        net = em_transformer(
            K, d, N, 3, max(HEADS[size]), plus=VARIANTS[variant], radius=RADII[kind], margin=margin, pad=True
        )
        for draw in range(DRAWS[size]):
            x, start = start_of(kind, draw, d)
            path, states = lloyd_path(x, start, 3), net.states(net.context(x, start))
            for tau in (1, 2, 3):
                soft = net.readout(states[tau * net.n_layers // 3]).numpy()
                right, means = path[tau]
                clear = gaps(x, means, net.design.radius) >= net.design.margin + 2 * net.distance.error
                wrong = soft.argmax(1) != right
                yield {
                    "variant": variant, "start": kind, "d": d, "tau": tau, "heads": net.distance.n_heads, "draw": draw,
                    "moved": int((right != path[0][0]).sum()), "wrong": int(wrong.sum()), "clear": int(clear.sum()),
                    "wrong of clear": int((wrong & clear).sum()),
                    "sup error": abs(soft - np.eye(K)[right])[clear].max(initial=0.0),
                }  # fmt: skip


RADII = {"wide gaps": 1.2, "rough": 1.5}


def start_of(kind: str, draw: int, d: int):
    """Points and first centres; rough ones are drawn again until Lloyd moves labels and no cluster is small."""
    if kind == "wide gaps":
        return moving_start(draw, K, d, N)
    for again in range(1000):
        x, start = rough_start(10_000 * draw + again, K, d, N)
        path = lloyd_path(x, start, 3)
        shares = [np.bincount(labels, minlength=K).min() / N for labels, _ in path]
        inside = np.linalg.norm(x - x.mean(0), axis=1).max() < RADII[kind]
        if (path[1][0] != path[0][0]).mean() >= 0.05 and min(shares) >= 0.15 and inside:
            return x, start
    raise ValueError(f"no rough start of dimension {d} in a thousand draws moves labels")


def gaps(x, means, radius: float):
    """How much nearer, in softened distance, the nearest mean is than the second one, (N,)."""
    softened = np.sort(np.sqrt(((x[:, None] - means[None]) ** 2).sum(-1) + (radius / 2) ** 2), 1)
    return softened[:, 1] - softened[:, 0]


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
    """Two clusters of equal points, whose means are known: the E step's error, and how far labels are from one-hot.

    The logits are C log N. Theorem 3.1's E step errs by N^-C; Theorem 3.2's does not depend on N, and N enters through
    the labels alone, which a margin equal to the gap leaves N^-C from one-hot.
    """
    two = np.array([[-0.5, 0, 0], [0.5, 0, 0]])
    gap = float(gaps(two, two, 1.0)[0])
    for variant, plus in VARIANTS.items():
        for C in POWERS:
            for n in POINTS[size]:
                x = two[np.arange(n) % 2]
                net = em_transformer(2, 3, n, 1, 64, plus=plus, sharpness=C, margin=gap)
                states = net.states(net.context(x, x[:2]))
                mu = states[5 if plus else 1][:2, net.design.slots["mu"]]
                soft = net.readout(states[-1]).numpy()
                off = abs(soft - np.eye(2)[np.arange(n) % 2]).max()
                yield {
                    "variant": variant, "C": C, "points": n, "E step": float((mu - torch.as_tensor(x[:2])).abs().max()),
                    "labels": float(off),
                }  # fmt: skip


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
    for (variant, C), rows in tables["points"].groupby(["variant", "C"]):
        style = "o-" if variant == "Theorem 3.1" else "s--"
        axes[2].loglog(rows["points"], rows["labels"], style, label=f"{variant}, C = {C:g}")
    axes[2].set_title("labels' distance from one-hot")
    axes[2].set_xlabel("points N")
    axes[2].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    for ax in axes:
        ax.set_xscale("log", base=2)
    figure.tight_layout()
    return {"theorem": figure}


def tabulate(tables):
    """Labels by theorem, start, dimension and iteration: how many Lloyd moved, and how many the network has wrong."""
    rows = tables["labels"].groupby(["variant", "start", "d", "tau"], sort=False)
    shares = rows[["moved", "wrong", "clear", "wrong of clear"]].sum().reset_index()
    return {"labels": shares.assign(labels=rows.size().to_numpy() * N)}


def verdicts(tables) -> list[Verdict]:
    """Labels where labels move; the decay in the heads, and in the points for both theorems."""
    labels, heads, points = tables["labels"], tables["heads"], tables["points"]
    said = []
    for (variant, kind), rows in labels.groupby(["variant", "start"], sort=False):
        first = rows[rows["tau"] == 1]
        moved, total = first["moved"].sum(), len(first) * N
        found = (
            f"Lloyd moves {moved} of {total} labels; of {first['clear'].sum()} beyond the margin "
            f"{first['wrong of clear'].sum()} are wrong, of all {first['wrong'].sum()}"
        )
        holds = first["clear"].sum() > 0 == first["wrong of clear"].sum() and first["wrong"].sum() < 0.2 * moved
        said.append(judged(f"{variant}, {kind}: one block is one iteration", "up to the bound", found, bool(holds)))
        last = rows[rows["tau"] == 3]
        found = f"{last['wrong'].sum()} of {len(last) * N} labels differ, {last['moved'].sum()} moved"
        few = last["wrong"].sum() < 0.2 * last["moved"].sum()
        said.append(
            judged(f"{variant}, {kind}: three blocks are three iterations", "up to the bound", found, bool(few))
        )
    bound = theory(heads["heads"])
    for variant, rows in heads.groupby("variant"):
        slopes = [slope(part["heads"], part["label error"]) for _, part in rows.groupby("d")]
        found = "slopes " + ", ".join(f"{value:.2f}" for value in slopes) + " by d"
        said.append(judged(f"{variant}: the error in the heads M", f"slope {bound:.2f}", found, max(slopes) <= bound))
    for variant, rows in points.groupby("variant"):
        slopes = {C: slope(part["points"], part["labels"]) for C, part in rows.groupby("C")}
        found = ", ".join(f"C = {C:g}: {value:.2f}" for C, value in slopes.items())
        printed = "N^-1" if variant == "Theorem 3.1" else "N^-100, for any constant"
        near = all(abs(value + C) < 0.15 * C + 0.1 for C, value in slopes.items())
        said.append(judged(f"{variant}: the labels' distance from one-hot is N^-C", printed, found, near))
    return said


def findings(tables):
    """Every slope beside its theory."""
    heads, points = tables["heads"], tables["points"]
    fits = [
        f"{variant} d={d}: labels {slope(rows['heads'], rows['label error']):.2f}, "
        f"distance {slope(rows['heads'], rows['distance error']):.2f}"
        for (variant, d), rows in heads.groupby(["variant", "d"])
    ]
    first = points[points["variant"] == "Theorem 3.1"]
    rates = [f"C={C:g}: {slope(rows['points'], rows['E step']):.2f}" for C, rows in first.groupby("C")]
    return (
        f"Labels are compared from starts where Lloyd moves them (table), k = {K}, N = {N}; a network that returned "
        "its input would miss all that moved. "
        f"Slopes in M (sqrt(log M / M) has {theory(heads['heads']):.2f} on this grid): {'; '.join(fits)}. "
        f"Slopes of Theorem 3.1's E step in N (printed -1; N^-C is what C log N gives): {', '.join(rates)}."
    )
