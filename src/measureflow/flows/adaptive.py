"""Steps that fit each trajectory, and the moment a trajectory leaves for infinity."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from measureflow.attention import Field
from measureflow.flows.methods import RungeKutta, combine
from measureflow.flows.solver import Callback
from measureflow.flows.state import State, Step, batch_shape, parts, rebuilt, slope
from measureflow.flows.trajectory import Trajectory

Slope = Callable[[Tensor, Tensor], Tensor]  # f(y, t) for y' = f(y, t), y of shape (*b, D)

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
NO_GRADIENT = (
    "dopri5 has no gradient, for its steps depend on the state: use a fixed-step method such as rk4, "
    "or call integrate under torch.no_grad()"
)


@dataclass
class Run:
    """Where each trajectory stands: its state and slope, its clock, and the next time of the schedule."""

    y: Tensor  # (*b, D)
    slope: Tensor
    now: Tensor  # (*b)
    h: Tensor  # the step it would like next
    layer: Tensor  # index of the next time of the schedule, its target
    gone: Tensor  # whether it has been stopped, for it leaves for infinity
    blow_up: Tensor  # when it reaches infinity: inf while it is not gone, and for those that take forever
    unit: Tensor  # sizes are counted in the size it began with, or in ones where that is smaller
    gate: Tensor  # (*b, 2) log size and log speed half-way to the limit, to tell blow-up from growth


@dataclass(frozen=True)
class Dopri5:
    r"""Adaptive Dormand-Prince 5(4): each batch element takes steps of its own within the tolerances.

    A trajectory whose size :math:`|y|` passes ``limit`` times its first one (or times one) is stopped there:
    `Trajectory.blow_up_time` gives the time
    :math:`t + |y|/((p-1)\,|y|')` at which a growth :math:`|y|' \sim |y|^p` with p > 1 reaches infinity, p being
    measured over the last half of the way. Growth with p near 1 is exponential: it diverges too, but in infinite
    time, and `Trajectory.outcome` says so. It also says which trajectories were still on their way after
    ``max_steps`` steps, as stiff ones are.

    >>> from measureflow.attention import Attention
    >>> from measureflow.flows import integrate
    >>> from measureflow.measures import Gaussian
    >>> standard_normal = Gaussian(torch.zeros(1).double(), torch.eye(1).double())
    >>> integrate(Attention(), standard_normal, [1.0], Dopri5()).blow_up_time
    tensor(0.5000, dtype=torch.float64)
    """

    rtol: float = 1e-8
    atol: float = 1e-10
    limit: float = 1e8
    max_steps: int = 100_000
    name: str = "dopri5"
    order: int = 5

    def solve(self, field: Field, mu: State, steps: list[Step], callback: Callback | None = None) -> Trajectory:
        """The states at the times the steps lead to; each trajectory goes from one to the next at its own pace.

        A field that depends on time makes them all step together. A trajectory that is gone, or has taken all its
        steps, keeps its last state.
        """
        vectors = Vectors(mu)
        y, times = vectors.pack(parts(mu)), vectors.times(steps)
        if torch.is_grad_enabled() and (y.requires_grad or times.requires_grad):
            raise ValueError(NO_GRADIENT)

        def f(y: Tensor, t: Tensor) -> Tensor:
            v = vectors.pack(slope(vectors.unpack(y), field.frozen(t)))
            if v.requires_grad:
                raise ValueError(NO_GRADIENT)
            return v

        watch = None if callback is None else lambda run: callback(run.now, vectors.unpack(run.y))
        found, run = self._follow(f, y, times, field.depends_on_time, watch)
        states = [vectors.unpack(state) for state in found]
        on_the_way = (run.layer < len(times)) & ~run.gone
        return Trajectory(states, list(times), run.blow_up, run.gone & torch.isinf(run.blow_up), on_the_way)

    def _follow(
        self, f: Slope, y: Tensor, times: Tensor, shared: bool, watch: Callable[[Run], object] | None
    ) -> tuple[Tensor, Run]:
        r"""States (L, \*b, D) at increasing ``times`` (L, \*b), the first that of ``y``, and where the run ended."""
        out = y.expand(len(times), *y.shape).clone()
        run = self._start(f, y, times, shared)
        for _ in range(self.max_steps):
            if watch is not None:
                watch(run)
            active = (run.layer < len(times)) & ~run.gone
            if not active.any():
                break
            arrived = self._step(f, run, times, active, shared)
            if arrived.any():
                rows = arrived.flatten().nonzero().squeeze(-1)
                flat = out.view(len(out), -1, out.shape[-1])  # any number of batch axes, none included
                flat[run.layer.flatten()[rows], rows] = run.y.reshape(-1, out.shape[-1])[rows]
                run.layer = run.layer + arrived
        return self._fill(out, run), run

    def _start(self, f: Slope, y: Tensor, times: Tensor, shared: bool) -> Run:
        if not y.dtype == torch.float64 and self.rtol < 1e-6:
            raise ValueError(f"rtol={self.rtol:g} is finer than {y.dtype} can hold: use float64 or rtol >= 1e-6")
        rows = times.reshape(len(times), -1)
        if shared and (rows != rows[:, :1]).any():
            raise ValueError("schedule must be the same for the whole batch when the field depends on time")
        slope = f(y, self._clock(times[0], shared))
        guess = 0.01 * (norm(y) + self.atol) / norm(slope).clamp_min(1e-300)  # a hundredth of the state's own time
        h = torch.minimum(guess, (times[-1] - times[0]).abs()).clamp_min(1e-12)
        layer = torch.ones_like(times[0], dtype=torch.long)
        gone, blow_up = torch.zeros_like(h, dtype=torch.bool), torch.full_like(h, torch.inf)
        gate = y.new_full((*h.shape, 2), torch.nan)
        return Run(y, slope, times[0].clone(), h, layer, gone, blow_up, norm(y).clamp_min(1.0), gate)

    def _step(self, f: Slope, run: Run, times: Tensor, active: Tensor, shared: bool) -> Tensor:
        """Try one step of every active trajectory; True for those that arrived at their target time."""
        target = times.gather(0, run.layer.clamp_max(len(times) - 1)[None])[0]
        h = run.h.min().expand_as(run.h) if shared else run.h
        step = torch.where(active, torch.minimum(h, target - run.now), 0.0)
        new, slope, error = self._try(f, run, step, shared)
        error = error.max().expand_as(error) if shared else error
        finite = torch.isfinite(error)
        taken = active & finite & (error <= 1)
        factor = torch.where(finite, 0.9 * error.clamp_min(1e-10) ** -0.2, 0.1).clamp(0.1, 5.0)
        cut = taken & (step < h)  # a step cut short by the target says little about the next
        run.h = torch.where(active, torch.where(cut, torch.maximum(h, step * factor), step * factor), run.h)
        arrived = taken & (step == target - run.now)
        run.now = torch.where(arrived, target, torch.where(taken, run.now + step, run.now))
        refused = active & ~taken
        if refused.any():
            new, slope = (torch.where(refused[..., None], old, to) for old, to in ((run.y, new), (run.slope, slope)))
        run.y, run.slope = new, slope  # where nothing was active the step was zero, and new is old
        self._watch(run, taken)
        stuck = refused & (run.h <= 1e-15 * run.now.abs())
        if stuck.any():
            self._leave(run, stuck)
        return arrived

    def _try(self, f: Slope, run: Run, step: Tensor, shared: bool) -> tuple[Tensor, Tensor, Tensor]:
        s, k, point = step[..., None] if step.ndim else step, [run.slope], run.y
        for row in STAGES.a:
            point = torch.addcmul(run.y, s, combine(row, k))
            k.append(f(point, self._clock(run.now + sum(row) * step, shared) if shared else run.now))
        size = torch.maximum(run.y.abs().amax(-1), point.abs().amax(-1))
        error = step * norm(combine(ERROR, k)) / (self.atol + self.rtol * size)
        return point, k[-1], error / math.sqrt(run.y.shape[-1])

    @staticmethod
    def _clock(t: Tensor, shared: bool) -> Tensor:
        """One time for all when they step together."""
        return t.flatten()[0] if shared else t

    @staticmethod
    def _fill(out: Tensor, run: Run) -> Tensor:
        """The last state in all layers that a trajectory never reached."""
        layers = torch.arange(len(out), device=out.device).reshape(-1, *[1] * run.layer.ndim)
        return torch.where((layers >= run.layer)[..., None], run.y, out)

    @staticmethod
    def _leave(run: Run, stuck: Tensor) -> None:
        """A trajectory that would double in less time than its clock can tell has blown up now (exp attention does)."""
        speed = (run.y * run.slope).sum(-1) / norm(run.y).clamp_min(1e-300)
        leaving = stuck & (speed > 0) & (norm(run.y) < 1e-9 * run.now.abs() * speed)
        if (stuck & ~leaving).any():
            raise RuntimeError("dopri5 needs steps below rounding: the field is not smooth, or limit is too high")
        run.gone = run.gone | leaving
        run.blow_up = torch.where(leaving, run.now, run.blow_up)

    def _watch(self, run: Run, taken: Tensor) -> None:
        """Note size and speed half-way to the limit (on a log scale), and stop what passes it."""
        size = norm(run.y)
        half = math.sqrt(self.limit) * run.unit
        if not (size > half).any():
            return
        speed = ((run.y * run.slope).sum(-1) / size.clamp_min(1e-300)).clamp_min(1e-300)  # d|y|/dt
        here = torch.stack([size.log(), speed.log()], -1)
        passing = taken & (size > half) & torch.isnan(run.gate[..., 0])
        run.gate = torch.where(passing[..., None], here, run.gate)
        going = taken & (size > self.limit * run.unit)  # what is gone takes no steps
        growth = here - run.gate
        p = growth[..., 1] / growth[..., 0]
        run.gone = run.gone | going
        run.blow_up = torch.where(going & (p > 1.1), run.now + size / ((p - 1) * speed), run.blow_up)


class Vectors:
    r"""States like ``mu`` as vectors (\*b, D)."""

    def __init__(self, mu: State):
        if hasattr(mu, "after"):
            raise ValueError(
                f"dopri5 cannot move {type(mu).__name__}, which change by whole layers: use a fixed-step method"
            )
        self.mu, self.batch = mu, batch_shape(mu)
        self.shapes = [x.shape[len(self.batch) :] for x in parts(mu)]

    def pack(self, tensors: tuple[Tensor, ...]) -> Tensor:
        """The moving parts of a state, or their velocities, end to end."""
        flat = [x.flatten(len(self.batch)) for x in tensors]
        return flat[0] if len(flat) == 1 else torch.cat(flat, -1)

    def unpack(self, y: Tensor) -> State:
        """The state whose moving parts are in ``y``."""
        sizes = [shape.numel() for shape in self.shapes]
        pieces = zip(y.split(sizes, -1), self.shapes, strict=True)
        return rebuilt(self.mu, tuple(piece.unflatten(-1, shape) for piece, shape in pieces))

    def times(self, steps: list[Step]) -> Tensor:
        r"""The times (L, \*b) that the steps lead to, from zero on."""
        x = parts(self.mu)[0]
        rows = [torch.as_tensor(h, dtype=x.dtype, device=x.device).expand(self.batch) for h in steps]
        if any((row < 0).any() for row in rows):
            raise ValueError("schedule must not step back in time with an adaptive method")
        return torch.stack([x.new_zeros(self.batch), *rows]).cumsum(0)


def norm(y: Tensor) -> Tensor:
    """The Euclidean size of each state."""
    return torch.linalg.vector_norm(y, dim=-1)


dopri5 = Dopri5()
