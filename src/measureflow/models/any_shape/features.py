"""What a row knows at the start: how far its neighbours are, and a colour made of distances to landmarks."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

SHARES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32)  # of the rows: the distance to that many nearest is a fact
PATH_SHARES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)  # of the rows: how far they are along the best paths is a fact
UNIT = 3  # index of the share whose distance is the local unit of length
N_FACTS = 2 * len(SHARES) + 4
CLOSEST = 5e-3  # distances below this, in units of the spread of the set, are not told apart
CLOSER = 0.1  # ... nor those below this, in units of what is typical for the set


def squared_distances(y: Tensor) -> Tensor:
    """Squared distances (B, n, n) between the rows of y (B, n, d), by one matrix product."""
    half = y.square().sum(-1, keepdim=True) / 2
    return (2 * (half + half.mT - y @ y.mT)).clamp_min(0)


def local_facts(x: Tensor, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Facts (B, n, 16) about each row's surroundings, the log of its local unit (B, n, 1), and all squared distances.

    Rows are centred and of unit mean square. The facts are inputs: no gradient flows into them. Distances are counted
    in double precision and then rounded to ``dtype``, that of x if none is given, so that equal ones are equal on every
    processor: rows on a grid have many, and the trees of merges would depend on how they were rounded.
    """
    with torch.no_grad():
        (B, n, d), dtype = x.shape, dtype or x.dtype
        gaps, x = squared_distances(x.double()).to(dtype), x.to(dtype)
        ranks = [max(1, min(n - 1, round(share * n))) for share in SHARES]
        near = torch.from_numpy(np.sort(gaps.numpy(), -1)[..., ranks])
        typical = (0.5 * torch.log(near + CLOSEST**2 * d)).mean(1, keepdim=True)
        near = 0.5 * torch.log(near + CLOSEST**2 * d + CLOSER**2 * torch.exp(2 * typical))
        radius = torch.log1p(x.square().mean(-1, keepdim=True).sqrt())
        mean_gap = 0.5 * torch.log(gaps.mean(-1, keepdim=True) / d + CLOSEST**2)
        constants = x.new_tensor([math.log(d), math.log(n / 100)]).expand(B, n, 2)
        facts = torch.cat(
            [near - typical, (typical - 0.5 * math.log(d)).expand_as(near), constants, radius, mean_gap], -1
        )
        return facts, near[..., UNIT : UNIT + 1], gaps


def path_facts(paths: Tensor, log_scale: Tensor) -> Tensor:
    """Facts (B, n, 6): how far along the best paths 5, 10, 20, 40, 60 and 80 % of the rows are, in local units."""
    with torch.no_grad():
        n = paths.shape[-1]
        ranks = [min(n - 1, round(share * n)) for share in PATH_SHARES]
        near = torch.from_numpy(np.sort(paths.cpu().numpy(), -1)[..., ranks])
        return near.to(paths) - log_scale


def density_of(gaps: Tensor, log_scale: Tensor) -> Tensor:
    """One over the squared local unit (B, n), a little larger for rows far from the others, so that none are equal.

    Two rows may have the same unit, their distance; whichever stands first must not be preferred.
    """
    with torch.no_grad():
        spread = gaps.double().mean(-1)
        spread = (spread / spread.mean(-1, keepdim=True).clamp_min(1e-12)).to(gaps)
        return torch.exp(-2 * log_scale.squeeze(-1)) * (1 + 1e-4 * spread)


def landmark_features(gaps: Tensor, density: Tensor, m: int) -> Tensor:
    r"""Kernel features (B, n, m) :math:`e^{-|x_i - x_l|^2 / s}` of m landmark rows l far from one another.

    The first landmark is the row in the densest place, each next one the row farthest from those before in units of
    its own local scale, which passes over outliers. No chance is involved, and the order of the rows does not matter.
    """
    with torch.no_grad():
        batch = torch.arange(len(gaps), device=gaps.device)
        landmark, nearest, columns = density.argmax(-1), torch.full_like(density, torch.inf), []
        for _ in range(m):
            column = gaps[batch, landmark]
            columns.append(column)
            nearest = torch.minimum(nearest, column)
            landmark = (nearest * density).argmax(-1)
        R = torch.stack(columns, -1)
        return torch.exp(-R / (0.3 * R.mean((1, 2), keepdim=True) + 1e-12))
