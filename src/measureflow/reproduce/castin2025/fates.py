"""Covariances flowed until they settle, leave for infinity, or a very long time has passed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from measureflow.attention import Field
from measureflow.flows import Dopri5, Outcome, integrate
from measureflow.measures import Gaussian

TIME = 1e6  # limits approached like 1/t are then within 1e-6
NOT_FOLLOWED = Outcome.OUT_OF_STEPS.value
STILL = 1e-6  # a run has settled when it moves by less than this share of itself from one kept time to the next
METHOD = Dopri5(rtol=1e-7, atol=1e-12, limit=1e6, max_steps=20_000)


@dataclass(frozen=True)
class Fates:
    """Every run's covariances (states, B, d, d) at its times (states, B), and how it ended, (B,)."""

    times: Tensor
    covariances: Tensor
    blow_up_time: Tensor  # infinity for those that did not blow up
    ending: list[str]  # "settled", "still moving", "finite time", "infinite time" or `NOT_FOLLOWED`

    @property
    def limits(self) -> Tensor:
        """The last covariance of each run, (B, d, d)."""
        return self.covariances[-1]


def follow(
    field: Field,
    S0: Tensor,
    states: int = 48,
    *,
    drawn: bool = True,
    time: float = TIME,
    still: float = STILL,
    method: Dopri5 = METHOD,
) -> Fates:
    """Flow covariances S0 (B, d, d) with zero mean; ``states`` of them are kept, evenly in the logarithm of time.

    ``drawn`` asks for curves seen at times that suit them, which costs a second flow. A settled run is left where it
    is: an explicit method would otherwise creep along a limit it reached long ago. A stiff run that takes all the steps
    of the method between two kept times is left there, as not followed.
    """
    clock = torch.cat([S0.new_zeros(1), torch.logspace(-2, math.log10(time), states - 1).to(S0)])
    mu = Gaussian.trusted(torch.zeros_like(S0[..., 0]), S0)
    gone, kept = S0.new_full(S0.shape[:1], torch.inf), [S0]
    words = ["still moving"] * len(S0)
    for now, later in pairwise(clock):
        moving = torch.tensor([word == "still moving" for word in words])
        if moving.any():
            path = integrate(field, mu, [torch.where(moving, later - now, 0.0)], method=method)
            gone = torch.where(moving, now + path.blow_up_time, gone)
            settled = _still(mu.covariance, path[-1].covariance, still)
            mu = path[-1]
            grown = torch.linalg.matrix_norm(mu.covariance) > method.limit * torch.linalg.matrix_norm(S0)
            outcomes = path.outcome if isinstance(path.outcome, list) else [path.outcome]
            news = zip(moving, outcomes, grown.tolist(), settled.tolist(), words, strict=True)
            words = [_word(how, far, near) if moves else old for moves, how, far, near, old in news]
        kept.append(mu.covariance)
    fates = Fates(clock[:, None].expand(-1, len(S0)), torch.stack(kept), gone, words)
    return _well_drawn(field, fates, method) if drawn else fates


def _word(outcome: Outcome, grown: bool, settled: bool) -> str:
    """How a run stands; one that grew beyond the limit bit by bit takes infinite time to leave."""
    if outcome is not Outcome.FINISHED:
        return outcome.value
    return "infinite time" if grown else "settled" if settled else "still moving"


def _still(before: Tensor, after: Tensor, share: float) -> Tensor:
    return torch.linalg.matrix_norm(after - before) <= share * torch.linalg.matrix_norm(after)


def _well_drawn(field: Field, fates: Fates, method: Dopri5) -> Fates:
    """The same runs seen at times of their own: evenly along the curve, or crowding towards the blow-up."""
    gone = torch.isfinite(fates.blow_up_time)
    left = torch.logspace(0, -6, len(fates.times)).to(fates.times)
    to_blow_up = torch.where(gone, fates.blow_up_time, 0.0) * (1 - left[:, None])
    times = torch.where(gone, to_blow_up, _even_times(fates))
    S0 = fates.covariances[0]
    start = Gaussian.trusted(torch.zeros_like(S0[..., 0]), S0)
    covariances = integrate(field, start, list(times.diff(dim=0)), method=method).covariances
    covariances[-1] = torch.where(gone[:, None, None], covariances[-1], fates.limits)
    return Fates(times, covariances, fates.blow_up_time, fates.ending)


def _even_times(fates: Fates) -> Tensor:
    """Times (states, B) at which each run has done equal parts of its way, in direction and in size."""
    size = torch.linalg.matrix_norm(fates.covariances)[..., None]
    place = torch.cat([(fates.covariances.flatten(-2) / size), (size / (1 + size))], -1)
    way = torch.cat([place[:1, :, 0] * 0, (place[1:] - place[:-1]).norm(dim=-1).cumsum(0)])
    asked = torch.linspace(0, 0.999, len(way)).to(way)
    columns = [np.interp(asked * way[-1, i], way[:, i], fates.times[:, i]) for i in range(way.shape[1])]
    return torch.from_numpy(np.stack(columns, -1)).to(way)
