r"""The layers of He 2025, Definitions 2.1-2.5, on the library's attention.

He writes tokens as columns and normalises columns; here tokens are rows. The paper's Q is what the *attended* tokens
show and its K what the *attending* token asks: Q goes to the keys and K to the queries of `Attention`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from measureflow.attention import (
    Attention,
    DotProduct,
    Field,
    Identity,
    Layers,
    Matrix,
    MultiHead,
    Normaliser,
    Softmax,
)
from measureflow.flows import integrate
from measureflow.measures import Empirical


@dataclass(frozen=True, eq=False)
class Heads:
    r"""M heads in the paper's letters, each matrix a product of thin ones: :math:`V_m` = ``write`` @ ``read``.

    Q, K: (M, r, D); read: (M, s, D); write: (M, D, s). Head m sends token i to token j as
    :math:`V_m h_i\, f(Q_m h_i \cdot K_m h_j)`.
    """

    Q: Tensor
    K: Tensor
    read: Tensor
    write: Tensor

    def __len__(self) -> int:
        return self.Q.shape[0]

    @classmethod
    def one(cls, Q: Tensor, K: Tensor, read: Tensor, write: Tensor) -> Heads:
        """A single head from plain matrices."""
        return cls(Q[None], K[None], read[None], write[None])

    @classmethod
    def uniform(cls, read: Tensor, write: Tensor) -> Heads:
        """A head with Q = K = 0: under softmax, the mean over all tokens."""
        zero = torch.zeros_like(read[:1])
        return cls.one(zero, zero, read, write)


def _wide(t: Tensor, width: int, axis: int) -> Tensor:
    shape = list(t.shape)
    shape[axis] = width - shape[axis]
    return torch.cat([t, t.new_zeros(shape)], axis)


def joined(groups: Sequence[Heads]) -> Heads:
    """All heads of one layer in one stack; thin ranks are filled with zeros."""
    r, s = max(g.Q.shape[1] for g in groups), max(g.read.shape[1] for g in groups)
    return Heads(
        torch.cat([_wide(g.Q, r, 1) for g in groups]),
        torch.cat([_wide(g.K, r, 1) for g in groups]),
        torch.cat([_wide(g.read, s, 1) for g in groups]),
        torch.cat([_wide(g.write, s, 2) for g in groups]),
    )


class AttentionLayer(Field):
    r"""The velocity :math:`\sum_m \sum_i V_m h_i\, f(Q_m h_i \cdot K_m h_j)`; a step of one is Definition 2.1 or 2.2.

    f is the soft-max over i, or with ``Identity()`` the identity (un-normalised). Without heads nothing moves. Plain
    tokens have a mass of one each, because the sums of the paper run over tokens.
    """

    def __init__(self, *groups: Heads, normaliser: Normaliser | None = None):
        super().__init__()
        self.field = None
        if groups:
            heads = joined(groups)
            normaliser = Softmax() if normaliser is None else normaliser
            self.field = MultiHead(Attention(DotProduct(heads.K, heads.Q), normaliser, heads.read), heads.write)

    @property
    def heads(self) -> Heads | None:
        """The matrices, in the paper's letters."""
        if self.field is None:
            return None
        inner = self.field.heads
        read = cast(Matrix, inner.value)
        return Heads(inner.score.K.entries, inner.score.Q.entries, read.entries, self.field.output.entries)

    @property
    def normalised(self) -> bool:
        """Whether this is Definition 2.1, not 2.2."""
        return self.field is None or not isinstance(self.field.heads.normaliser, Identity)

    def key_weights(self, mu: Empirical) -> Tensor | None:
        return None if mu.uniform else mu.weights[..., None, :]

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        return torch.zeros_like(x) if self.field is None else self.field.attend(x, y, w, u)


class FullyConnected(Field):
    r"""The velocity :math:`W_2\, \mathrm{ReLU}(W_1 h)`, from pieces (W_1, W_2) laid side by side, if any; a step of one
    is Definition 2.3."""

    def __init__(self, *pieces: tuple[Tensor, Tensor]):
        super().__init__()
        self.W1 = Matrix(torch.cat([piece[0] for piece in pieces])) if pieces else None
        self.W2 = Matrix(torch.cat([piece[1] for piece in pieces], -1)) if pieces else None

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        return torch.zeros_like(x) if self.W1 is None or self.W2 is None else self.W2(torch.relu(self.W1(x)))


def gated(read: Tensor, write: Tensor) -> tuple[Tensor, Tensor]:
    r"""The piece that adds :math:`\mathrm{write}\, \mathrm{ReLU}(\mathrm{read}\, h)`."""
    return read, write


def linear(read: Tensor, write: Tensor) -> tuple[Tensor, Tensor]:
    r"""The piece that adds :math:`\mathrm{write}\,\mathrm{read}\, h`, as x is ReLU(x) - ReLU(-x)."""
    return torch.cat([read, -read]), torch.cat([write, -write], -1)


class Transformer(nn.Module):
    r"""Definitions 2.4 and 2.5: L pairs of attention and fully connected layers, then :math:`\tilde W_0`.

    Each layer of a pair is a step of Euler's method of size one. It is a Transformer if all its attention is
    normalised, a Transformer+ otherwise. The right factor :math:`\tilde W_1` of the paper, which mixes tokens, is the
    identity.
    """

    def __init__(self, layers: Sequence[tuple[AttentionLayer, FullyConnected]], readout: Tensor):
        super().__init__()
        self.attention = nn.ModuleList([pair[0] for pair in layers])
        self.connected = nn.ModuleList([pair[1] for pair in layers])
        self.readout = Matrix(readout)

    @property
    def n_layers(self) -> int:
        """L, the number of (attention, fully connected) pairs."""
        return len(self.attention)

    @property
    def pairs(self) -> list[tuple[AttentionLayer, FullyConnected]]:
        """The attention and the fully connected part of each layer."""
        both = zip(self.attention, self.connected, strict=True)
        return [(cast(AttentionLayer, attend), cast(FullyConnected, connect)) for attend, connect in both]

    def states(self, h: Tensor) -> list[Tensor]:
        """The residual stream before the first layer and after each layer."""
        fields = [layer for pair in self.pairs for layer in pair]
        return integrate(Layers(*fields), h, [1.0] * len(fields)).states[::2]

    def forward(self, h: Tensor) -> Tensor:
        return self.readout(self.states(h)[-1])

    def parameter_norm(self) -> float:
        r"""The norm of section 2.1, the greatest over layers of
        :math:`\max_m(|Q_m|, |K_m|) + |\tilde W_0| + |\tilde W_1| + \sum_m |V_m| + |W_1| + |W_2|`.

        The print has the norms of W_1 and W_2 inside the sum over heads; as in its source (Bai et al. 2024) they
        stand once. All norms are operator norms.
        """
        ends = _norm(self.readout.entries) + 1.0
        return max(ends + _attention_norm(attend) + _connected_norm(connect) for attend, connect in self.pairs)


def _norm(M: Tensor) -> float:
    return float(torch.linalg.matrix_norm(M, 2).max())


def _attention_norm(layer: AttentionLayer) -> float:
    heads = layer.heads
    if heads is None:
        return 0.0
    V = torch.linalg.matrix_norm(heads.write @ heads.read, 2).sum()
    return max(_norm(heads.Q), _norm(heads.K)) + float(V)


def _connected_norm(layer: FullyConnected) -> float:
    return 0.0 if layer.W1 is None or layer.W2 is None else _norm(layer.W1.entries) + _norm(layer.W2.entries)
