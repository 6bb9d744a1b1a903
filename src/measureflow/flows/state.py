"""What moves: a cloud, a Gaussian, tokens, or tokens that carry more than a position.

For each kind of measure these functions say which of its tensors move (`parts`), how fast (`velocity`), and how it is
rebuilt from them (`rebuilt`). A state that does not move by :math:`x + h v` alone is a named tuple with a method
``after``, like `Tokens`.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

from torch import Tensor

from measureflow.attention import Field
from measureflow.measures import Empirical, Gaussian, checks

Step = float | Tensor  # of time: a number, or one number for each batch element
Parts = tuple[Tensor, ...]  # the axes of the batch come first in each
State = Any  # an Empirical, a Gaussian, a tensor of tokens, or a named tuple of parts with a method `after`


def along(x: Tensor, v: Tensor, h: Step) -> Tensor:
    r""":math:`x + h v` for a part x and its velocity v, both (\*b, ...)."""
    if isinstance(h, Tensor) and h.ndim:
        h = h.reshape(h.shape + (1,) * (x.ndim - h.ndim))
    elif not isinstance(h, Tensor) and h == 1:  # a residual layer: the same numbers, and one pass less over them
        return x + v
    return x + h * v


class Tokens(NamedTuple):
    r"""Tokens that carry features: positions (\*b, n, d) flow, features (\*b, n, m) take what a layer adds to them.

    .. math:: y \leftarrow y + h\, v, \qquad f \leftarrow f + \Delta

    A field moves them by `Field.on_tokens`, which returns :math:`(v, \Delta)`. Tokens that carry something else, such
    as colours on a sphere, are a named tuple of their own that has ``positions`` and the method ``after``.

    >>> Tokens(Tensor([[0.0]]), Tensor([[0.0]])).after((Tensor([[1.0]]), Tensor([[1.0]])), h=0.5)
    Tokens(positions=tensor([[0.5000]]), features=tensor([[1.]]))
    """

    positions: Tensor
    features: Tensor

    def after(self, velocity: Parts, h: Step) -> Tokens:
        """The tokens after a step of size h; the features change by a whole layer, however short the step."""
        v, change = velocity
        return Tokens(along(self.positions, v, h), self.features + change)


def checked(mu: State) -> State:
    """The state, or a ValueError that says why it cannot flow."""
    for x in parts(mu):
        checks.finite("mu", x)
    return checks.points("mu", mu) if isinstance(mu, Tensor) else mu


def slope(mu: State, field: Field) -> Parts:
    """The velocity of a state, or a ValueError if it does not have the dimensions of the state."""
    found = velocity(mu, field)
    if [v.shape[-1] for v in found] != [x.shape[-1] for x in parts(mu)]:
        raise ValueError("field must return velocities of the dimension of the points: check its value matrix")
    return found


def batch_shape(mu: State) -> tuple[int, ...]:
    """The axes of the batch."""
    return positions(mu).shape[: -1 if isinstance(mu, Gaussian) else -2]


@singledispatch
def moved(mu: State, velocity: Parts, h: Step) -> State:
    """The state after a step of size ``h`` along its velocity."""
    return mu.after(velocity, h)


@moved.register(Tensor)
@moved.register(Empirical)
@moved.register(Gaussian)
def _(mu: State, velocity: Parts, h: Step) -> State:
    return rebuilt(mu, tuple(along(x, v, h) for x, v in zip(parts(mu), velocity, strict=True)))


@singledispatch
def positions(mu: State) -> Tensor:
    r"""Where the tokens are, (\*b, n, d); of a Gaussian, its mean (\*b, d)."""
    return mu.positions


@singledispatch
def parts(mu: State) -> Parts:
    """The tensors that move."""
    if not hasattr(mu, "after"):
        raise ValueError(f"mu must be an Empirical, a Gaussian or a tensor of tokens, got {type(mu).__name__}")
    return mu


@singledispatch
def rebuilt(mu: State, new: Parts) -> State:
    """The state like ``mu`` whose moving parts are ``new``."""
    return type(mu)(*new)


@singledispatch
def velocity(mu: State, field: Field) -> Parts:
    """The time derivatives of ``parts(mu)`` under the flow of ``field``."""
    return field(mu)


@parts.register
def _(mu: Tensor) -> Parts:
    return (mu,)


@rebuilt.register
def _(mu: Tensor, new: Parts) -> Tensor:
    return new[0]


@velocity.register
def _(mu: Tensor, field: Field) -> Parts:
    return (field(mu),)


@positions.register
def _(mu: Tensor) -> Tensor:
    return mu


@parts.register
def _(mu: Empirical) -> Parts:
    return (mu.points,)


@rebuilt.register
def _(mu: Empirical, new: Parts) -> Empirical:
    return mu.moved(new[0])


@velocity.register
def _(mu: Empirical, field: Field) -> Parts:
    return (field(mu),)


@positions.register
def _(mu: Empirical) -> Tensor:
    return mu.points


@parts.register
def _(mu: Gaussian) -> Parts:
    return mu.mean, mu.covariance


@rebuilt.register
def _(mu: Gaussian, new: Parts) -> Gaussian:
    return Gaussian.trusted(*new)


@velocity.register
def _(mu: Gaussian, field: Field) -> Parts:
    r"""mean' = M mean + c and covariance' = M S + S M^T, exactly symmetric as the second term is made of the first."""
    M, c = field(mu)
    MS = M @ mu.covariance
    growth = MS.flatten(-2) + MS.mT.flatten(-2)  # flat first: adding small matrices to their transposes is slow
    return (M @ mu.mean[..., None]).squeeze(-1) + c, growth.unflatten(-1, MS.shape[-2:])


@positions.register
def _(mu: Gaussian) -> Tensor:
    return mu.mean
