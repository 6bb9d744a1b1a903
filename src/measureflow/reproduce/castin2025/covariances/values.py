"""Many random V beside the one of the figures: does A + A^T < 0 send covariances to zero whatever V is?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import torch
from torch import Tensor

from measureflow.attention import Attention, DotProduct, Field, MultiHead, NegativeSquaredDistance, Sinkhorn
from measureflow.reproduce.castin2025.fates import METHOD, NOT_FOLLOWED, follow
from measureflow.reproduce.verdicts import Verdict, corrected

METHOD_OF_MANY = replace(METHOD, limit=1e4)
STEPS = {"tiny": 300, "small": 1000, "paper": 5000}  # between two kept times, of which there are twelve
DRAWS = {"tiny": 6, "small": 60, "paper": 500}
KINDS = {"positive": "V = GGᵀ", "Gaussian": "V Gaussian"}
TIME = {"positive": 1e5, "Gaussian": 1e2}  # under a Gaussian V some runs circle for ever, which makes long flows dear
LEFT = ["finite time", "infinite time"]
SEED = 35


def budget(size: str) -> str:
    """Draws and times."""
    times = " and ".join(f"{time:g} ({KINDS[kind]})" for kind, time in TIME.items())
    steps = f"at most {STEPS[size]} steps between two kept times"
    return f"{DRAWS[size]} random Q, V and starts for each attention and kind of V, until time {times}, {steps}"


def softmax(Q: Tensor, V: Tensor) -> Field:
    """Softmax attention with K = -Q."""
    return Attention(DotProduct(Q, -Q), value=V)


def l2(Q: Tensor, V: Tensor) -> Field:
    """L2 attention with K = -Q."""
    return Attention(NegativeSquaredDistance(Q, -Q), value=V)


def sinkhorn(Q: Tensor, V: Tensor) -> Field:
    """Sinkhorn attention at epsilon = 1 with K = -Q."""
    return Attention(DotProduct(Q, -Q), Sinkhorn(epsilon=1.0), V)


def multi_head(Q: Tensor, V: Tensor) -> Field:
    """Two heads of width one with K = -Q."""
    kept = torch.stack([torch.diag(row) for row in torch.eye(2, dtype=V.dtype)])
    heads = Attention(DotProduct(Q[:, :, None], -Q[:, :, None]), value=V[:, None].expand(-1, 2, -1, -1))
    return MultiHead(heads, kept)


def draw(kind: str, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Q, V and the initial covariance, (B, 2, 2) each; Q and the start are the same for both kinds of V."""
    generator = torch.Generator().manual_seed(SEED)
    Q, G, X = (torch.randn(count, 2, 2, generator=generator, dtype=torch.float64) for _ in range(3))
    return Q / 2**0.25, G @ G.mT if kind == "positive" else G, X @ X.mT


def compute(attentions: dict[str, Callable[[Tensor, Tensor], Field]], size: str) -> pd.DataFrame:
    """One row for each attention, kind of V and draw: how it ended, and the growth of its largest eigenvalue."""
    parts, method = [], replace(METHOD_OF_MANY, max_steps=STEPS[size])
    for name, attention in attentions.items():
        for kind in KINDS:
            Q, V, S0 = draw(kind, DRAWS[size])
            found = follow(attention(Q, V), S0, 12, time=TIME[kind], method=method)
            largest = torch.linalg.eigvalsh(found.limits)[:, -1] / torch.linalg.eigvalsh(S0)[:, -1]
            part = {"attention": name, "V": kind, "ending": found.ending, "largest": largest.numpy()}
            parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """For each attention and kind of V: runs, how many are near zero, and how many left in finite or infinite time."""
    left, lost = table["ending"].isin(LEFT), table["ending"] == NOT_FOLLOWED
    stays = ~left & ~lost
    counted = table.assign(
        zero=stays & (table["largest"] < 1e-2), blow_up=table["ending"] == "finite time",
        diverge=table["ending"] == "infinite time", elsewhere=stays & (table["largest"] >= 1e-2), not_followed=lost,
    )  # fmt: skip
    counts = counted.groupby(["attention", "V"], sort=False)[
        ["zero", "blow_up", "diverge", "elsewhere", "not_followed"]
    ].sum()
    return counts.assign(runs=table.groupby(["attention", "V"], sort=False).size()).reset_index()


def followed(row: pd.Series) -> int:
    """How many runs of a row of the summary did not turn stiff."""
    return row["runs"] - row["not_followed"]


def in_words(rows: pd.DataFrame) -> str:
    """What became of one attention, its summary with V as the index; of the runs that could be followed."""
    gaussian, positive = rows.loc["Gaussian"], rows.loc["positive"]
    lost = rows["not_followed"].sum()
    return (
        f"V Gaussian: {gaussian['blow_up'] + gaussian['diverge']} of {followed(gaussian)} leave; "
        f"V = GGᵀ: {positive['zero']} of {followed(positive)} go to zero"
    ) + (f"; {lost} more turn stiff and are not followed" if lost else "")


def tabulate(table: pd.DataFrame) -> pd.DataFrame:
    """The summary with the runs away from zero told apart: those that settled there, and those still on the way."""
    away = (table["ending"] == "settled") & (table["largest"] >= 1e-2)
    settled = away.groupby([table["attention"], table["V"]], sort=False).sum().to_numpy()
    rows = summary(table)
    told = rows.assign(settled_elsewhere=settled, on_the_way=rows["elsewhere"] - settled)
    return told[[*rows.columns[:5], "settled_elsewhere", "on_the_way", "not_followed", "runs"]]


def findings(table: pd.DataFrame, kind: str) -> str:
    """What became of the runs of one attention under one kind of V."""
    (row,) = tabulate(table[table["V"] == kind]).to_dict("records")
    way = table.loc[(table["V"] == kind) & (table["ending"] == "still moving"), "largest"].max()
    return (
        f"of {row['runs'] - row['not_followed']} runs {row['zero']} fall below 0.01 of their start, "
        f"{row['blow_up'] + row['diverge']} leave, {row['settled_elsewhere']} settle elsewhere, "
        f"{row['on_the_way']} are still on the way at time {TIME[kind]:g}"
        + (f" (largest: {way:.2g} of its start)" if row["on_the_way"] else "")
        + (f"; {row['not_followed']} more turn stiff and are not followed" if row["not_followed"] else "")
    )


def verdicts(table: pd.DataFrame) -> list[Verdict]:
    """Section 4.5, behaviour 1: to zero independently of V; and the same for a positive V alone.

    A run that leaves or settles away from zero refutes a claim. One that is still on its way decides nothing.
    """
    said = []
    for name, part in tabulate(table).groupby("attention", sort=False):
        rows = part.set_index("V")
        n, left = rows["runs"] - rows["not_followed"], rows["blow_up"] + rows["diverge"]
        refuted, every = left + rows["settled_elsewhere"] > 0, (rows["zero"] == n) & (n > 0)
        word = "fails" if refuted["positive"] else "holds" if every["positive"] else "open"
        claim, printed = "A + Aᵀ < 0 sends all to zero", "independently of V"
        leave = "; ".join(f"{KINDS[kind]}: {left[kind]} of {n[kind]} leave" for kind in ("Gaussian", "positive"))
        any_v = corrected(f"{name}: {claim}, independently of V", printed, leave, bool(every.all()),
                          not refuted["positive"] and n["positive"] > 0)  # fmt: skip
        if not every.all() and not refuted.any():
            any_v = Verdict(any_v.claim, printed, leave, "open")
        found = findings(table[table["attention"] == name], "positive")
        said += [any_v, Verdict(f"{name}, V = GGᵀ alone: {claim}", printed, found, word)]
    return said
