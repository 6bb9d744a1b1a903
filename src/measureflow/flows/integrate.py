"""The one loop: push a measure along a field."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from measureflow.attention import Field, TimeDependent
from measureflow.flows.adaptive import Dopri5
from measureflow.flows.methods import RungeKutta, euler
from measureflow.flows.sphere import OnSphere
from measureflow.flows.state import Measure, pack, unpack, velocity
from measureflow.flows.trajectory import Trajectory
from measureflow.measures import checks


def integrate(
    field: Field,
    mu: Measure,
    schedule: Iterable[float | Tensor],
    method: RungeKutta | OnSphere | Dopri5 = euler,
) -> Trajectory:
    r"""``mu`` along :math:`\partial_t\mu + \mathrm{div}(\mu\,\Gamma_\mu) = 0`, a layer for each entry of ``schedule``.

    ``mu`` is an `Empirical`, a `Gaussian` or a plain tensor of tokens, batched or not; a step is a number, or one
    number for each batch element. Euler's method makes each step one residual layer, :math:`x + h\,\Gamma_\mu(x)`.

    >>> from measureflow.attention import Attention, Relative, Softmax, NegativeSquaredDistance
    >>> mean_shift = Relative(Attention(NegativeSquaredDistance(), Softmax(gamma=0.5)))
    >>> path = integrate(mean_shift, torch.tensor([[0.0], [1.0], [9.0]]), [1.0] * 20)
    >>> path[-1].flatten()
    tensor([0.5000, 0.5000, 9.0000])
    """
    checks.instance("field", field, Field)
    checks.instance("method", method, RungeKutta, Dopri5, OnSphere)
    y = checks.finite("mu", pack(mu))
    steps = _checked(schedule, y)

    def f(state: Tensor, t: float | Tensor) -> Tensor:
        here = field.frozen(t) if isinstance(field, TimeDependent) else field
        slope = velocity(unpack(mu, state), here)
        if slope.shape[-1] != state.shape[-1]:
            raise ValueError("field must return velocities of the dimension of the points: check its value matrix")
        return slope

    if isinstance(method, Dopri5):
        asked = _times(steps, y)
        with torch.no_grad():  # steps depend on the state, so a gradient would not be what a user expects
            found, blow_up = method.solve(f, y, asked, shared=isinstance(field, TimeDependent))
        return Trajectory([unpack(mu, state) for state in found], list(asked), blow_up)
    states: list[Tensor] = [y]
    times: list[float | Tensor] = [0.0]
    for h in steps:
        states.append(method.step(f, states[-1], times[-1], h))
        times.append(times[-1] + h)
    return Trajectory([mu, *[unpack(mu, state) for state in states[1:]]], times, y.new_full(y.shape[:-1], torch.inf))


def _times(steps: list[float | Tensor], y: Tensor) -> Tensor:
    """The times (layers, *b) a schedule asks for, from zero on."""
    rows = [torch.as_tensor(h, dtype=y.dtype, device=y.device).expand(y.shape[:-1]) for h in steps]
    if any((row < 0).any() for row in rows):
        raise ValueError("schedule must not step back in time with an adaptive method")
    return torch.stack([y.new_zeros(y.shape[:-1]), *rows]).cumsum(0)


def _checked(schedule: Iterable[float | Tensor], y: Tensor) -> list[float | Tensor]:
    try:
        steps = list(schedule)
    except TypeError:
        raise ValueError(
            f"schedule must be a list of step sizes or a schedule such as Uniform(T, n_layers), got {schedule!r}"
        ) from None
    for i, step in enumerate(steps):
        h = checks.finite(f"schedule[{i}]", checks.as_floats(f"schedule[{i}]", step))
        if h.ndim and h.shape != y.shape[:-1]:
            raise ValueError(
                f"schedule[{i}] must be one number, or one for each batch element, {tuple(y.shape[:-1])}, "
                f"got shape {tuple(h.shape)}"
            )
    return steps
