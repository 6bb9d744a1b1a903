"""The one loop: push a measure along a field."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from measureflow.attention import Field, TimeDependent
from measureflow.flows.adaptive import Dopri5, Progress
from measureflow.flows.methods import RungeKutta, euler
from measureflow.flows.state import Measure, pack, unpack, velocity
from measureflow.flows.trajectory import Trajectory


def integrate(
    field: Field,
    mu: Measure,
    schedule: Iterable[float | Tensor],
    method: RungeKutta | Dopri5 = euler,
) -> Trajectory:
    r"""Flow ``mu`` along :math:`\partial_t\mu + \mathrm{div}(\mu\,\Gamma_\mu) = 0`, one step (layer) for each entry of ``schedule``.

    ``mu`` is an `Empirical`, a `Gaussian` or a plain tensor of tokens, batched or not; a step is a number, or one
    number for each batch element. Euler's method makes each step one residual layer, :math:`x + h\,\Gamma_\mu(x)`.

    >>> from measureflow.attention import Attention, Relative, Softmax, NegativeSquaredDistance
    >>> mean_shift = Relative(Attention(NegativeSquaredDistance(), Softmax(gamma=0.5)))
    >>> path = integrate(mean_shift, torch.tensor([[0.0], [1.0], [9.0]]), [1.0] * 20)
    >>> path[-1].flatten()
    tensor([0.5000, 0.5000, 9.0000])
    """
    steps = _checked(schedule)
    y = pack(mu)
    t = y.new_zeros(y.shape[:-1]) if isinstance(method, Dopri5) else 0.0

    def f(state: Tensor, time) -> Tensor:
        here = field.frozen(time) if isinstance(field, TimeDependent) else field
        return velocity(unpack(mu, state), here)

    progress = Progress(blow_up=y.new_full(y.shape[:-1], torch.inf), at_gate=y.new_full((*y.shape[:-1], 2), torch.nan))
    states, times = [mu], [t]
    for h in steps:
        if isinstance(method, Dopri5):
            h = torch.as_tensor(h, dtype=y.dtype, device=y.device).expand(y.shape[:-1])
            y = method.advance(f, y, t, h, progress, shared=isinstance(field, TimeDependent))
        else:
            y = method.step(f, y, t, h)
        t = t + h
        states.append(unpack(mu, y))
        times.append(t)
    return Trajectory(states, times, progress.blow_up)


def _checked(schedule: Iterable[float | Tensor]) -> list[float | Tensor]:
    try:
        steps = list(schedule)
    except TypeError:
        raise ValueError(
            f"schedule must be a list of step sizes or a schedule such as Uniform(T, n_layers), got {schedule!r}"
        ) from None
    for i, h in enumerate(steps):
        if not bool(torch.isfinite(torch.as_tensor(h)).all()):
            raise ValueError(f"schedule has a step that is not finite, at {i}: {h}")
    return steps
