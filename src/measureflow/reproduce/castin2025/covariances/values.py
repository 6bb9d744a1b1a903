"""Many random V beside the one of the figures: does A + A^T < 0 send covariances to zero whatever V is?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import torch
from torch import Tensor

from measureflow.attention import Attention, DotProduct, Field, MultiHead, NegativeSquaredDistance, Sinkhorn
from measureflow.reproduce.castin2025.fates import METHOD, follow
from measureflow.reproduce.verdicts import Verdict, corrected

METHOD_OF_MANY = replace(METHOD, limit=1e4, max_steps=2000)
STIFF = "not followed: stiff"
DRAWS = {"tiny": 6, "small": 60, "paper": 500}
KINDS = {"positive": "V = GGᵀ", "Gaussian": "V Gaussian"}
TIME = {"positive": 1e5, "Gaussian": 1e2}  # under a Gaussian V some runs circle for ever, which makes long flows dear
LEFT = ["finite time", "infinite time"]
SEED = 35


def budget(size: str) -> str:
    """Draws and times."""
    times = " and ".join(f"{time:g} ({KINDS[kind]})" for kind, time in TIME.items())
    return f"{DRAWS[size]} random Q, V and starts for each attention and kind of V, until time {times}"


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
    """One row for each attention, kind of V and draw: how it ended, and its largest eigenvalue then."""
    rows = []
    for name, attention in attentions.items():
        for kind in KINDS:
            Q, V, S0 = draw(kind, DRAWS[size])
            for one in range(DRAWS[size]):
                mine = slice(one, one + 1)
                rows.append({"attention": name, "V": kind} | fate(attention(Q[mine], V[mine]), S0[mine], TIME[kind]))
    return pd.DataFrame(rows)


def fate(field: Field, S0: Tensor, time: float) -> dict[str, str | float]:
    """How one start ends, and its largest eigenvalue in units of the first; some turn stiff and cannot be followed."""
    try:
        found = follow(field, S0, 12, drawn=False, time=time, method=METHOD_OF_MANY)
    except RuntimeError as error:  # dopri5 says that it ran out of steps
        if "max_steps" not in str(error):
            raise
        return {"ending": STIFF, "largest": float("nan")}
    largest = torch.linalg.eigvalsh(found.limits)[0, -1] / torch.linalg.eigvalsh(S0)[0, -1]
    return {"ending": found.ending[0], "largest": largest.item()}


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """For each attention and kind of V: runs, how many are near zero, and how many left in finite or infinite time."""
    left = table["ending"].isin(LEFT)
    counted = table.assign(
        zero=~left & (table["largest"] < 1e-2), blow_up=table["ending"] == "finite time",
        diverge=table["ending"] == "infinite time", elsewhere=~left & (table["largest"] >= 1e-2),
        not_followed=table["ending"] == STIFF,
    )  # fmt: skip
    counts = counted.groupby(["attention", "V"], sort=False)[
        ["zero", "blow_up", "diverge", "elsewhere", "not_followed"]
    ].sum()
    return counts.assign(runs=table.groupby(["attention", "V"], sort=False).size()).reset_index()


def verdicts(table: pd.DataFrame) -> list[Verdict]:
    """Section 4.5, behaviour 1: to zero independently of V. It takes a positive V."""
    said = []
    for name, part in summary(table).groupby("attention", sort=False):
        rows = part.set_index("V")
        every = {kind: bool(rows.loc[kind, "zero"] == rows.loc[kind, "runs"]) for kind in KINDS}
        leave = int(rows.loc["Gaussian", ["blow_up", "diverge"]].sum())
        found = (
            f"V Gaussian: {leave} of {rows.loc['Gaussian', 'runs']} leave; "
            f"V = GGᵀ: {rows.loc['positive', 'zero']} of {rows.loc['positive', 'runs']} go to zero"
        )
        said.append(
            corrected(f"{name}: A + Aᵀ < 0 sends all to zero, independently of V", "independently of V", found,
                      every["positive"] and every["Gaussian"], every["positive"] and leave > 0)
        )  # fmt: skip
    return said
