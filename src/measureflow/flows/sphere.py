"""Tokens on the unit sphere: what layer normalisation does to the flow [Zimin 2025, (1)]."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from measureflow.attention.wrappers import Wrapper
from measureflow.flows.solver import FixedStep, Slope
from measureflow.flows.state import State, Step, parts, rebuilt
from measureflow.measures import checks


def normalised(x: Tensor) -> Tensor:
    r""":math:`x/|x|` on the last axis."""
    return x / x.norm(dim=-1, keepdim=True)


class Tangent(Wrapper):
    r"""A field along the sphere, :math:`P_x \Gamma_\mu(x) = \Gamma_\mu(x) - \langle\Gamma_\mu(x), x\rangle x`.

    >>> from measureflow.attention import Attention
    >>> Tangent(Attention())(Tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor([[0.0000, 0.2689],
            [0.2689, 0.0000]])
    """

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        velocity, direction = self.field.attend(x, y, w, u), normalised(x)
        return velocity - (velocity * direction).sum(-1, keepdim=True) * direction


@dataclass(frozen=True)
class OnSphere(FixedStep):
    """A method whose every step ends on the unit sphere: take the step, then divide each token by its length.

    The order is that of the method it wraps: the division moves a token by no more than the error of the step.

    >>> from measureflow.attention import Attention
    >>> from measureflow.flows import euler, integrate
    >>> integrate(Tangent(Attention()), Tensor([[1.0, 0.0], [0.0, 1.0]]), [0.5], OnSphere(euler))[-1]
    tensor([[0.9911, 0.1333],
            [0.1333, 0.9911]])
    """

    method: FixedStep
    order: int = field(init=False)

    def __post_init__(self):
        checks.instance("method", self.method, FixedStep)
        object.__setattr__(self, "order", self.method.order)

    def step(self, f: Slope, mu: State, t: float | Tensor, h: Step) -> State:
        if len(parts(mu)) > 1:
            raise ValueError(f"mu must be points, which can lie on a sphere, got a {type(mu).__name__}")
        new = self.method.step(f, mu, t, h)
        return rebuilt(new, tuple(normalised(x) for x in parts(new)))
