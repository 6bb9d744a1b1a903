"""One vector for every kind of measure, so that one loop integrates them all."""

from __future__ import annotations

from functools import singledispatch

import torch
from torch import Tensor

from measureflow.attention import Field
from measureflow.measures import Empirical, Gaussian, checks

Measure = Empirical | Gaussian | Tensor


@singledispatch
def pack(mu: Measure) -> Tensor:
    r"""The moving part of a measure as vectors (\*b, D)."""
    raise ValueError(f"mu must be an Empirical, a Gaussian or a tensor of tokens, got {type(mu).__name__}")


@singledispatch
def unpack(mu: Measure, y: Tensor) -> Measure:
    """The measure like ``mu`` whose moving part is ``y``."""
    raise ValueError(f"mu must be an Empirical, a Gaussian or a tensor of tokens, got {type(mu).__name__}")


@singledispatch
def velocity(mu: Measure, field: Field) -> Tensor:
    r"""The time derivative of ``pack(mu)`` under the flow of ``field``."""
    raise ValueError(f"mu must be an Empirical, a Gaussian or a tensor of tokens, got {type(mu).__name__}")


@pack.register
def _(mu: Tensor) -> Tensor:
    return checks.points("mu", mu).flatten(-2)


@unpack.register
def _(mu: Tensor, y: Tensor) -> Tensor:
    return y.unflatten(-1, mu.shape[-2:])


@velocity.register
def _(mu: Tensor, field: Field) -> Tensor:
    return field(mu).flatten(-2)


@pack.register
def _(mu: Empirical) -> Tensor:
    return mu.points.flatten(-2)


@unpack.register
def _(mu: Empirical, y: Tensor) -> Empirical:
    return mu.moved(y.unflatten(-1, mu.points.shape[-2:]))


@velocity.register
def _(mu: Empirical, field: Field) -> Tensor:
    return field(mu).flatten(-2)


@pack.register
def _(mu: Gaussian) -> Tensor:
    return torch.cat([mu.mean, mu.covariance.flatten(-2)], -1)


@unpack.register
def _(mu: Gaussian, y: Tensor) -> Gaussian:
    d = mu.d
    return Gaussian.trusted(y[..., :d], y[..., d:].unflatten(-1, (d, d)))


@velocity.register
def _(mu: Gaussian, field: Field) -> Tensor:
    r"""mean' = M mean + c and covariance' = M S + S M^T, exactly symmetric as the second term is made of the first."""
    M, c = field(mu)
    MS = M @ mu.covariance
    growth = MS.flatten(-2) + MS.mT.flatten(-2)  # flat first: adding small matrices to their transposes is slow
    return torch.cat([(M @ mu.mean[..., None]).squeeze(-1) + c, growth], -1)
