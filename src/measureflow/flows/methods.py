"""One step of size h: explicit Runge-Kutta methods, each a tableau and its order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Slope = Callable[[Tensor, Tensor | float], Tensor]  # f(y, t) for y' = f(y, t), y of shape (*b, D)


def spread(h: float | Tensor, y: Tensor) -> float | Tensor:
    """A step size, possibly one for each batch element, shaped to multiply vectors (*b, D)."""
    return h[..., None] if isinstance(h, Tensor) and h.ndim else h


@dataclass(frozen=True)
class RungeKutta:
    r"""The explicit method :math:`k_i = f(y + h\sum_j a_{ij} k_j,\; t + c_i h)`, :math:`y^+ = y + h \sum_i b_i k_i`."""

    name: str
    order: int
    a: tuple[tuple[float, ...], ...]  # rows of the lower triangle, the first stage left out
    b: tuple[float, ...]

    def step(self, f: Slope, y: Tensor, t: float | Tensor, h: float | Tensor) -> Tensor:
        """The state after one step of size h, which may differ over the batch."""
        s = spread(h, y)
        k = [f(y, t)]
        for row in self.a:
            k.append(f(y + s * combine(row, k), t + sum(row) * h))
        return y + s * combine(self.b, k)

    def __repr__(self) -> str:
        return self.name


def combine(coefficients: tuple[float, ...], k: list[Tensor]) -> Tensor:
    """The sum of c_i k_i, zeros left out."""
    terms = [(c, slope) for c, slope in zip(coefficients, k, strict=False) if c]
    total = terms[0][1] if terms[0][0] == 1 else terms[0][0] * terms[0][1]
    for c, slope in terms[1:]:
        total = torch.add(total, slope, alpha=c)
    return total


euler = RungeKutta("euler", 1, (), (1.0,))
heun = RungeKutta("heun", 2, ((1.0,),), (1 / 2, 1 / 2))
rk4 = RungeKutta("rk4", 4, ((1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6))
