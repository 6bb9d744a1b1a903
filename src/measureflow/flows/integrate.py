"""Move a measure along a field: check the arguments, and let the solver do the work."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from measureflow.attention import Field
from measureflow.flows.methods import euler
from measureflow.flows.solver import Callback, Solver
from measureflow.flows.state import State, Step, batch_shape, checked
from measureflow.flows.trajectory import Trajectory
from measureflow.measures import checks


def integrate(
    field: Field,
    mu: State,
    schedule: Iterable[float | Tensor],
    method: Solver = euler,
    *,
    callback: Callback | None = None,
) -> Trajectory:
    r"""Move ``mu`` along :math:`\partial_t\mu + \mathrm{div}(\mu\,\Gamma_\mu) = 0`, by a layer for each step.

    ``mu`` is an `Empirical`, a `Gaussian`, a plain tensor of tokens, or `Tokens` that carry features, batched or not;
    a step is a number, or one number for each batch element. Euler's method makes each step one residual layer,
    :math:`x + h\,\Gamma_\mu(x)`. ``callback(time, state)`` is called at the start and after every step that the method
    takes; an exception raised in it ends the flow. On some processors the last digits depend on the number of threads;
    inside `attention.threads.one_thread` they do not.

    >>> from measureflow.attention import Attention, Relative, Softmax, NegativeSquaredDistance
    >>> import torch
    >>> mean_shift = Relative(Attention(NegativeSquaredDistance(), Softmax(gamma=0.5)))
    >>> path = integrate(mean_shift, torch.tensor([[0.0], [1.0], [9.0]]), [1.0] * 20)
    >>> path[-1].flatten()
    tensor([0.5000, 0.5000, 9.0000])
    """
    checks.instance("field", field, Field)
    checks.instance("method", method, Solver)
    mu = checked(mu)
    return method.solve(field, mu, _checked_steps(schedule, batch_shape(mu)), callback)


def _checked_steps(schedule: Iterable[float | Tensor], batch: tuple[int, ...]) -> list[Step]:
    try:
        steps = list(schedule)
    except TypeError:
        raise ValueError(
            f"schedule must be a list of step sizes or a schedule such as Uniform(time, n_layers), got {schedule!r}"
        ) from None
    for i, step in enumerate(steps):
        if i and step is steps[i - 1]:  # the layers of a uniform schedule are one and the same
            continue
        h = checks.finite(f"schedule[{i}]", checks.as_floats(f"schedule[{i}]", step))
        if h.ndim and h.shape != batch:
            raise ValueError(
                f"schedule[{i}] must be one number, or one for each batch element, {tuple(batch)}, "
                f"got shape {tuple(h.shape)}"
            )
    return steps
