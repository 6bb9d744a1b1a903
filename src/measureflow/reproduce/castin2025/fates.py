"""Covariances flowed until they settle, leave for infinity, or a very long time has passed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from measureflow.attention import Field
from measureflow.flows import Dopri5, Outcome, integrate
from measureflow.flows.state import State
from measureflow.measures import Gaussian

TIME = 1e6  # limits approached like 1/t are then within 1e-6
NOT_FOLLOWED = Outcome.OUT_OF_STEPS.value
STILL = 1e-6  # a run has settled when it moves by less than this share of itself from one kept time to the next
Watch = Callable[[Tensor, Tensor], object]
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
    time: float = TIME,
    still: float = STILL,
    method: Dopri5 = METHOD,
    watch: Watch | None = None,
) -> Fates:
    """Flow covariances S0 (B, d, d) with zero mean; ``states`` of them are kept, evenly in the logarithm of time.

    ``watch`` is called with the times (B,) and covariances at every step of the method. A settled run is left where it
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
            step = torch.where(moving, later - now, 0.0)
            path = integrate(field, mu, [step], method, callback=_since(now, watch) if watch else None)
            gone = torch.where(moving, now + path.blow_up_time, gone)
            settled = _still(mu.covariance, path[-1].covariance, still)
            mu = path[-1]
            grown = torch.linalg.matrix_norm(mu.covariance) > method.limit * torch.linalg.matrix_norm(S0)
            outcomes = path.outcome if isinstance(path.outcome, list) else [path.outcome]
            news = zip(moving, outcomes, grown.tolist(), settled.tolist(), words, strict=True)
            words = [_word(how, far, near) if moves else old for moves, how, far, near, old in news]
        kept.append(mu.covariance)
    return Fates(clock[:, None].expand(-1, len(S0)), torch.stack(kept), gone, words)


def _since(now: Tensor, watch: Watch) -> Callable[[float | Tensor, State], object]:
    """A callback of `integrate`, which counts time from zero."""
    return lambda elapsed, mu: watch(now + elapsed, mu.covariance)  # pyright: ignore


def _word(outcome: Outcome, grown: bool, settled: bool) -> str:
    """How a run stands; one that grew beyond the limit bit by bit takes infinite time to leave."""
    if outcome is not Outcome.FINISHED:
        return outcome.value
    return "infinite time" if grown else "settled" if settled else "still moving"


def _still(before: Tensor, after: Tensor, share: float) -> Tensor:
    return torch.linalg.matrix_norm(after - before) <= share * torch.linalg.matrix_norm(after)
