"""Tokens on the unit sphere: what layer normalisation does to the flow [Zimin 2025, (1)]."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from measureflow.attention import Field
from measureflow.flows.methods import RungeKutta, Slope
from measureflow.measures import checks


def normalised(x: Tensor) -> Tensor:
    r""":math:`x/|x|` on the last axis."""
    return x / x.norm(dim=-1, keepdim=True)


class Tangent(Field):
    r"""A field along the sphere, :math:`P_x \Gamma_\mu(x) = \Gamma_\mu(x) - \langle\Gamma_\mu(x), x\rangle x`."""

    def __init__(self, field: Field):
        super().__init__()
        self.field = checks.instance("field", field, Field)

    @property
    def blind_to_total_mass(self) -> bool:
        return self.field.blind_to_total_mass

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        velocity, direction = self.field.attend(x, y, w, u), normalised(x)
        return velocity - (velocity * direction).sum(-1, keepdim=True) * direction


@dataclass(frozen=True)
class OnSphere:
    """A method whose every step ends on the unit sphere of R^d: step, then divide each token by its length."""

    method: RungeKutta
    d: int

    def __post_init__(self):
        checks.instance("method", self.method, RungeKutta)

    @property
    def order(self) -> int:
        """The order of the method it wraps: pulling back to the sphere moves a point by no more than its error."""
        return self.method.order

    def step(self, f: Slope, y: Tensor, t: float | Tensor, h: float | Tensor) -> Tensor:
        """One step of the wrapped method, pulled back to the sphere."""
        moved = self.method.step(f, y, t, h).unflatten(-1, (-1, self.d))
        return normalised(moved).flatten(-2)
