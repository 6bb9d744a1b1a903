"""Wrappers: new fields from old ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import add
from typing import cast

import torch
from torch import Tensor, nn

from measureflow.attention.closed_forms import Affine
from measureflow.attention.field import Field
from measureflow.measures import Empirical, Gaussian, checks


class Sum(Field):
    r"""The sum of fields of any kinds, :math:`\Gamma_\mu = \sum_f c_f \Gamma_\mu^{(f)}`, where c is one by default.

    >>> from measureflow.attention import Attention
    >>> Sum(Attention(), TokenWise(nn.ReLU()), coefficients=[1.0, -1.0])(torch.tensor([[0.0], [1.0]]))
    tensor([[ 0.5000],
            [-0.2689]])
    """

    def __init__(self, *fields: Field, coefficients: list[float] | None = None):
        super().__init__()
        if not fields:
            raise ValueError("fields must hold at least one field")
        self.fields = nn.ModuleList(checks.instance("fields", field, Field) for field in fields)
        self.coefficients = coefficients or [1.0] * len(fields)
        if len(self.coefficients) != len(fields):
            raise ValueError(f"coefficients has {len(self.coefficients)} entries for {len(fields)} fields")

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        return reduce(add, (c * field.attend(x, y, w, u) for c, field in self._terms()))

    def on_gaussian(self, mu: Gaussian) -> Affine:
        parts = [(k, field.on_gaussian(mu)) for k, field in self._terms()]
        return Affine(reduce(add, (k * part.M for k, part in parts)), reduce(add, (k * part.c for k, part in parts)))

    def _terms(self) -> list[tuple[float, Field]]:
        return list(zip(self.coefficients, cast(Iterable[Field], self.fields), strict=True))


class Wrapper(Field):
    """A field made of another one; equal masses may be left out where the other may leave them out."""

    def __init__(self, field: Field):
        super().__init__()
        self.field = checks.instance("field", field, Field)

    @property
    def blind_to_total_mass(self) -> bool:
        return self.field.blind_to_total_mass


class Relative(Wrapper):
    r"""The pull toward the field, :math:`\Gamma_\mu(x) - x`: a step of size one moves x onto its attention value.

    >>> from measureflow.attention import Attention
    >>> Relative(Attention())(torch.tensor([[0.0], [1.0]]))
    tensor([[ 0.5000],
            [-0.2689]])
    """

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        return self.field.attend(x, y, w, u) - x

    def on_gaussian(self, mu: Gaussian) -> Affine:
        M, c = self.field.on_gaussian(mu)
        return Affine(M - torch.eye(mu.d, dtype=M.dtype, device=M.device), c)


class Normed(Wrapper):
    r"""A field that sees normalised points, :math:`\Gamma_{\nu(\mu)}(\nu(x))`: a layer norm before attention, for one.

    ``norm`` is any module that maps points one by one.

    >>> from measureflow.attention import Attention
    >>> Normed(Attention(), nn.LayerNorm(2, elementwise_affine=False))(torch.tensor([[1.0, 3.0], [5.0, 9.0]]))
    tensor([[-1.0000,  1.0000],
            [-1.0000,  1.0000]])
    """

    def __init__(self, field: Field, norm: nn.Module):
        super().__init__(field)
        self.norm = norm

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        queries = self.norm(x)
        return self.field.attend(queries, queries if y is x else self.norm(y), w, u)


class TokenWise(Field):
    r"""A field in which points do not see each other, :math:`\Gamma_\mu(x) = f(x)`: a fully connected layer.

    >>> TokenWise(nn.ReLU())(torch.tensor([[-1.0], [2.0]])).flatten()
    tensor([0., 2.])
    """

    def __init__(self, f: nn.Module):
        super().__init__()
        self.f = f

    @property
    def blind_to_total_mass(self) -> bool:
        return True

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        return self.f(x)


class Against(Field):
    r"""Cross-attention: the keys are a measure nu of their own that does not move, :math:`\Gamma_\nu(x)`.

    >>> from measureflow.attention import Attention
    >>> Against(Attention(), Empirical([[4.0], [6.0]]))(torch.tensor([[0.0]]))
    tensor([[5.]])
    """

    def __init__(self, field: Field, nu: Empirical | Gaussian):
        super().__init__()
        self.field = checks.instance("field", field, Field)
        self.nu = checks.instance("nu", nu, Empirical, Gaussian)

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        if isinstance(self.nu, Gaussian):
            return self.field.on_gaussian(self.nu).at(x)
        return self.field.attend(x, self.nu.points, self.field.key_weights(self.nu), u)

    def on_gaussian(self, mu: Gaussian) -> Affine:
        if not isinstance(self.nu, Gaussian):
            raise ValueError("nu is not a Gaussian, so the field it makes is not affine: flow particles instead")
        return self.field.on_gaussian(self.nu)


class Masked(Field):
    r"""Causal attention [Castin 2025, (2.7)]: the first coordinate is a position, which nothing moves.

    .. math:: \bar\Gamma_{\bar\mu}(\sigma, x) = (0,\; \Gamma_{\mu_\sigma}(x)), \qquad
        \mu_\sigma = \bar\mu \text{ restricted to positions } \tau \le \sigma

    A query that sees no mass at all stays where it is.

    >>> from measureflow.attention import Attention
    >>> Masked(Relative(Attention()))(torch.tensor([[0.0, 0.0], [0.5, 1.0]]))
    tensor([[ 0.0000,  0.0000],
            [ 0.0000, -0.2689]])
    """

    def __init__(self, field: Field):
        super().__init__()
        self.field = checks.instance("field", field, Field)

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        seen = (y[..., None, :, 0] <= x[..., :, None, 0]).to(y.dtype)
        w = seen if w is None else w * seen
        blind = (w.sum(-1, keepdim=True) == 0).to(y.dtype)
        velocity = self.field.attend(x[..., 1:], y[..., 1:], w + blind, u) * (1 - blind)
        return torch.cat([torch.zeros_like(velocity[..., :1]), velocity], -1)


class TimeDependent(Field):
    """A field that changes with time, such as one with Castin's Q(t), K(t), V(t): ``fields(t)`` is the field at time t.

    >>> from measureflow.attention import Attention
    >>> growing = TimeDependent(lambda t: Attention(value=(1 + t) * torch.eye(2)))
    >>> growing.frozen(1.0)(torch.tensor([[3.0, 0.0]]))
    tensor([[6., 0.]])
    """

    def __init__(self, fields: Callable[[float | Tensor], Field]):
        super().__init__()
        if not callable(fields):
            raise ValueError("fields must be a function of time that returns a field")
        self.fields: Callable[[float | Tensor], Field] = fields

    @property
    def depends_on_time(self) -> bool:
        return True

    def frozen(self, t: float | Tensor) -> Field:
        return self.fields(t)

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        raise ValueError("a TimeDependent field has no value without a time: integrate it, or take .frozen(t)")

    def on_gaussian(self, mu: Gaussian) -> Affine:
        raise ValueError("a TimeDependent field has no value without a time: integrate it, or take .frozen(t)")


class Layers(Field):
    """A field for each step of a schedule: a transformer whose layers do not share their weights.

    >>> from measureflow.attention import Attention
    >>> doubled = Attention(value=2 * torch.eye(1))
    >>> Layers(Attention(), doubled).layer(1)(torch.tensor([[3.0]]))
    tensor([[6.]])
    """

    def __init__(self, *fields: Field):
        super().__init__()
        if not fields:
            raise ValueError("fields must hold at least one field")
        self.fields = nn.ModuleList(checks.instance("fields", field, Field) for field in fields)

    def layer(self, index: int) -> Field:
        if index >= len(self.fields):
            raise ValueError(f"schedule has more steps than the {len(self.fields)} fields of Layers")
        return cast(Field, self.fields[index])

    def frozen(self, t: float | Tensor) -> Field:
        raise ValueError("Layers has a field for each step of the schedule, not for each time: use a fixed-step method")

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        raise ValueError("Layers has no value without a layer: integrate it, or take .layer(index)")

    def on_gaussian(self, mu: Gaussian) -> Affine:
        raise ValueError("Layers has no value without a layer: integrate it, or take .layer(index)")
