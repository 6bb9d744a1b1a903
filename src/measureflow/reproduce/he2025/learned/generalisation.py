"""Proposition 3.1 and Theorem 3.3: training on finitely many sets, and the loss on new ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
import pandas as pd
import torch

from measureflow.measures.he_mixtures import HeMixtures, LabelledSets
from measureflow.models.checkpoints import write_atomically
from measureflow.models.in_context import InContextClusterer
from measureflow.reproduce.axes import ticks_at
from measureflow.reproduce.he2025.learned import sizes
from measureflow.reproduce.he2025.learned.trained import TEST_SEED, scored
from measureflow.reproduce.verdicts import Verdict, judged
from measureflow.training.in_context import train

TITLE = "He 2025, Proposition 3.1 and Theorem 3.3: the number of training sets"
SETS = {"tiny": (4, 16), "small": (16, 64, 256, 1024), "paper": (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)}
SEEDS = {"tiny": 1, "small": 2, "paper": 10}
MIXTURES = HeMixtures(n_per_class=8, minimum_distance=30.0)


@dataclass(frozen=True)
class Pool:
    """A fixed number of training sets, from which every batch is drawn: empirical risk instead of the true one."""

    mixtures: HeMixtures
    n_sets: int
    seed: int

    @cached_property
    def sets(self) -> LabelledSets:
        """All of them."""
        return self.mixtures.sample(self.n_sets, torch.Generator().manual_seed(10_000 + self.seed))

    @property
    def n_classes(self) -> int:
        """Of every set."""
        return self.mixtures.n_classes

    @property
    def dimension(self) -> int:
        """Of every point."""
        return self.mixtures.dimension

    def sample(self, n_sets: int, generator: torch.Generator) -> LabelledSets:
        """Sets drawn from the pool, with repetition."""
        chosen = torch.randint(self.n_sets, (n_sets,), generator=generator)
        return LabelledSets(*(part[chosen] for part in self.sets))


def budget(size: str) -> str:
    """Steps, sets and seeds; the paper has a bound and no run."""
    plan = sizes.SIZES[size]
    counts = ", ".join(map(str, SETS[size]))
    return (
        f"{plan.recipe.n_steps} steps on {counts} sets of 32 points, {SEEDS[size]} seeds; the paper has a bound, no run"
    )


def compute(size, cache):
    """Loss and ARI on the training sets and on new ones, by their number; finished rows are read back."""
    rows = []
    for n_sets in SETS[size]:
        for seed in range(SEEDS[size]):
            kept = cache / f"n{n_sets}-seed{seed}.csv"
            if not kept.exists():
                write_atomically(kept, pd.DataFrame([_row(n_sets, seed, size)]).to_csv(index=False).encode())
            rows.append(pd.read_csv(kept))
    return {"sets": pd.concat(rows, ignore_index=True)}


def _row(n_sets: int, seed: int, size: str) -> dict:
    plan, pool = sizes.SIZES[size], Pool(MIXTURES, n_sets, seed)
    generator = torch.Generator().manual_seed(seed)
    model = InContextClusterer(pool.n_classes, pool.dimension, generator=generator)
    source = cast(HeMixtures, pool)  # all that training asks of it
    train(model, source, replace(plan.recipe, n_per_class=None), generator=generator)
    seen = scored(model, pool.sample(min(n_sets, plan.n_test), torch.Generator().manual_seed(TEST_SEED)))
    new = scored(model, MIXTURES.sample(plan.n_test, torch.Generator().manual_seed(TEST_SEED)))
    return {"sets": n_sets, "seed": seed, "training loss": seen["loss"], "loss": new["loss"], "ARI": new["ARI"],
            "gap": new["loss"] - seen["loss"]}  # fmt: skip


def slope(table: pd.DataFrame) -> float:
    """The power of n with which the mean gap falls; nan where it is not positive throughout."""
    mean = table.groupby("sets")["gap"].mean()
    if (mean <= 0).any():
        return float("nan")
    return float(np.polyfit(np.log(mean.index), np.log(mean), 1)[0])


def tabulate(tables):
    """Means over seeds."""
    return {"sets": tables["sets"].groupby("sets").mean().drop(columns="seed").round(3).reset_index()}


def verdicts(tables) -> list[Verdict]:
    """The gap falls at least as n^-1/2, and the loss on new sets falls."""
    table = tables["sets"]
    loss, power = table.groupby("sets")["loss"].mean(), slope(table)
    found = f"{loss.iloc[0]:.3f} at {loss.index[0]} to {loss.iloc[-1]:.3f} at {loss.index[-1]}"
    return [
        judged("the generalisation gap", "falls as n^-1/2", f"as n^{power:.2f}", bool(power <= -0.4)),
        judged("the loss on new sets falls with n", "n^-1/4", found, bool(loss.is_monotonic_decreasing)),
    ]


def render(tables):
    """Training loss, loss on new sets and their gap against n."""
    import matplotlib.pyplot as plt

    mean = tables["sets"].groupby("sets").mean()
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for name in ("training loss", "loss"):
        left.semilogx(mean.index, mean[name], "o-", label={"loss": "loss on new sets"}.get(name, name))
    right.loglog(mean.index, mean["gap"].clip(lower=1e-4), "o-", label="gap")
    right.loglog(mean.index, mean["gap"].iloc[0] * (mean.index / mean.index[0]) ** -0.5, "k:", label="n^-1/2")
    for axis in (left, right):
        ticks_at(axis, mean.index)
        axis.set_xlabel("training sets n")
        axis.legend(frameon=False, fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    return {"generalisation": figure}


def findings(tables):
    """Losses by n."""
    mean = tables["sets"].groupby("sets")[["training loss", "loss", "ARI"]].mean()
    rows = "; ".join(
        f"n = {n}: {row['training loss']:.2f} and {row['loss']:.2f}, ARI {row['ARI']:.2f}" for n, row in mean.iterrows()
    )
    return f"Training on n sets alone, loss on these and on new ones: {rows}."
