"""Attention as a velocity field on measures."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from measureflow.attention.closed_forms import Affine, closed_form
from measureflow.attention.fused import fused_softmax
from measureflow.attention.matrix import Matrix
from measureflow.attention.normalisers import Normaliser, Softmax, log_weights
from measureflow.attention.scores import DotProduct, Score
from measureflow.measures import Empirical, Gaussian, checks

BLOCK = 2**22  # entries of a score matrix held at once: 16 MB in float32, which stays near the cache


class Field(nn.Module):
    r"""A velocity field :math:`\Gamma_\mu(x)` that depends on the measure it moves.

    ``field(mu)`` is the velocity of the measure itself: at its points for an `Empirical` (or a plain tensor of
    tokens, each of mass 1/n), as an affine map for a `Gaussian`, part by part for tokens that carry more than a
    position. ``field.at(x, mu)`` is the velocity elsewhere. A subclass defines `attend` and, where a closed form
    exists, `on_gaussian`; or it defines `on_tokens`.
    """

    def forward(self, mu: Any) -> Any:
        if isinstance(mu, Gaussian):
            return self.on_gaussian(mu)
        if not isinstance(mu, Empirical | Tensor):
            return self.on_tokens(mu)
        mu = mu if isinstance(mu, Empirical) else Empirical.trusted(mu)
        return self.at(mu, mu)

    def at(self, x: Tensor | Empirical, mu: Empirical) -> Tensor:
        r"""Velocities (\*b, n, d) at the points x (\*b, n, d) of the field that ``mu`` makes.

        The masses of x matter only to normalisers that couple the queries (Sinkhorn); plain points count alike.
        """
        if isinstance(x, Empirical):
            u = None if x.uniform else x.weights[..., :, None]
            return self.attend(x.points, mu.points, self.key_weights(mu), u)
        return self.attend(x, mu.points, self.key_weights(mu))

    def key_weights(self, mu: Empirical) -> Tensor | None:
        """The masses of the keys as `attend` takes them, left out where they cancel."""
        return None if mu.uniform and self.blind_to_total_mass else mu.weights[..., None, :]

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        r"""Velocities at queries x (\*b, n, d), for keys y (\*b, m, d).

        ``w`` holds the masses of the keys, broadcastable to (\*b, n, m) so that each query may see a measure of
        its own, and ``u`` those of the queries, (\*b, n, 1). ``None`` means masses of one.
        """
        raise NotImplementedError

    def on_gaussian(self, mu: Gaussian) -> Affine:
        """The field on a Gaussian, where it is affine; a ValueError where it is not."""
        raise ValueError(f"{type(self).__name__} has no closed form on a Gaussian: sample it and flow the particles")

    def on_tokens(self, tokens: Any) -> tuple[Tensor, ...]:
        """The velocity of each part of tokens that carry more than a position, for fields that move such tokens."""
        raise ValueError(
            f"mu must be of type Empirical or Gaussian or Tensor, got {type(tokens).__name__}, "
            f"which {type(self).__name__} does not move"
        )

    @property
    def blind_to_total_mass(self) -> bool:
        """Whether equal masses may be left out, because only their ratios enter."""
        return False

    @property
    def depends_on_time(self) -> bool:
        """Whether `frozen` gives a different field at different times."""
        return False

    def frozen(self, t: float | Tensor) -> Field:
        """The field at time ``t``: itself, unless it depends on time."""
        return self

    def layer(self, index: int) -> Field:
        """The field of one step of a schedule: itself, unless each step has a field of its own."""
        return self


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
            return self.weights(x, y, w, u) @ self.value(y)
        return self._attend_in_blocks(x, y, w)

    def weights(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        r"""The attention matrix (\*b, n, m), which `attend` holds only where the normaliser couples the queries."""
        scores = self.score(x, y)
        return self.normaliser(scores, w, u) if self.normaliser.couples_queries else self.normaliser(scores, w)

    def _attend_fused(self, x: Tensor, y: Tensor, w: Tensor | None, gamma: float) -> Tensor:
        q, k, bias = self.score.lifted(x, y)
        if bias is not None:
            bias = gamma * bias
        if w is not None:
            log_w = log_weights(q, w).squeeze(-2)
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
