"""Explicit Runge-Kutta methods with fixed steps: each is a tableau and its order."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from measureflow.flows.solver import FixedStep, Slope
from measureflow.flows.state import Parts, State, Step, moved


@dataclass(frozen=True)
class RungeKutta(FixedStep):
    r"""The explicit method :math:`k_i = f(y + h\sum_j a_{ij} k_j,\; t + c_i h)`, :math:`y^+ = y + h \sum_i b_i k_i`.

    >>> from measureflow.attention import TokenWise
    >>> from measureflow.flows import integrate
    >>> growth = TokenWise(torch.nn.Identity())  # dx/dt = x, whose solution at time one is e
    >>> [round(float(integrate(growth, torch.ones(1, 1), [1.0], method)[-1]), 4) for method in (euler, heun, rk4)]
    [2.0, 2.5, 2.7083]
    """

    name: str
    order: int
    a: tuple[tuple[float, ...], ...]  # rows of the lower triangle, the first stage left out
    b: tuple[float, ...]

    def step(self, f: Slope, mu: State, t: float | Tensor, h: Step) -> State:
        k = [f(mu, t)]
        for row in self.a:
            k.append(f(moved(mu, combined(row, k), h), t + sum(row) * h))
        return moved(mu, combined(self.b, k), h)

    def __repr__(self) -> str:
        return self.name


def combined(coefficients: tuple[float, ...], k: list[Parts]) -> Parts:
    """The sum of c_i k_i, part by part."""
    return tuple(combine(coefficients, list(part)) for part in zip(*k, strict=True))


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
