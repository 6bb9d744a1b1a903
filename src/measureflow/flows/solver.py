"""What a solver is, and the one loop of those that take the steps they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from torch import Tensor

from measureflow.attention import Field
from measureflow.flows.state import Parts, State, Step, slope
from measureflow.flows.trajectory import Trajectory

Callback = Callable[[float | Tensor, State], object]  # called with the time reached and the state there
Slope = Callable[[State, float | Tensor], Parts]  # the velocity of a state at a time


@runtime_checkable
class Solver(Protocol):
    """Anything with this one method can be the ``method`` of `integrate`."""

    def solve(self, field: Field, mu: State, steps: list[Step], callback: Callback | None = None) -> Trajectory:
        """The states from ``mu`` on, one after each of ``steps``.

        ``callback(time, state)`` is called at the start and after every step that the solver takes, which are more
        than ``steps`` when it chooses its own.
        """
        ...


class FixedStep:
    """A solver that takes the steps it is given; a subclass defines `step`."""

    order: int  # the error of one step of size h is of size h^(order + 1)

    def step(self, f: Slope, mu: State, t: float | Tensor, h: Step) -> State:
        """The state after one step of size h, which may differ over the batch."""
        raise NotImplementedError

    def solve(self, field: Field, mu: State, steps: list[Step], callback: Callback | None = None) -> Trajectory:
        """One step for each of ``steps``: with Euler's method, one residual layer for each."""
        states: list[State] = [mu]
        times: list[float | Tensor] = [0.0]
        if callback is not None:
            callback(times[-1], mu)
        for index, h in enumerate(steps):
            layer = field.layer(index)
            states.append(self.step(lambda mu, t, layer=layer: slope(mu, layer.frozen(t)), states[-1], times[-1], h))
            times.append(times[-1] + h)
            if callback is not None:
                callback(times[-1], states[-1])
        return Trajectory(states, times)
