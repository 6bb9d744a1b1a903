"""Attention as a velocity field on measures, and the wrappers that make new fields from old ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import add
from typing import cast

import torch
from torch import Tensor, nn

from measureflow.attention.closed_forms import Affine, closed_form
from measureflow.attention.fused import fused_softmax
from measureflow.attention.matrix import Matrix
from measureflow.attention.normalisers import Normaliser, Softmax, log_masses
from measureflow.attention.scores import DotProduct, Score
from measureflow.measures import Empirical, Gaussian, checks

BLOCK = 2**22  # entries of a score matrix held at once: 16 MB in float32, which stays near the cache


class Field(nn.Module):
    r"""A velocity field :math:`\Gamma_\mu(x)` that depends on the measure it moves.

    ``field(mu)`` is the velocity of the measure itself: at its points for an `Empirical` (or a plain tensor of
    tokens, each of mass 1/n), as an affine map for a `Gaussian`. ``field.at(x, mu)`` is the velocity elsewhere.
    A kind of field says how by `attend` and, where it can, `on_gaussian`.
    """

    def forward(self, mu: Empirical | Gaussian | Tensor) -> Tensor | Affine:
        if isinstance(mu, Gaussian):
            return self.on_gaussian(mu)
        checks.instance("mu", mu, Empirical, Gaussian, Tensor)
        mu = mu if isinstance(mu, Empirical) else Empirical.trusted(mu)
        return self.at(mu, mu)

    def at(self, x: Tensor | Empirical, mu: Empirical) -> Tensor:
        r"""Velocities (\*b, n, d) at the points x (\*b, n, d) of the field that ``mu`` makes.

        The masses of x matter only to normalisers that couple the queries (Sinkhorn); plain points count alike.
        """
        if isinstance(x, Empirical):
            u = None if x.uniform else x.weights[..., :, None]
            return self.attend(x.points, mu.points, self.masses(mu), u)
        return self.attend(x, mu.points, self.masses(mu))

    def masses(self, mu: Empirical) -> Tensor | None:
        """The masses of the keys as `attend` takes them, left out where they cancel."""
        return None if mu.uniform and self.blind_to_total_mass else mu.weights[..., None, :]

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        r"""Velocities at queries x (\*b, n, d), for keys y (\*b, m, d).

        ``w`` holds the masses of the keys, broadcastable to (\*b, n, m) so that each query may see a measure of
        its own, and ``u`` those of the queries, (\*b, n, 1). ``None`` means masses of one.
        """
        raise NotImplementedError

    def on_gaussian(self, mu: Gaussian) -> Affine:
        """The field on a Gaussian, where it is affine; a ValueError says where it is not."""
        raise ValueError(f"{type(self).__name__} has no closed form on a Gaussian: sample it and flow the particles")

    @property
    def blind_to_total_mass(self) -> bool:
        """Whether equal masses may be left out, because only their ratios enter."""
        return False


class Attention(Field):
    r"""One head: :math:`\Gamma_\mu(x) = \sum_j N(s(x, \cdot), w)_j\, V y_j` for :math:`\mu = \sum_j w_j \delta_{y_j}`.

    Score, normaliser and value are chosen independently. ``value`` is a matrix (hand-set), a `Matrix`, any module
    that maps points to values, or None for the identity.

    >>> from measureflow.attention import NegativeSquaredDistance, Hardmax
    >>> nearest = Attention(NegativeSquaredDistance(), Hardmax())
    >>> mu = Empirical([[0.0, 0.0], [4.0, 0.0]])
    >>> nearest.at(torch.tensor([[1.0, 1.0], [3.0, 0.0]]), mu)
    tensor([[0., 0.],
            [4., 0.]])
    """

    def __init__(self, score: Score | None = None, normaliser: Normaliser | None = None, value=None):
        super().__init__()
        self.score: Score = DotProduct() if score is None else checks.instance("score", score, Score)
        self.normaliser = Softmax() if normaliser is None else checks.instance("normaliser", normaliser, Normaliser)
        self.value = value if isinstance(value, nn.Module) else Matrix(value)

    @property
    def blind_to_total_mass(self) -> bool:
        return isinstance(self.normaliser, Softmax)

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        if isinstance(self.normaliser, Softmax) and (w is None or w.shape[-2] == 1):
            return self._attend_fused(x, y, w, self.normaliser.gamma)
        if self.normaliser.couples_queries:
            return self.normaliser(self.score(x, y), w, u) @ self.value(y)
        return self._attend_in_blocks(x, y, w)

    def _attend_fused(self, x: Tensor, y: Tensor, w: Tensor | None, gamma: float) -> Tensor:
        q, k, bias = self.score.lifted(x, y)
        if bias is not None:
            bias = gamma * bias
        if w is not None:
            log_w = log_masses(q, w).squeeze(-2)
            bias = log_w if bias is None else bias + log_w
        return fused_softmax(q, k, self.value(y), bias, gamma)

    def _attend_in_blocks(self, x: Tensor, y: Tensor, w: Tensor | None) -> Tensor:
        v = self.value(y)
        rows = max(1, BLOCK // (y.shape[-2] * max(1, y.shape[:-2].numel())))
        if rows >= x.shape[-2]:
            return self.normaliser(self.score(x, y), w) @ v
        out = []
        for start in range(0, x.shape[-2], rows):
            part = slice(start, start + rows)
            seen = w if w is None or w.shape[-2] == 1 else w[..., part, :]
            out.append(self.normaliser(self.score(x[..., part, :], y), seen) @ v)
        return torch.cat(out, -2)

    def on_gaussian(self, mu: Gaussian) -> Affine:
        if not isinstance(self.value, Matrix):
            raise ValueError(f"value is a {type(self.value).__name__}, not a matrix: the field is not affine")
        M, c = closed_form(self.score, self.normaliser, mu)
        if self.value.M is None:
            return Affine(M, c)
        V = self.value.M.to(M.dtype)
        return Affine(V @ M, (V @ c[..., None]).squeeze(-1))


class MultiHead(Field):
    r"""Heads side by side: :math:`\Gamma_\mu = \sum_h W_h \Gamma_\mu^{(h)}` [Castin 2025, 2.7].

    ``heads`` is one `Attention` whose matrices have a leading axis of heads, (H, k, d): all heads run in one
    call. ``output`` holds the W_h, (H, d, k); None sums the heads as they are.

    >>> Q = torch.stack([torch.eye(2), -torch.eye(2)])
    >>> heads = Attention(DotProduct(Q, torch.eye(2)), value=Q)
    >>> MultiHead(heads)(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    tensor([[ 1.5232,  0.0000],
            [-1.5232,  0.0000]])
    """

    def __init__(self, heads: Attention, output=None, learn: bool = False):
        super().__init__()
        self.heads = checks.instance("heads", heads, Attention)
        self.output = Matrix(output, learn)

    @classmethod
    def concatenated(cls, heads: Attention, W, learn: bool = False) -> MultiHead:
        """Heads joined end to end and mapped by one W (d, H k): the blocks of W are the output matrices."""
        W, H = checks.as_floats("W", W), _count(heads)
        if W.ndim != 2 or W.shape[-1] % H:
            raise ValueError(f"W must have shape (d, {H} k) for {H} heads of width k, got {tuple(W.shape)}")
        return cls(heads, W.unflatten(-1, (H, -1)).transpose(0, 1).contiguous(), learn)

    @classmethod
    def averaged(cls, heads: Attention) -> MultiHead:
        """The mean of the heads."""
        H, V = _count(heads), getattr(heads.value, "M", None)
        if V is None:
            raise ValueError("heads must have a value matrix, so that the width of what is averaged is known")
        return cls(heads, torch.eye(V.shape[-2], dtype=V.dtype, device=V.device).expand(H, -1, -1) / H)

    @property
    def blind_to_total_mass(self) -> bool:
        return self.heads.blind_to_total_mass

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        w, u = (t if t is None else t.unsqueeze(-3) for t in (w, u))
        out = self.heads.attend(x.unsqueeze(-3), y.unsqueeze(-3), w, u)
        W = self.output.M
        if W is None:
            return out.sum(-3)
        if W.ndim == 3:  # sum over heads and their coordinates in one product
            return nn.functional.linear(out.transpose(-3, -2).flatten(-2), W.transpose(0, 1).flatten(1))
        return (out @ W.mT).sum(-3)

    def on_gaussian(self, mu: Gaussian) -> Affine:
        M, c = self.heads.on_gaussian(Gaussian.trusted(mu.mean[..., None, :], mu.covariance[..., None, :, :]))
        W = self.output.dense(M.shape[-2], M)
        return Affine((W @ M).sum(-3), (W @ c[..., None]).squeeze(-1).sum(-2))


def _count(heads: Attention) -> int:
    """The number of heads, read off the matrices."""
    for M in (heads.score.Q.M, heads.score.K.M, getattr(heads.value, "M", None)):
        if M is not None and M.ndim > 2:
            return M.shape[-3]
    raise ValueError("heads must have at least one matrix with a leading axis of heads, (H, k, d)")


class Sum(Field):
    r"""The sum of fields of any kinds, :math:`\Gamma_\mu = \sum_f c_f \Gamma_\mu^{(f)}`, with coefficients of one."""

    def __init__(self, *fields: Field, coefficients: list[float] | None = None):
        super().__init__()
        if not fields:
            raise ValueError("fields must name at least one field")
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


class Relative(Field):
    r"""The pull toward the field, :math:`\Gamma_\mu(x) - x`: a step of size one moves x onto its attention value."""

    def __init__(self, field: Field):
        super().__init__()
        self.field = checks.instance("field", field, Field)

    @property
    def blind_to_total_mass(self) -> bool:
        return self.field.blind_to_total_mass

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        return self.field.attend(x, y, w, u) - x

    def on_gaussian(self, mu: Gaussian) -> Affine:
        M, c = self.field.on_gaussian(mu)
        return Affine(M - torch.eye(mu.d, dtype=M.dtype, device=M.device), c)


class Against(Field):
    r"""Cross-attention: the keys are a measure nu of their own that does not move, :math:`\Gamma_\nu(x)`."""

    def __init__(self, field: Field, nu: Empirical | Gaussian):
        super().__init__()
        self.field = checks.instance("field", field, Field)
        self.nu = checks.instance("nu", nu, Empirical, Gaussian)

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        if isinstance(self.nu, Gaussian):
            return self.field.on_gaussian(self.nu).at(x)
        return self.field.attend(x, self.nu.points, self.field.masses(self.nu), u)

    def on_gaussian(self, mu: Gaussian) -> Affine:
        if not isinstance(self.nu, Gaussian):
            raise ValueError("nu is not a Gaussian, so the field it makes is not affine: flow particles instead")
        return self.field.on_gaussian(self.nu)


class Masked(Field):
    r"""Causal attention [Castin 2025, (2.7)]: the first coordinate is a position, which nothing moves.

    .. math:: \bar\Gamma_{\bar\mu}(\sigma, x) = (0,\; \Gamma_{\mu_\sigma}(x)), \qquad
        \mu_\sigma = \bar\mu \text{ restricted to positions } \tau \le \sigma

    A query that sees no mass at all stays where it is.
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
    r"""A field whose parameters change along the flow: ``fields(t)`` is the field at time t.

    Castin's Q(t), K(t), V(t), and a transformer with distinct layers, are such.
    """

    def __init__(self, fields: Callable[[float | Tensor], Field]):
        super().__init__()
        if not callable(fields):
            raise ValueError("fields must be a function of time that returns a field")
        self.fields: Callable[[float | Tensor], Field] = fields

    def frozen(self, t: float | Tensor) -> Field:
        """The field at time ``t``."""
        return self.fields(t)

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        raise ValueError("a TimeDependent field has no value without a time: integrate it, or take .frozen(t)")

    def on_gaussian(self, mu: Gaussian) -> Affine:
        raise ValueError("a TimeDependent field has no value without a time: integrate it, or take .frozen(t)")
