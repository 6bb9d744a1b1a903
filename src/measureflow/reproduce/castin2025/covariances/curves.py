"""Runs seen evenly along their curves: of all the steps that the method took, those at equal parts of the way.

Even in time they would be badly drawn: a run may rest at a saddle for long and leave it in no time, and then a straight
line would cross the figure. The method itself steps often where a run moves fast.
"""

from __future__ import annotations

import torch
from torch import Tensor

from measureflow.attention import Field
from measureflow.flows import Dopri5
from measureflow.reproduce.castin2025.fates import METHOD, Fates, follow

ROLL = 512  # steps recorded before they are thinned


def follow_curves(field: Field, S0: Tensor, states: int, method: Dopri5 = METHOD) -> Fates:
    """The fates of covariances S0 (B, d, d), with ``states`` of each run that lie evenly along its curve."""
    roll = Roll(2 * states)
    fates = follow(field, S0, method=method, watch=roll)
    times, covariances = evenly(*roll.developed, states)
    return Fates(times, covariances, fates.blow_up_time, fates.ending)


class Roll:
    """Records the steps of a flow, and now and then keeps of each run no more than ``most``."""

    def __init__(self, most: int):
        self.most, self.times, self.covariances = most, [], []

    def __call__(self, times: Tensor, covariances: Tensor) -> None:
        """Record where each run is, times (B,) and covariances (B, d, d)."""
        self.times.append(times)
        self.covariances.append(covariances)
        if len(self.times) == ROLL:
            times, covariances = evenly(*self.developed, self.most)
            self.times, self.covariances = list(times), list(covariances)

    @property
    def developed(self) -> tuple[Tensor, Tensor]:
        """All that is kept: times (L, B) and covariances (L, B, d, d)."""
        return torch.stack(self.times), torch.stack(self.covariances)


def evenly(times: Tensor, covariances: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Of L recorded states (L, B, d, d) of each run ``count``, from where it began to where it came to rest.

    Each is the first beyond an equal part of the way; where a step is longer than such a part, its end comes twice.
    """
    way = way_along(covariances).T.contiguous()
    asked = torch.linspace(0, 1, count).to(way) * way[:, -1:]
    chosen = torch.searchsorted(way, asked).T  # (count, B)
    runs = torch.arange(times.shape[1])
    return times[chosen, runs], covariances[chosen, runs]


def way_along(covariances: Tensor) -> Tensor:
    """How far each run has come at each state, (L, B): in direction S / |S|, and in size |S| / (1 + |S|)."""
    size = torch.linalg.matrix_norm(covariances)[..., None].clamp_min(1e-300)
    place = torch.cat([covariances.flatten(-2) / size, size / (1 + size)], -1)
    steps = (place[1:] - place[:-1]).norm(dim=-1)
    return torch.cat([torch.zeros_like(steps[:1]), steps.cumsum(0)])
