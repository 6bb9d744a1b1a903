"""The space of points and centres, and the scores and token-wise parts that it needs."""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor, nn

from measureflow.attention import DotProduct, NegativeSquaredDistance, Score
from measureflow.circuits.clarkson.layers import LayerNorm, QuadraticFFN, RMSNorm
from measureflow.circuits.stream import Stream


class Euclidean:
    r"""Plain points and L2 attention, scores :math:`-|x - c|^2` [Clarkson 2025, A.2.1]."""

    symbol = "ℓ2"
    place = ("point",)  # the slots that say where a token is
    score: type[Score] = NegativeSquaredDistance

    def slots(self, d: int) -> dict[str, int]:
        """Widths of the slots that hold the place."""
        return {"point": d}

    def lift(self, points: Tensor) -> dict[str, Tensor]:
        """Values of those slots."""
        return {"point": points}

    def check(self, points: Tensor) -> None:
        """A ValueError where the points do not lie in this geometry."""

    def query_key(self, stream: Stream, delta: float = 0.0) -> tuple[Tensor, Tensor]:
        r"""Q and K that compare places, lowered by 2 delta for a point and a centre whose assignments differ.

        With Q = K = (point + :math:`\sqrt\delta` assignment) the assignments add :math:`-\delta|y - e_j|^2`,
        which is 0 or -2 delta [(32), where the factor is printed as delta: that would give 2 delta squared].
        """
        M = stream.only("point")
        if delta:
            M = M + stream.only("assignment", factor=sqrt(delta))
        return M, M.clone()

    def norm(self, stream: Stream) -> nn.Module | None:
        """The token-wise normalisation of the decoder, if any."""

    def nlt(self, stream: Stream, learn: bool = False) -> nn.Module | None:
        """The token-wise nonlinear transformation of the decoder, if any."""


class Lifted(Euclidean):
    r"""Lifted points :math:`\ell(x) = (x, |x|^2, -1/2)` and dot-product attention [Clarkson 2025, A.2.2].

    :math:`\ell(c)^\top \pi\, \ell(x) = -|c - x|^2` where pi doubles the point and swaps the last two slots,
    doubled [Lemma 2]. A quadratic feed-forward network lifts the moved centres again.
    """

    symbol = "⟨·⟩"
    place = ("point", "norm", "half")
    score = DotProduct

    def slots(self, d: int) -> dict[str, int]:
        return {"point": d, "norm": 1, "half": 1}

    def lift(self, points: Tensor) -> dict[str, Tensor]:
        square = (points * points).sum(-1, keepdim=True)
        return {"point": points, "norm": square, "half": torch.full_like(square, -0.5)}

    def query_key(self, stream: Stream, delta: float = 0.0) -> tuple[Tensor, Tensor]:
        pi = stream.matrix(("point", "point", 2.0), ("norm", "half", 2.0), ("half", "norm", 2.0))
        K = stream.only(*self.place)
        if delta:
            pi, K = pi + stream.only("assignment", factor=2 * delta), K + stream.only("assignment")
        return pi, K

    def nlt(self, stream: Stream, learn: bool = False) -> nn.Module:
        return QuadraticFFN(stream, learn)


class Spherical(Euclidean):
    r"""Unit vectors, scores :math:`x \cdot c`, and a norm that puts means back on the sphere [A.3]."""

    symbol = "⟨·⟩"
    score = DotProduct
    normalisation = RMSNorm

    def check(self, points: Tensor) -> None:
        length = points.norm(dim=-1)
        rounding = 8 * points.shape[-1] * torch.finfo(points.dtype).eps
        if ((length - 1).abs() > rounding).any():
            worst = float(length.flatten()[(length - 1).abs().argmax()])
            raise ValueError(f"points must be unit vectors, one has length {worst:.6g}")

    def query_key(self, stream: Stream, delta: float = 0.0) -> tuple[Tensor, Tensor]:
        M = stream.only("point")
        if delta:
            M = M + stream.only("assignment", factor=sqrt(2 * delta))
        return M, M.clone()

    def norm(self, stream: Stream) -> nn.Module:
        return self.normalisation(stream, "point")


class ZeroSumSpherical(Spherical):
    """Unit vectors of zero-sum coordinates, which LayerNorm keeps on the sphere [Theorem 4]."""

    normalisation = LayerNorm

    def check(self, points: Tensor) -> None:
        super().check(points)
        rounding = 8 * points.shape[-1] * torch.finfo(points.dtype).eps
        if (points.sum(-1).abs() > rounding).any():
            raise ValueError("points must have coordinates that sum to zero for LayerNorm; RMSNorm takes any")
