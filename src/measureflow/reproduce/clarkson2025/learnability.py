"""The question the paper closes with: does training the four attentions find Lloyd's algorithm, keep it, or better it?

The transformer of Theorem 1 at finite gamma has all its matrices as parameters. It is trained on fresh sets to lower
the log of the k-means objective of its last centres, from Lloyd's own weights and from random ones, and judged on new
sets beside Lloyd's algorithm from the same first centres.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from measureflow.circuits import kmeans_transformer
from measureflow.circuits.clarkson import rows
from measureflow.circuits.clarkson.kmeans import KMeansTransformer
from measureflow.models.checkpoints import write_atomically
from measureflow.reproduce.progress import counted
from measureflow.reproduce.verdicts import Verdict, judged, unsettled

TITLE = "Clarkson 2025, the closing question: is Lloyd's algorithm learned?"
D, K, N, LAYERS, GAMMA = 2, 3, 60, 4, 10.0
SPREAD = 4.0  # of the centres, in standard deviations of the noise
STEPS = {"tiny": 8, "small": 600, "paper": 20_000}
SEEDS = {"tiny": 1, "small": 2, "paper": 10}
BATCH, RATE, TESTS = 32, 3e-3, {"tiny": 16, "small": 1000, "paper": 1000}
STARTS = ("Lloyd's weights", "random weights")
LONG = 100  # iterations of Lloyd until it has come to rest
AGREE = "labels as Lloyd's"
NEAR = 0.05  # of the log objective: five per cent


def budget(size: str) -> str:
    """Steps, seeds and sets; the paper trains nothing."""
    return (
        f"{STEPS[size]:,} steps of Adam on {BATCH} sets of {N} points, {SEEDS[size]} seeds for each start, k = {K}, "
        f"d = {D}, {LAYERS} layers, gamma = {GAMMA:g}, {TESTS[size]} test sets; the paper trains nothing"
    )


def draw(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Points (count, N, D) of K round clusters, and K of them as first centres."""
    centers = SPREAD * torch.randn(count, K, D, generator=generator)
    label = torch.randint(K, (count, N, 1), generator=generator).expand(-1, -1, D)
    points = centers.gather(1, label) + torch.randn(count, N, D, generator=generator)
    return points, points[:, :K].clone()


def log_objective(points: Tensor, centers: Tensor) -> Tensor:
    """The log of the mean squared distance to the nearest centre, for each set."""
    return torch.cdist(points, centers).square().amin(-1).mean(-1).log()


def lloyd(points: Tensor, centers: Tensor, iterations: int) -> Tensor:
    """Lloyd's algorithm for a batch; an empty cluster moves to the mean of all points, as the circuit's does."""
    for _ in range(iterations):
        member = torch.nn.functional.one_hot(torch.cdist(points, centers).argmin(-1), K).to(points)
        count = member.sum(1)[..., None]
        centers = torch.where(count > 0, member.mT @ points / count.clamp_min(1), points.mean(1, keepdim=True))
    return centers


def agreement(found: Tensor, others: Tensor, k: int) -> Tensor:
    """The share of labels (B, N) in 0..k-1 that two clusterings have in common, under the best names, for each set.

    >>> agreement(torch.tensor([[0, 0, 1, 2]]), torch.tensor([[2, 2, 0, 0]]), 3)
    tensor([0.7500])
    """
    named = [torch.tensor(names)[found] for names in permutations(range(k))]
    return torch.stack([(labels == others).float().mean(-1) for labels in named]).amax(0)


def begin(start: str, seed: int) -> KMeansTransformer:
    """The circuit with its matrices as parameters, or as many random ones, small enough not to saturate."""
    net = kmeans_transformer(D, K, rows.lloyd(GAMMA), n_layers=LAYERS, learn=True, dtype=torch.float32)
    if start == "random weights":
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for p in net.parameters():
                p.copy_(0.3 * torch.randn(p.shape, generator=generator) / p.shape[-1] ** 0.5)
    return net


def train(net: KMeansTransformer, steps: int, seed: int) -> list[float]:
    """Adam with a cosine on the log objective, on fresh sets at every step; the loss of each."""
    generator = torch.Generator().manual_seed(1000 + seed)
    optimiser = torch.optim.Adam(net.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    losses = []
    for _ in range(steps):
        points, first = draw(BATCH, generator)
        optimiser.zero_grad()
        loss = log_objective(points, net(points, first)).mean()
        loss.backward()
        losses.append(loss.item())
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return losses


def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """One row for each start and seed: the log objective minus Lloyd's, before and after training, on the same sets."""
    parts = []
    jobs = [(start, seed) for start in STARTS for seed in range(SEEDS[size])]
    for start, seed in counted(jobs, "learnability"):
        kept = cache / f"start{STARTS.index(start)}-seed{seed}.csv"
        if not kept.exists():
            text = pd.DataFrame([_row(start, seed, size)]).to_csv(index=False)
            write_atomically(kept, text.encode())
        parts.append(pd.read_csv(kept))
    return {"runs": pd.concat(parts, ignore_index=True)}


def _row(start: str, seed: int, size: str) -> dict:
    points, first = draw(TESTS[size], torch.Generator().manual_seed(7))
    net, same = begin(start, seed), log_objective(points, lloyd(points, first, LAYERS))
    gap = lambda centers: float((log_objective(points, centers) - same).mean())  # noqa: E731
    weights = torch.cat([p.detach().flatten() for p in net.parameters()]).clone()
    with torch.no_grad():
        before = gap(net(points, first))
    losses = np.array(train(net, STEPS[size], seed))
    second, third = (losses[i * len(losses) // 4 : (i + 1) * len(losses) // 4].mean() for i in (1, 2))
    moved = torch.cat([p.detach().flatten() for p in net.parameters()]) - weights
    with torch.no_grad():
        out = net(points, first)
    wins = float((log_objective(points, out) < same - 1e-6).float().mean())
    ours, lloyds = (torch.cdist(points, c).argmin(-1) for c in (out, lloyd(points, first, LAYERS)))
    same_clusters = float(agreement(ours, lloyds, K).mean())
    return {
        "start": start, "seed": seed, "before": before, "after": gap(out), "sets where it beats Lloyd": wins,
        AGREE: same_clusters,
        "one mean for all": gap(points.mean(1, keepdim=True).expand(-1, K, -1)),
        "Lloyd at rest": gap(lloyd(points, first, LONG)), "weights moved": float(moved.norm() / weights.norm()),
        "falling": float(second - third),
    }  # fmt: skip


def tabulate(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Every run."""
    return {"runs": tables["runs"].round(4)}


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """Kept, bettered, found: each judged on all seeds, against Lloyd with as many iterations from the same centres."""
    by = {start: tables["runs"].query("start == @start") for start in STARTS}
    after = {
        start: f"{_span(part['after'])} after training, {_span(part['before'])} before" for start, part in by.items()
    }
    mine, theirs = by["Lloyd's weights"], by["random weights"]
    agree = _span(mine[AGREE])
    bettered = f"{after[STARTS[0]]}; Lloyd at rest {_span(mine['Lloyd at rest'])}"
    return [
        judged("from Lloyd's weights, training stays within 5 % of Lloyd's objective", "left open", after[STARTS[0]],
               bool((mine["after"] <= NEAR).all())),
        judged("from Lloyd's weights, 19 of 20 labels remain Lloyd's, whatever their names", "left open", agree,
               bool((mine[AGREE] >= 0.95).all())),
        judged("from Lloyd's weights, training finds a better objective than Lloyd", "left open", bettered,
               bool((mine["after"] < -0.01).all())),
        _found(theirs, after[STARTS[1]]),
    ]  # fmt: skip


def _found(part: pd.DataFrame, words: str) -> Verdict:
    """Whether random weights find Lloyd's; a run whose loss still fell when the rate began to fade cannot tell."""
    claim = "from random weights, training comes within 5 % of Lloyd's objective"
    near = bool((part["after"] <= NEAR).all())
    if not near and (part["falling"] > NEAR).any():
        fell = f"the loss fell by {_span(part['falling'])} from the second quarter of training to the third"
        return unsettled(claim, "left open", f"{words}; {fell}")
    return judged(claim, "left open", words, near)


def _span(values: pd.Series) -> str:
    return f"{values.min():.3f}" if len(values) == 1 else f"{values.min():.3f} to {values.max():.3f}"


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """Before and after training, for both starts, beside Lloyd at rest and one mean for all."""
    import matplotlib.pyplot as plt

    runs = tables["runs"]
    figure, axis = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
    for start, colour in zip(STARTS, ("#1f6feb", "#d98032"), strict=True):
        part = runs.query("start == @start")
        axis.plot(
            [0, 1], part[["before", "after"]].to_numpy().T, "o-", color=colour, label=[start, *[None] * (len(part) - 1)]
        )
    axis.axhline(0, color="0.3", lw=0.8)
    axis.axhline(runs["Lloyd at rest"].mean(), color="0.3", ls="--", lw=0.8, label="Lloyd at rest")
    axis.axhline(runs["one mean for all"].mean(), color="0.3", ls=":", lw=0.8, label="one mean for all")
    axis.set_xticks([0, 1], ["before training", "after training"])
    axis.set_ylabel(f"log objective minus Lloyd's\nafter {LAYERS} iterations")
    axis.set_yscale("symlog", linthresh=0.1)
    axis.set_xlim(-0.1, 1.1)
    axis.set_ylim(-0.2, 4)
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    return {"learnability": figure}


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What training did from both starts."""
    mean = tables["runs"].groupby("start", sort=False).mean(numeric_only=True)
    words = [
        f"from {start} {row['before']:+.3f} becomes {row['after']:+.3f}, better than Lloyd on "
        f"{row['sets where it beats Lloyd']:.0%} of the sets, {row[AGREE]:.0%} of labels as "
        f"Lloyd's, whatever the clusters are called, weights moved by {row['weights moved']:.2f} of their norm"
        for start, row in mean.iterrows()
    ]
    rest = mean["Lloyd at rest"].iloc[0]
    return (
        "The paper leaves learnability to future work. Log objective minus that of Lloyd with as many iterations from "
        f"the same first centres, mean over seeds: {'; '.join(words)}. Lloyd run until it rests has {rest:+.3f}."
    )
