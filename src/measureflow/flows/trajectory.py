"""A measure at each layer of its flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor

from measureflow.flows.state import State, batch_shape, positions
from measureflow.measures import Empirical, Gaussian

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes


class Outcome(Enum):
    """How a trajectory ended; the value says how long it takes to diverge [Castin 2025, 4.4]."""

    FINISHED = "none"  # it reached the last time asked for
    BLEW_UP = "finite time"  # it reaches infinity at its blow-up time
    LEFT_FOR_INFINITY = "infinite time"  # it outgrew the limit, at a pace that takes forever to reach infinity
    OUT_OF_STEPS = "unknown"  # it was still on its way when the solver had taken all the steps it may


def _outcome(blow_up_time: float, left: bool, unfinished: bool) -> Outcome:
    if unfinished:
        return Outcome.OUT_OF_STEPS
    return Outcome.LEFT_FOR_INFINITY if left else Outcome.BLEW_UP if blow_up_time < torch.inf else Outcome.FINISHED


class Trajectory:
    r"""The states of a flow: ``path[0]`` is where it began, ``path[-1]`` where it ended; its length counts both.

    ``times`` has the time of each state. ``blow_up_time`` (\*b) is when each trajectory reaches infinity, inf for those
    that do not; ``left`` (\*b) marks those that leave for infinity without a time, ``unfinished`` (\*b) those whose
    solver ran out of steps. Without these, all have finished.
    """

    def __init__(
        self,
        states: list,
        times: list,
        blow_up_time: Tensor | None = None,
        left: Tensor | None = None,
        unfinished: Tensor | None = None,
    ):
        self.states, self.times = states, times
        if blow_up_time is None:
            blow_up_time = positions(states[0]).new_full(batch_shape(states[0]), torch.inf)
        self.blow_up_time = blow_up_time
        none = torch.zeros_like(blow_up_time, dtype=torch.bool)
        self.left, self.unfinished = (none if these is None else these for these in (left, unfinished))

    def __len__(self) -> int:
        return len(self.states)

    @overload
    def __getitem__(self, layer: int) -> Any: ...
    @overload
    def __getitem__(self, layer: slice) -> Trajectory: ...
    def __getitem__(self, layer: int | slice) -> Any:
        if isinstance(layer, slice):
            return Trajectory(self.states[layer], self.times[layer], *self._endings)
        return self.states[layer]

    def __iter__(self) -> Iterator:
        return iter(self.states)

    def mapped(self, view: Callable[[State], State]) -> Trajectory:
        """The same flow with ``view(state)`` in place of each state."""
        return Trajectory([view(state) for state in self.states], self.times, *self._endings)

    @property
    def _endings(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.blow_up_time, self.left, self.unfinished

    @property
    def points(self) -> Tensor:
        r"""Positions over all layers, (layers, \*b, n, d); of a Gaussian flow, the means (layers, \*b, d)."""
        return torch.stack([positions(state) for state in self.states])

    @property
    def covariances(self) -> Tensor:
        r"""Covariances over all layers, (layers, \*b, d, d)."""
        return torch.stack([state.covariance for state in self.states])

    @property
    def outcome(self) -> Outcome | list[Outcome]:
        """How each trajectory of the batch ended; of a flow without a batch, how it ended.

        >>> Trajectory([torch.zeros(1, 2)], [0.0]).outcome
        <Outcome.FINISHED: 'none'>
        """
        endings = zip(*(these.flatten().tolist() for these in self._endings), strict=True)
        found = [_outcome(time, left, unfinished) for time, left, unfinished in endings]
        return found if self.blow_up_time.ndim else found[0]

    @property
    def divergence(self) -> list[str] | str:
        """How each trajectory diverges, in words.

        ``"none"``, ``"finite time"`` (blow-up), ``"infinite time"`` (it outgrew the limit) or ``"unknown"`` (the solver
        ran out of steps).
        """
        outcome = self.outcome
        return [one.value for one in outcome] if isinstance(outcome, list) else outcome.value

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each point of each layer: layer, time, batch element, point, mass and coordinates x0, x1, ...

        >>> Trajectory([torch.zeros(1, 2), torch.ones(1, 2)], [0.0, 1.0]).to_pandas()
           layer  time  batch  point  mass   x0   x1
        0      0   0.0      0      0   1.0  0.0  0.0
        1      1   1.0      0      0   1.0  1.0  1.0
        """
        import pandas

        frames = [self._layer_frame(layer) for layer in range(len(self))]
        return pandas.concat(frames, ignore_index=True)

    def _layer_frame(self, layer: int) -> pandas.DataFrame:
        import pandas

        state, columns = self.states[layer], {}
        if isinstance(state, Gaussian):
            rows = torch.cat([state.mean[..., None, :], state.covariance], -2)  # the mean, then rows of the covariance
            mass = rows.new_ones(rows.shape[:-1])
            columns["row"] = ["mean", *[f"covariance{i}" for i in range(state.d)]] * rows[..., 0, 0].numel()
        else:
            rows = positions(state)
            mass = state.weights if isinstance(state, Empirical) else rows.new_full(rows.shape[:-1], 1 / rows.shape[-2])
        n, d = rows.shape[-2:]
        flat = rows.detach().reshape(-1, d)
        batch = flat.shape[0] // n
        time = torch.as_tensor(self.times[layer], dtype=flat.dtype).detach().flatten().expand(batch)
        index = torch.arange(flat.shape[0])
        head = {"layer": layer, "time": time.repeat_interleave(n), "batch": index // n, "point": index % n}
        head |= {"mass": mass.detach().reshape(-1)} | columns
        return pandas.DataFrame(head | {f"x{j}": flat[:, j] for j in range(d)})

    def plot(
        self, ax: Axes | None = None, *, coordinates: tuple[int, int] = (0, 1), element: int = 0, labels=None
    ) -> Axes:
        """Draw the flow of one batch element: paths of the points, or the ellipses of a Gaussian, light to dark.

        ``labels`` (n,) colour the paths of points, for instance by the clusters they end in.
        """
        from measureflow.flows.pictures import draw_trajectory

        return draw_trajectory(self, ax, coordinates, element, labels)

    def __repr__(self) -> str:
        if not len(self):
            return f"{type(self).__name__}(empty)"
        first = self.states[0]
        what = repr(first) if isinstance(first, Empirical | Gaussian) else f"points {tuple(positions(first).shape)}"
        return f"{type(self).__name__}({len(self)} states of {what})"
