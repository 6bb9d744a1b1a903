"""Covariances flowed until they settle, leave for infinity, or a very long time has passed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from measureflow.attention import Field
from measureflow.flows import Dopri5, integrate
from measureflow.measures import Gaussian

TIME = 1e6  # limits approached like 1/t are then within 1e-6
STILL = 1e-6  # a run has settled when it moves by less than this share of itself while time grows by a half
METHOD = Dopri5(rtol=1e-8, atol=1e-12, limit=1e7, max_steps=20_000)


@dataclass(frozen=True)
class Fates:
    """Every run's covariances (states, B, d, d) at its times (states, B), and how it ended, (B,)."""

    times: Tensor
    covariances: Tensor
    blow_up_time: Tensor  # infinity for those that did not blow up
    ending: list[str]  # "settled", "still moving", "finite time" or "infinite time"

    @property
    def limits(self) -> Tensor:
        """The last covariance of each run, (B, d, d)."""
        return self.covariances[-1]


def follow(field: Field, S0: Tensor, states: int = 48) -> Fates:
    """Flow covariances S0 (B, d, d) with zero mean; ``states`` of them are kept, evenly in the logarithm of time.

    A settled run is left where it is: an explicit method would otherwise creep along a limit it reached long ago.
    """
    clock = torch.cat([S0.new_zeros(1), torch.logspace(-2, math.log10(TIME), states - 1).to(S0)])
    mu = Gaussian.trusted(torch.zeros_like(S0[..., 0]), S0)
    gone, kept = S0.new_full(S0.shape[:1], torch.inf), [S0]
    words = ["still moving"] * len(S0)
    for now, later in pairwise(clock):
        moving = torch.tensor([word == "still moving" for word in words])
        if moving.any():
            path = integrate(field, mu, [torch.where(moving, later - now, 0.0)], method=METHOD)
            left = moving & torch.tensor([word != "none" for word in path.divergence])
            gone = torch.where(left, now + path.blow_up_time, gone)
            settled = moving & ~left & _still(mu.covariance, path[-1].covariance)
            mu = path[-1]
            words = [
                path.divergence[i] if left[i] else "settled" if settled[i] else word for i, word in enumerate(words)
            ]
        kept.append(mu.covariance)
    times, covariances = clock[:, None].expand(-1, len(S0)), torch.stack(kept)
    return _crowded_at_blow_up(field, Fates(times, covariances, gone, words))


def _still(before: Tensor, after: Tensor) -> Tensor:
    return torch.linalg.matrix_norm(after - before) <= STILL * torch.linalg.matrix_norm(after)


def _crowded_at_blow_up(field: Field, fates: Fates) -> Fates:
    """The same runs, those that blow up seen at times that crowd towards the blow-up."""
    gone = torch.isfinite(fates.blow_up_time)
    if not gone.any():
        return fates
    left = torch.logspace(0, -6, len(fates.times)).to(fates.times)
    times, covariances = fates.times.clone(), fates.covariances.clone()
    times[:, gone] = fates.blow_up_time[gone] * (1 - left[:, None])
    S0 = fates.covariances[0]
    start = Gaussian.trusted(torch.zeros_like(S0[..., 0]), S0)
    steps = torch.where(gone, times.diff(dim=0), 0.0)
    covariances[:, gone] = integrate(field, start, list(steps), method=METHOD).covariances[:, gone]
    return Fates(times, covariances, fates.blow_up_time, fates.ending)
