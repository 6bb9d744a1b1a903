"""Steps that fit each trajectory, and the moment a trajectory leaves for infinity."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from measureflow.flows.methods import RungeKutta, Slope, combine, spread

# Dormand and Prince's pair of orders 5 and 4; the last stage is the slope at the new point
STAGES = RungeKutta(
    "dopri5",
    5,
    (
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
)
FOURTH = (5179 / 57600, 0.0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40)
ERROR = tuple(five - four for five, four in zip(STAGES.b, FOURTH, strict=True))


@dataclass
class Progress:
    """Where each trajectory stands while its own steps run."""

    h: Tensor | None = None  # the step each trajectory would like next
    blow_up: Tensor | None = None  # the time it left for infinity, inf while it has not
    at_gate: Tensor | None = None  # log size and log speed when half-way to the limit, to tell blow-up from growth


@dataclass(frozen=True)
class Dopri5:
    r"""Adaptive Dormand-Prince 5(4): each batch element takes steps of its own within the tolerances.

    A trajectory whose size :math:`|y|` passes ``limit`` is stopped there: `Trajectory.blow_up_time` gives the time
    :math:`t + |y|/((p-1)\,|y|')` at which a growth :math:`|y|' \sim |y|^p` with p > 1 reaches infinity, p being
    measured over the last half of the way. Growth with p near 1 is exponential: it diverges too, but in infinite
    time, and is reported by `Trajectory.divergence`.
    """

    rtol: float = 1e-8
    atol: float = 1e-10
    limit: float = 1e8
    max_steps: int = 100_000
    name: str = "dopri5"
    order: int = 5

    def advance(self, f: Slope, y: Tensor, t: Tensor, h: Tensor, progress: Progress, shared: bool) -> Tensor:
        """The state h later; h may differ over the batch, and ``shared`` makes all trajectories step together."""
        end, now = t + h, t.clone()
        progress.h = self._first_step(f, y, t, h) if progress.h is None else progress.h
        slope = f(y, self._clock(now, shared))
        active = self._active(now, end, progress)
        for _ in range(self.max_steps):
            if not active.any():
                return y
            step = torch.where(active, torch.minimum(progress.h, end - now), 0.0)
            new, new_slope, error = self._try(f, y, slope, now, step, shared)
            if shared:
                error = error.max().expand_as(error)
            finite = torch.isfinite(error)
            taken = active & finite & (error <= 1)
            factor = torch.where(finite, 0.9 * error.clamp_min(1e-10) ** -0.2, 0.1).clamp(0.1, 5.0)
            clipped = taken & (step < progress.h)  # a step cut short by the end says little about the next
            progress.h = torch.where(active, torch.where(clipped, progress.h, step * factor), progress.h)
            now = torch.where(taken, torch.where(step == end - now, end, now + step), now)
            y = torch.where(taken[..., None], new, y)
            slope = torch.where(taken[..., None], new_slope, slope)
            self._watch(y, slope, now, progress, taken)
            active = self._active(now, end, progress)
            if (active & (progress.h <= 1e-14 * now.abs().clamp_min(1e-3))).any():
                raise RuntimeError("dopri5 needs steps below rounding: the field is not smooth, or limit is too high")
        raise RuntimeError(f"dopri5 did not reach the end in max_steps={self.max_steps} steps: loosen rtol")

    def _try(self, f: Slope, y: Tensor, slope: Tensor, now: Tensor, step: Tensor, shared: bool):
        s, k = spread(step, y), [slope]
        point = y
        for row in STAGES.a:
            point = y + s * combine(row, k)
            k.append(f(point, self._clock(now + sum(row) * step, shared)))
        scale = self.atol + self.rtol * torch.maximum(y.abs(), point.abs()).amax(-1, keepdim=True)
        error = (s * combine(ERROR, k) / scale).square().mean(-1).sqrt()
        return point, k[-1], error

    def _first_step(self, f: Slope, y: Tensor, t: Tensor, h: Tensor) -> Tensor:
        """A hundredth of the time in which the state would move by its own size."""
        size, speed = norm(y), norm(f(y, t if t.ndim == 0 else t.flatten()[0]))
        guess = 0.01 * (size + self.atol) / speed.clamp_min(1e-300)
        return torch.minimum(guess.clamp_max(1e300), h.abs().expand_as(guess)).clamp_min(1e-12)

    @staticmethod
    def _clock(t: Tensor, shared: bool) -> Tensor:
        """One time for all when they step together."""
        return t.flatten()[0] if shared and t.ndim else t

    @staticmethod
    def _active(now: Tensor, end: Tensor, progress: Progress) -> Tensor:
        return (now < end) & torch.isinf(progress.blow_up)

    def _watch(self, y: Tensor, slope: Tensor, now: Tensor, progress: Progress, taken: Tensor) -> None:
        """Note the size and speed half-way to the limit, and stop what passes it."""
        size = norm(y)
        if not (size > math.sqrt(self.limit)).any():
            return
        speed = (y * slope).sum(-1) / size.clamp_min(1e-300)  # d|y|/dt
        here = torch.stack([size.log(), speed.clamp_min(1e-300).log()], -1)
        gate = taken & (size > math.sqrt(self.limit)) & torch.isnan(progress.at_gate[..., 0])
        progress.at_gate = torch.where(gate[..., None], here, progress.at_gate)
        gone = taken & (size > self.limit) & torch.isinf(progress.blow_up)
        growth = here - progress.at_gate
        p = growth[..., 1] / growth[..., 0]
        finite_time = p > 1.1  # exponential growth has p = 1, a quadratic field p = 2
        left = size / ((p - 1).clamp_min(0.1) * speed.clamp_min(1e-300))
        progress.blow_up = torch.where(gone, torch.where(finite_time, now + left, -1.0), progress.blow_up)


def norm(y: Tensor) -> Tensor:
    """The Euclidean size of each state."""
    return torch.linalg.vector_norm(y, dim=-1)


dopri5 = Dopri5()
