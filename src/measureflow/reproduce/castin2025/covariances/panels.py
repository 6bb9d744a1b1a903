"""A panel of Figures 1, 2, 4, 5, 6 and 7: a grid of 2 x 2 covariances, flowed, and drawn in the cone or the disc."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from measureflow.attention import Field
from measureflow.flows import numerical_rank
from measureflow.reproduce.castin2025.covariances.curves import follow_curves
from measureflow.reproduce.castin2025.covariances.parameters import Parameters
from measureflow.reproduce.castin2025.fates import METHOD, NOT_FOLLOWED, Fates

SHARE = {"tiny": 40, "small": 2, "paper": 1}  # one in so many of the authors' initial covariances along each side
STATES = {"tiny": 24, "small": 48, "paper": 64}  # drawn along each curve


@dataclass(frozen=True)
class Panel:
    """One attention with its matrices; ``reach`` is the half side of the square of initial covariances.

    ``side`` is how many of them the authors' script has along each side of it.
    """

    name: str
    caption: str
    attention: Callable[[Parameters], Field]
    parameters: Parameters
    reach: float = 0.5
    side: int = 10
    view: tuple[float, float] = (20, -60)  # elevation and azimuth of the cone
    limit: float = 1e6  # growth at which a run has left

    def starts(self, size: str) -> Tensor:
        """The initial covariances at a size, (B, 2, 2)."""
        return initial_covariances(max(5, self.side // SHARE[size]), self.reach)


def initial_covariances(side: int, reach: float) -> Tensor:
    """Covariances of trace one whose (a - b, 2 c) lie on a square grid inside the unit disc, (B, 2, 2)."""
    line = torch.linspace(-reach, reach, side, dtype=torch.float64)
    x, y = (t.flatten() for t in torch.meshgrid(line, line, indexing="ij"))
    inside = x**2 + y**2 < 1 - 1e-9
    x, y = x[inside], y[inside]
    return torch.stack([torch.stack([1 + x, y], -1), torch.stack([y, 1 - x], -1)], -2) / 2


def to_cone(S: Tensor) -> Tensor:
    """(a - b, 2 c, a + b) of [[a, c], [c, b]]: non-negative matrices are the cone z >= |(x, y)|."""
    a, b, c = S[..., 0, 0], S[..., 1, 1], S[..., 0, 1]
    return torch.stack([a - b, 2 * c, a + b], -1)


def budget(panels: list[Panel], size: str) -> str:
    """How many starts each panel has, and how many the authors' script."""
    ours, theirs = ([len(panel.starts(which)) for panel in panels] for which in (size, "paper"))
    names = ", ".join(f"({panel.name}) {a} of {b}" for panel, a, b in zip(panels, ours, theirs, strict=True))
    return f"starts of the authors' grid, by panel: {names}"


def compute(panels: list[Panel], size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """Two tables: every state of every curve, and the fate of every run. No panel is long enough for the cache."""
    curves, fates = [], []
    for panel in panels:
        S0 = panel.starts(size)
        method = replace(METHOD, limit=panel.limit)
        found = follow_curves(panel.attention(panel.parameters), S0, STATES[size], method)
        curves.append(_curves(panel.name, found))
        fates.append(_fates(panel.name, found))
    return {"curves": pd.concat(curves, ignore_index=True), "fates": pd.concat(fates, ignore_index=True)}


def _curves(name: str, found: Fates) -> pd.DataFrame:
    xyz = to_cone(found.covariances)
    states, runs = xyz.shape[:2]
    columns = {"run": np.tile(np.arange(runs), states), "time": found.times.flatten().numpy()}
    return pd.DataFrame({"panel": name} | columns | dict(zip("xyz", xyz.flatten(0, 1).T.numpy(), strict=True)))


def _fates(name: str, found: Fates) -> pd.DataFrame:
    values = torch.linalg.eigvalsh(found.limits)
    table = {
        "panel": name,
        "run": np.arange(len(values)),
        "ending": found.ending,
        "blow_up_time": found.blow_up_time.numpy(),
        "rank": numerical_rank(found.limits, 1e-4).numpy(),
        "smallest": values[:, 0].numpy(),
        "largest": values[:, 1].numpy(),
    }
    return pd.DataFrame(table)


def summary(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """One row a panel: how many runs converged, to which rank, how many left, and how many were not followed."""
    rows = []
    for name, part in tables["fates"].groupby("panel", sort=False):
        stays = part[part.ending.isin(["settled", "still moving"])]
        ranks = {f"rank_{r}": int((stays["rank"] == r).sum()) for r in range(3)}
        left = {kind: int((part.ending == kind).sum()) for kind in ("finite time", "infinite time")}
        lost = {"not followed": int((part.ending == NOT_FOLLOWED).sum())}
        rows.append({"panel": name, "runs": len(part), "converged": len(stays)} | ranks | left | lost)
    return pd.DataFrame(rows).set_index("panel")


def limit_directions(tables: dict[str, pd.DataFrame], panel: str) -> int:
    """How many lines through the origin the rank-one limits of a panel lie on, to 1 % of the disc."""
    ends = tables["curves"].query("panel == @panel").groupby("run")[["x", "y", "z"]].last()
    fates = tables["fates"].query("panel == @panel").set_index("run")
    ends = ends[(fates["rank"] == 1) & fates["ending"].isin(["settled", "still moving"])]
    places = ends[["x", "y"]].to_numpy() / ends[["z"]].to_numpy()
    found: list[np.ndarray] = []
    for place in places:
        if not any(np.linalg.norm(place - other) < 0.02 for other in found):
            found.append(place)
    return len(found)


def in_words(tables: dict[str, pd.DataFrame], panels: list[Panel]) -> str:
    """The summary as sentences, one for each panel."""
    counts = summary(tables)
    return " ".join(_sentence(panel, counts.loc[panel.name]) for panel in panels)


def _sentence(panel: Panel, row: pd.Series) -> str:
    ranks = ", ".join(f"{row[f'rank_{r}']} to rank {r}" for r in range(3) if row[f"rank_{r}"])
    parts = [f"{row['converged']} converge ({ranks})"] if row["converged"] else []
    parts += [f"{row[kind]} diverge in {kind}" for kind in ("finite time", "infinite time") if row[kind]]
    parts += [f"{row['not followed']} turn stiff and are not followed"] if row["not followed"] else []
    return f"Panel {panel.name} ({panel.caption}): of {row['runs']} runs, {' and '.join(parts)}."
