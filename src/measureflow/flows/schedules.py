"""How far each layer moves: a schedule is a list of step sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from measureflow.measures import checks


def _check(n_layers: int, time=None) -> None:
    checks.whole("n_layers", n_layers)
    if time is not None:
        checks.finite("time", checks.as_floats("time", time))


@dataclass(frozen=True)
class Uniform:
    r"""L layers that share the time T evenly, :math:`h = T/L` [Zimin 2025, Figure 3].

    ``time`` is a number, or one number for each batch element.

    >>> list(Uniform(time=2.0, n_layers=4))
    [0.5, 0.5, 0.5, 0.5]
    """

    time: float | Tensor
    n_layers: int

    def __post_init__(self):
        _check(self.n_layers, self.time)

    def __len__(self) -> int:
        return self.n_layers

    def __iter__(self) -> Iterator[float | Tensor]:
        return iter([self.time / self.n_layers] * self.n_layers)


@dataclass(frozen=True)
class Unit:
    r"""Steps of one until time T runs out, :math:`h_l = 1[l < \lfloor T\rfloor]` [Zimin 2025, C.3].

    The floor has no gradient, so training takes the fractional last layer, :math:`h_l = \mathrm{clamp}(T - l, 0, 1)`.

    >>> list(Unit(time=2.6, n_layers=4))
    [1.0, 1.0, 0.0, 0.0]
    """

    time: float | Tensor
    n_layers: int
    fractional: bool = False

    def __post_init__(self):
        _check(self.n_layers, self.time)

    def __len__(self) -> int:
        return self.n_layers

    def __iter__(self) -> Iterator[float | Tensor]:
        given = isinstance(self.time, Tensor)
        T = torch.as_tensor(self.time, dtype=None if given else torch.float64)
        steps = [torch.clamp((T if self.fractional else torch.floor(T)) - l, 0, 1) for l in range(self.n_layers)]
        return iter(steps if given else [step.item() for step in steps])


@dataclass(frozen=True)
class NoFlow:
    """L full steps, whatever the data: an ordinary transformer.

    >>> list(NoFlow(n_layers=2))
    [1.0, 1.0]
    """

    n_layers: int

    def __post_init__(self):
        _check(self.n_layers)

    def __len__(self) -> int:
        return self.n_layers

    def __iter__(self) -> Iterator[float]:
        return iter([1.0] * self.n_layers)
