"""The state of an `AnyShapeFlow`: tokens with a position, a colour and features, and how a step moves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from measureflow.flows import FixedStep
from measureflow.flows.solver import Slope
from measureflow.flows.state import Parts, Step, along, parts
from measureflow.measures import checks

MOST_GRADIENT = 5.0  # largest gradient of a token, in units of the mean one


class ColouredTokens(NamedTuple):
    r"""Tokens that left the rows of a set: positions flow, colours turn on a sphere, features take what a layer adds.

    .. math:: y \leftarrow y + h\, v, \qquad c \leftarrow \Pi(c + h\, \omega), \qquad f \leftarrow f + \Delta

    where :math:`\Pi` is `on_sphere`. A field moves them by `Field.on_tokens`, which returns
    :math:`(v, \omega, \Delta)`. The rows, their local units of length and the mask stay.
    """

    rows: Tensor  # (B, n, d)
    positions: Tensor  # (B, n, d)
    colours: Tensor  # (B, n, 2 m) on the unit sphere, zero in the mean over the rows
    features: Tensor  # (B, n, f), all invariant under rotations and shifts
    log_scale: Tensor  # (B, n, 1): log of the distance to the nearest 8 % of the rows
    mask: Tensor  # (n, n), added to the scores of heads: no token attends to itself

    def after(self, velocity: Parts, h: Step) -> ColouredTokens:
        """The tokens after a step of size h; the features change by a whole layer, however short the step."""
        v, turn, change = velocity
        return self._replace(
            positions=along(self.positions, v, h),
            colours=on_sphere(along(self.colours, turn, h)),
            features=self.features + change,
        )

    def with_limited_gradients(self) -> ColouredTokens:
        """The same tokens, through which only limited gradients pass back; those of positions in local units."""
        one = torch.ones_like(self.log_scale)
        return self._replace(
            positions=limited(self.positions, self.log_scale.exp()),
            colours=limited(self.colours, one),
            features=limited(self.features, one),
        )


@parts.register
def _(mu: ColouredTokens) -> Parts:
    return mu.positions, mu.colours, mu.features


@dataclass(frozen=True)
class LimitedGradient(FixedStep):
    """A method before whose every step the gradient of each token is cut to a largest norm; the states are the same.

    A few tokens that sit between tight clusters are so sensitive that their gradients would grow a hundredfold with
    every layer, and drown those of all others.
    """

    method: FixedStep

    def __post_init__(self):
        checks.instance("method", self.method, FixedStep)

    @property
    def order(self) -> int:  # type: ignore[override]
        return self.method.order

    def step(self, f: Slope, mu: ColouredTokens, t: float | Tensor, h: Step) -> ColouredTokens:
        return self.method.step(f, mu.with_limited_gradients(), t, h)


def all_but_own(x: Tensor) -> Tensor:
    """The mask (n, n) by which rows x (B, n, d) attend to all rows but their own."""
    return x.new_zeros(x.shape[1], x.shape[1]).fill_diagonal_(-torch.inf)


def on_sphere(colours: Tensor) -> Tensor:
    """Colours made zero in the mean over the rows, and of unit length."""
    colours = colours - colours.mean(1, keepdim=True)
    return colours / (colours.square().sum(-1, keepdim=True) + 1e-4).sqrt()


def limited(x: Tensor, unit: Tensor) -> Tensor:
    """The same numbers (B, n, ...), whose gradient times ``unit`` (B, n, 1) has a largest norm for each token."""
    return _Limited.apply(x, unit) if torch.is_grad_enabled() else x  # type: ignore[return-value]


class _Limited(torch.autograd.Function):
    """The identity, whose gradient is cut to a largest norm for each token."""

    @staticmethod
    def forward(ctx, x: Tensor, unit: Tensor) -> Tensor:
        ctx.save_for_backward(unit)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None]:
        (unit,), gradient = ctx.saved_tensors, gradients[0]
        most = MOST_GRADIENT / (gradient.shape[0] * gradient.shape[1])
        norm = torch.linalg.vector_norm(gradient, dim=-1, keepdim=True) * unit
        return gradient * (most / norm.clamp_min(most)), None
