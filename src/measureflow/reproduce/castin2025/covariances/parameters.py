"""The matrices behind the figures, and the four attentions they are given to.

The values are those of the published figures to four digits; A = K^T Q / sqrt(d) as there, which the score carries
as Q and K divided by d^(1/4). Heads of width k have A^(h) = K^(h)^T Q^(h) / sqrt(k), and W^(h) V^(h) keeps the h-th
block of rows of V.

The published script is not of one mind on the scale: its softmax and L2 divide A by sqrt(d) but its L2 leaves K^T K as
it is, and its Sinkhorn leaves A as it is. `l2` and `sinkhorn` scale Q and K alike, so that all attentions share one A;
the functions ``..._as_published`` do what the script does. Its heads of width k = 1 are not scaled at all; in
`multi_head_scaled` they are, as the softmax is.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from measureflow.attention import (
    Attention,
    DotProduct,
    Field,
    MultiHead,
    NegativeSquaredDistance,
    Sinkhorn,
)

EYE = ((1.0, 0.0), (0.0, 1.0))


@dataclass(frozen=True)
class Parameters:
    """Query, key and value matrices of one panel, as nested tuples."""

    Q: tuple
    K: tuple
    V: tuple = EYE

    def plain(self) -> tuple[Tensor, Tensor, Tensor]:
        """Q, K and V in float64."""
        Q, K, V = (torch.tensor(M, dtype=torch.float64) for M in (self.Q, self.K, self.V))
        return Q, K, V

    def scaled(self) -> tuple[Tensor, Tensor, Tensor]:
        """Q and K with the factor d^(-1/4) that makes A = K^T Q / sqrt(d), and V, in float64."""
        Q, K, V = self.plain()
        return Q / len(V) ** 0.25, K / len(V) ** 0.25, V


def softmax(p: Parameters) -> Field:
    """Softmax attention."""
    Q, K, V = p.scaled()
    return Attention(DotProduct(Q, K), value=V)


def l2(p: Parameters) -> Field:
    """L2 attention with the same A."""
    Q, K, V = p.scaled()
    return Attention(NegativeSquaredDistance(Q, K), value=V)


def sinkhorn(p: Parameters) -> Field:
    """Sinkhorn attention at epsilon = 1 with the same A."""
    Q, K, V = p.scaled()
    return Attention(DotProduct(Q, K), Sinkhorn(epsilon=1.0), V)


def l2_as_published(p: Parameters) -> Field:
    """L2 attention with A = K^T Q / sqrt(d) and K^T K not scaled: the field sees Q and K through these two alone."""
    Q, K, V = p.plain()
    return Attention(NegativeSquaredDistance(Q / len(V) ** 0.5, K), value=V)


def sinkhorn_as_published(p: Parameters) -> Field:
    """Sinkhorn attention at epsilon = 1 with A = K^T Q."""
    Q, K, V = p.plain()
    return Attention(DotProduct(Q, K), Sinkhorn(epsilon=1.0), V)


def multi_head(p: Parameters) -> Field:
    """One head for each row of Q and K (k = 1); rows that are missing are idle heads."""
    return _heads(*p.plain())


def multi_head_scaled(p: Parameters) -> Field:
    """The same heads, their scores divided by sqrt(d) as those of the softmax are: the A^(h) then add up to A."""
    return _heads(*p.scaled())


def _heads(Q: Tensor, K: Tensor, V: Tensor) -> Field:
    rows = range(min(len(Q), len(V)))
    kept = torch.stack([torch.diag(torch.eye(len(V), dtype=V.dtype)[h]) for h in rows])
    heads = Attention(DotProduct(Q[: len(kept), None], K[: len(kept), None]), value=V.expand(len(kept), -1, -1))
    return MultiHead(heads, kept)


# A + A^T negative definite, V random positive definite: Figures 1 (a), 4, 5 (a), 7 (a)
_Q = ((0.4581, 0.3083), (0.2315, 0.2774))
SHRINKING = Parameters(_Q, tuple(tuple(-q for q in row) for row in _Q), ((2.6694, -0.6915), (-0.6915, 2.6874)))
# A + A^T negative of rank one: Figures 1 (b), 1 (c), 5 (b)
_q = (0.4063, 0.9137)
RANK_ONE = Parameters((_q,), (tuple(-c for c in _q),))
RANK_ONE_BOTH_HEADS = Parameters(
    (tuple(0.8 * c for c in _q), tuple(0.6 * c for c in _q)),
    (tuple(-0.8 * c for c in _q), tuple(-0.6 * c for c in _q)),
)
# A + A^T of both signs: Figures 1 (d), 5 (c); and with another V, Figures 2 (d), 6
_MIXED_Q, _MIXED_K = ((0.6764, 1.5211), (-0.5119, 1.1502)), ((-0.5907, -0.7688), (-0.335, 0.093))
TWO_LINES = Parameters(_MIXED_Q, _MIXED_K, ((-0.3489, 0.9837), (0.5809, 0.0703)))
DIVIDED = Parameters(_MIXED_Q, _MIXED_K, ((1.8318, -0.3769), (0.3481, -0.1163)))
# A + A^T positive definite, V the identity: Figures 2 (a, b, c), 7 (b)
GROWING = Parameters(((-0.0968, 0.4222), (-0.2255, -0.6379)), ((-0.0163, 1.0442), (-1.0849, -2.2059)))
