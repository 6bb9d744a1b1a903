"""A measure at each layer of its flow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, overload

import torch
from torch import Tensor

from measureflow.measures import Empirical, Gaussian

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes


class Trajectory:
    """The states of a flow: ``path[0]`` is where it began, ``path[-1]`` where it ended; its length counts both."""

    def __init__(self, states: list, times: list, blow_up: Tensor):
        self.states, self.times = states, times
        self._blow_up = blow_up

    def __len__(self) -> int:
        return len(self.states)

    @overload
    def __getitem__(self, layer: int) -> Any: ...
    @overload
    def __getitem__(self, layer: slice) -> Trajectory: ...
    def __getitem__(self, layer: int | slice) -> Any:
        if isinstance(layer, slice):
            return Trajectory(self.states[layer], self.times[layer], self._blow_up)
        return self.states[layer]

    def __iter__(self) -> Iterator:
        return iter(self.states)

    @property
    def points(self) -> Tensor:
        r"""Positions over all layers, (layers, \*b, n, d); of a Gaussian flow, the means (layers, \*b, d)."""
        return torch.stack([_points(state) for state in self.states])

    @property
    def covariances(self) -> Tensor:
        r"""Covariances over all layers, (layers, \*b, d, d)."""
        return torch.stack([state.covariance for state in self.states])

    @property
    def blow_up_time(self) -> Tensor:
        r"""The time (\*b) at which each trajectory reached infinity, inf for those that did not [Castin 2025, 4.4]."""
        return torch.where(self._blow_up < 0, torch.inf, self._blow_up)

    @property
    def divergence(self) -> list[str] | str:
        """For each trajectory: ``"none"``, ``"finite time"`` (blow-up) or ``"infinite time"`` (it grew too large)."""
        words = [
            "infinite time" if b < 0 else ("none" if b == torch.inf else "finite time")
            for b in self._blow_up.flatten().tolist()
        ]
        return words if self._blow_up.ndim else words[0]

    def to_pandas(self) -> pandas.DataFrame:
        """One row for each point of each layer: layer, time, batch element, point, mass and coordinates x0, x1, ...

        >>> Trajectory([torch.zeros(1, 2), torch.ones(1, 2)], [0.0, 1.0], torch.tensor(torch.inf)).to_pandas()
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
            rows = _points(state)
            mass = state.weights if isinstance(state, Empirical) else rows.new_full(rows.shape[:-1], 1 / rows.shape[-2])
        n, d = rows.shape[-2:]
        flat = rows.detach().reshape(-1, d)
        batch = flat.shape[0] // n
        time = torch.as_tensor(self.times[layer], dtype=flat.dtype).detach().flatten().expand(batch)
        index = torch.arange(flat.shape[0])
        head = {"layer": layer, "time": time.repeat_interleave(n), "batch": index // n, "point": index % n}
        head |= {"mass": mass.detach().reshape(-1)} | columns
        return pandas.DataFrame(head | {f"x{j}": flat[:, j] for j in range(d)})

    def plot(self, axes: Axes | None = None, *, coordinates: tuple[int, int] = (0, 1), element: int = 0) -> Axes:
        """Draw the flow of one batch element: paths of the points, or the ellipses of a Gaussian, light to dark."""
        from measureflow.flows.pictures import draw_trajectory

        return draw_trajectory(self, axes, coordinates, element)

    def __repr__(self) -> str:
        if not len(self):
            return f"{type(self).__name__}(empty)"
        first = self.states[0]
        what = f"points {tuple(first.shape)}" if isinstance(first, Tensor) else repr(first)
        return f"{type(self).__name__}({len(self)} states of {what})"


def _points(state) -> Tensor:
    if isinstance(state, Gaussian):
        return state.mean
    return state.points if isinstance(state, Empirical) else state
