"""The generic encoder-decoder layer [Clarkson 2025, Figure 5] and the token-wise parts it may have."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from measureflow.attention import Attention
from measureflow.circuits.stream import Stream


class EncoderDecoderLayer(nn.Module):
    r"""One layer: points attend to centres and to themselves, then centres to points and to themselves.

    .. math::
        X &\leftarrow X + \text{Enc-SA}(X, X) + \text{Enc-CA}(X, C), \quad
        X \leftarrow X + \text{Enc-CA}'(X, C) \\
        C &\leftarrow C + \text{Dec-SA}(C, C) + \text{Dec-CA}(C, X), \quad
        C \leftarrow \text{Norm}(C), \quad C \leftarrow C + \text{NLT}(C)

    [Clarkson 2025, (7), (20), (23), (27) and A.5.1]. ``enc_ca2`` (the second step of A.5.1), ``norm`` and
    ``nlt`` may be absent. Masses of the points count where points are keys and values, in Dec-CA; in Enc-SA a point
    finds itself, whatever its mass. The self-attentions are added first: they leave exact zeros for
    the rest to fill.
    """

    def __init__(
        self,
        enc_sa: Attention,
        enc_ca: Attention,
        dec_sa: Attention,
        dec_ca: Attention,
        *,
        enc_ca2: Attention | None = None,
        norm: nn.Module | None = None,
        nlt: nn.Module | None = None,
    ):
        super().__init__()
        self.enc_sa, self.enc_ca, self.enc_ca2 = enc_sa, enc_ca, enc_ca2
        self.dec_sa, self.dec_ca, self.norm, self.nlt = dec_sa, dec_ca, norm, nlt

    def forward(
        self, X: Tensor, C: Tensor, weights: Tensor | None = None, watch: Callable[[str, Tensor], None] | None = None
    ) -> tuple[Tensor, Tensor]:
        r"""Tokens after the layer, of points X (\*b, n, width) with masses (\*b, n) and centres (\*b, k, width).

        ``watch(name, A)`` is called with the attention matrix of each head, in the order in which they act.
        """

        def head(name: str, x: Tensor, y: Tensor, w: Tensor | None = None) -> Tensor:
            attention: Attention = getattr(self, name)
            if watch is None:
                return attention.attend(x, y, w)
            A = attention.weights(x, y, w)
            watch(name, A)
            return A @ attention.value(y)

        X = X + head("enc_sa", X, X) + head("enc_ca", X, C)
        if self.enc_ca2 is not None:
            X = X + head("enc_ca2", X, C)
        w = None if weights is None else weights[..., None, :]
        C = C + head("dec_sa", C, C) + head("dec_ca", C, X, w)
        if self.norm is not None:
            C = self.norm(C)
        if self.nlt is not None:
            C = C + self.nlt(C)
        return X, C


class SlotNorm(nn.Module):
    """A normalisation of one slot of every token; the other slots pass."""

    def __init__(self, stream: Stream, slot: str):
        super().__init__()
        self.slot = slot
        self.widths = [stream[slot].start, stream.size(slot), stream.width - stream[slot].stop]

    def rescale(self, z: Tensor) -> Tensor:
        """The slot, normalised."""
        raise NotImplementedError

    def forward(self, tokens: Tensor) -> Tensor:
        before, z, after = tokens.split(self.widths, -1)
        return torch.cat([before, self.rescale(z), after], -1)

    def extra_repr(self) -> str:
        return f"slot={self.slot}"


class RMSNorm(SlotNorm):
    r"""RMSNorm with gain :math:`1/\sqrt d`: :math:`z / |z|` [Clarkson 2025, Remark 2], for any unit vectors.

    A mean shorter than the square root of the rounding unit has no direction left and becomes zero.
    """

    def rescale(self, z: Tensor) -> Tensor:
        length = z.norm(dim=-1, keepdim=True)
        return torch.where(length > torch.finfo(z.dtype).eps ** 0.5, z / length.clamp_min(1e-30), 0.0)


class LayerNorm(RMSNorm):
    r"""LayerNorm with gain :math:`1/\sqrt d`, :math:`(z - \bar z)/|z - \bar z|` [Clarkson 2025, Lemma 3].

    It keeps the sphere only for points whose coordinates sum to zero, and the circuit refuses others.
    """

    def rescale(self, z: Tensor) -> Tensor:
        return super().rescale(z - z.mean(-1, keepdim=True))


class QuadraticFFN(nn.Module):
    r"""One hidden layer with squares, :math:`W_2 (W_1 c)^2 + b`: it lifts a moved centre again [(26)].

    W_1 reads the point, W_2 sums the squares into the slot ``norm``, and b puts -1/2 into the slot ``half``.
    """

    into: Tensor
    out: Tensor
    bias: Tensor

    def __init__(self, stream: Stream, learn: bool = False):
        super().__init__()
        d = stream.size("point")
        into = torch.zeros(d, stream.width, dtype=torch.float64)
        into[:, stream["point"]] = torch.eye(d, dtype=into.dtype)
        out = torch.zeros(stream.width, d, dtype=torch.float64)
        out[stream["norm"], :] = 1.0
        bias = torch.zeros(stream.width, dtype=torch.float64)
        bias[stream["half"]] = -0.5
        for name, value in (("into", into), ("out", out), ("bias", bias)):
            if learn:
                setattr(self, name, nn.Parameter(value))
            else:
                self.register_buffer(name, value)

    def forward(self, tokens: Tensor) -> Tensor:
        return (tokens @ self.into.mT).square() @ self.out.mT + self.bias
