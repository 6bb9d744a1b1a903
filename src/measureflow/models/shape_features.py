"""What a row knows at the start: how far its neighbours are, and a colour made of distances to landmarks."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

SHARES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32)  # of the rows: the distance to that many nearest is a fact
UNIT = 3  # index of the share whose distance is the local unit of length
N_FACTS = 2 * len(SHARES) + 4
CLOSEST = 5e-3  # distances below this, in units of the spread of the set, are not told apart
CLOSER = 0.1  # ... nor those below this, in units of what is typical for the set


def squared_distances(y: Tensor) -> Tensor:
    """Squared distances (B, n, n) between the rows of y (B, n, d), by one matrix product."""
    half = y.square().sum(-1, keepdim=True) / 2
    return (2 * (half + half.mT - y @ y.mT)).clamp_min(0)


def local_facts(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Facts (B, n, 16) about each row's surroundings, the log of its local unit (B, n, 1), and all squared distances.

    Rows are centred and of unit mean square. The facts are inputs: no gradient flows into them.
    """
    with torch.no_grad():
        B, n, d = x.shape
        gaps = squared_distances(x)
        ranks = [max(1, min(n - 1, round(share * n))) for share in SHARES]
        near = torch.from_numpy(np.partition(gaps.numpy(), sorted(set(ranks)), -1)[..., ranks])
        typical = (0.5 * torch.log(near + CLOSEST**2 * d)).mean(1, keepdim=True)
        near = 0.5 * torch.log(near + CLOSEST**2 * d + CLOSER**2 * torch.exp(2 * typical))
        radius = torch.log1p(x.square().mean(-1, keepdim=True).sqrt())
        mean_gap = 0.5 * torch.log(gaps.mean(-1, keepdim=True) / d + CLOSEST**2)
        constants = x.new_tensor([math.log(d), math.log(n / 100)]).expand(B, n, 2)
        facts = torch.cat(
            [near - typical, (typical - 0.5 * math.log(d)).expand_as(near), constants, radius, mean_gap], -1
        )
        return facts, near[..., UNIT : UNIT + 1], gaps


def first_colours(gaps: Tensor, log_scale: Tensor, m: int) -> Tensor:
    r"""Colours (B, n, m): kernel features :math:`e^{-|x_i - x_l|^2 / s}` of m landmark rows l far from one another.

    The first landmark is the row in the densest place, each next one the row farthest from those before in units of
    its own local scale, which passes over outliers. No chance is involved, and the order of the rows does not matter.
    """
    with torch.no_grad():
        batch, unit = torch.arange(len(gaps), device=gaps.device), torch.exp(-2 * log_scale.squeeze(-1))
        landmark, nearest, columns = unit.argmax(-1), torch.full_like(unit, torch.inf), []
        for _ in range(m):
            column = gaps[batch, landmark]
            columns.append(column)
            nearest = torch.minimum(nearest, column)
            landmark = (nearest * unit).argmax(-1)
        R = torch.stack(columns, -1)
        return on_sphere(torch.exp(-R / (0.3 * R.mean((1, 2), keepdim=True) + 1e-12)))


def on_sphere(colour: Tensor) -> Tensor:
    """Colours made zero in the mean over the rows, and of unit length."""
    colour = colour - colour.mean(1, keepdim=True)
    return colour / (colour.square().sum(-1, keepdim=True) + 1e-4).sqrt()
