"""Transformers with hand-set weights whose layers are iterations of k-means and its variants [Clarkson 2025]."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from measureflow.attention import Attention, DotProduct, Identity, Matrix, Normaliser, Score
from measureflow.circuits.clarkson import rows
from measureflow.circuits.clarkson.layers import EncoderDecoderLayer
from measureflow.circuits.clarkson.rows import Configuration
from measureflow.circuits.stream import Stream
from measureflow.measures import checks


class Iteration(NamedTuple):
    r"""What one layer leaves in the stream: shares (\*b, n, k) of the points and centres (\*b, k, d)."""

    assignment: Tensor
    centers: Tensor

    @property
    def labels(self) -> Tensor:
        """The cluster of each point, the first of those it is shared between."""
        return self.assignment.argmax(-1)


class KMeansTransformer(nn.Module):
    r"""T encoder-decoder layers over tokens (place, assignment): T iterations of the configured algorithm.

    The averaging hard-max has two consequences that the paper does not state. A point tied between m centres
    gets a share of 1/m in each, and the decoder, which uses the largest shares only, leaves it out of every cluster
    that has a point with a larger share. A cluster that no point is nearest to has a row of equal scores, and its
    centre moves to the mean of all points (or, in the rows whose decoder sees distances, treats all points as members).

    ``forward`` returns the last centres, `trace` every layer's.
    """

    def __init__(self, stream: Stream, configuration: Configuration, layers: list[EncoderDecoderLayer]):
        super().__init__()
        self.stream, self.configuration = stream, configuration
        self.layers = nn.ModuleList(layers)

    @property
    def k(self) -> int:
        """The number of clusters."""
        return self.stream.size("assignment")

    def embed(self, points: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
        r"""Tokens of the points, not yet assigned, and of the centres, which carry their index [(4)]."""
        eye = torch.eye(centers.shape[-2], dtype=centers.dtype, device=centers.device)
        index = {name: eye for name in ("assignment", "score") if name in self.stream}
        lift = self.configuration.geometry.lift
        return self.stream.embed(**lift(points)), self.stream.embed(**lift(centers), **index)

    def trace(self, points, centers, weights=None) -> list[Iteration]:
        r"""Assignment and centres after each layer, from points (\*b, n, d) and first centres (\*b, k, d)."""
        x, c, w = self._checked(points, centers, weights)
        X, C = self.embed(x, c)
        out = []
        for layer in self.layers:
            X, C = layer(X, C, w)
            out.append(Iteration(self.stream.read(X, "assignment"), self.stream.read(C, "point")))
        return out

    def forward(self, points, centers, weights=None) -> Tensor:
        return self.trace(points, centers, weights)[-1].centers

    def _checked(self, points, centers, weights):
        like = self.state_dict()["layers.0.enc_sa.value.M"]
        x, c = (checks.points(name, value, like.dtype) for name, value in (("points", points), ("centers", centers)))
        d, k = self.stream.size("point"), self.k
        if x.shape[-1] != d:
            raise ValueError(f"points have {x.shape[-1]} coordinates, this transformer takes {d}")
        if c.shape[-2:] != (k, d):
            raise ValueError(f"centers must have shape (*batch, {k}, {d}), got {tuple(c.shape)}")
        self.configuration.geometry.check(x)
        return x, c, None if weights is None else checks.weights("weights", weights, x)


def kmeans_transformer(
    d: int,
    k: int,
    configuration: Configuration | None = None,
    *,
    n_layers: int = 10,
    rotation: Tensor | None = None,
    learn: bool = False,
    dtype: torch.dtype = torch.float64,
) -> KMeansTransformer:
    r"""A transformer whose layers are iterations of k-means, with the matrices of [Clarkson 2025, (8)].

    ``configuration`` is a row of Table 1 from `measureflow.circuits.clarkson.rows`, Lloyd's algorithm by default.
    ``rotation`` turns all queries and keys of the stream (Remark 1): other weights, the same algorithm. With
    ``learn`` the same matrices are parameters; a ``state_dict`` of the one loads into the other.

    >>> points = torch.tensor([[0.0], [1.0], [8.0], [9.0]], dtype=torch.float64)
    >>> kmeans_transformer(d=1, k=2, n_layers=2)(points, points[:2]).flatten()
    tensor([0.5000, 8.5000], dtype=torch.float64)
    """
    for name, value in (("d", d), ("k", k), ("n_layers", n_layers)):
        checks.whole(name, value)
    row = rows.lloyd() if configuration is None else configuration
    extra = {"score": k} if row.two_steps else {}
    stream = Stream(**row.geometry.slots(d), assignment=k, **extra)
    build = LayerBuilder(stream, row, _orthogonal(rotation, stream.width), learn)
    return KMeansTransformer(stream, row, [build.layer() for _ in range(n_layers)]).to(dtype)


def _orthogonal(rotation: Tensor | None, width: int) -> Tensor | None:
    if rotation is None:
        return None
    R = checks.square("rotation", rotation, torch.float64)
    if R.shape != (width, width):
        raise ValueError(f"rotation must turn the whole stream, ({width}, {width}), got {tuple(R.shape)}")
    if (R.mT @ R - torch.eye(width, dtype=R.dtype)).abs().max() > 1e-10:
        raise ValueError("rotation must be orthogonal: R^T R is not the identity")
    return R


class LayerBuilder(NamedTuple):
    """Builds the matrices of a layer from what they do to the slots."""

    stream: Stream
    row: Configuration
    rotation: Tensor | None
    learn: bool

    def layer(self) -> EncoderDecoderLayer:
        """One iteration of the algorithm of ``row``."""
        stream, row = self.stream, self.row
        place, shares = row.geometry.query_key(stream), (stream.only("assignment"),) * 2
        written = [name for name in ("assignment", "score") if name in stream]
        enc_ca2 = None
        if row.two_steps:  # A.5.1: the scores themselves, gap included, go into the stream
            enc_ca2 = self.head(
                row.geometry.score, row.geometry.query_key(stream, row.delta or 0.0), Identity(), stream.only("score")
            )
        return EncoderDecoderLayer(
            enc_sa=self.head(row.geometry.score, place, row.reset, stream.only(*written, factor=-1.0)),
            enc_ca=self.head(row.geometry.score, place, row.assign, stream.only("assignment")),
            dec_sa=self.head(DotProduct, shares, row.reset, stream.only(*row.geometry.place, factor=-1.0)),
            dec_ca=self.head(*self.decoder_query_key(), row.update, stream.only("point")),
            enc_ca2=enc_ca2,
            norm=row.geometry.norm(stream),
            nlt=row.geometry.nlt(stream, self.learn),
        )

    def decoder_query_key(self) -> tuple[type[Score], tuple[Tensor, Tensor]]:
        """Q and K of the decoder: a centre compares its index with assignments or scores, or its place and index."""
        if self.row.two_steps:
            return DotProduct, (self.stream.only("score"), self.stream.only("score"))
        if self.row.delta is None:
            return DotProduct, (self.stream.only("assignment"), self.stream.only("assignment"))
        return self.row.geometry.score, self.row.geometry.query_key(self.stream, self.row.delta)

    def head(self, score: type[Score], QK, normaliser: Normaliser, V: Tensor) -> Attention:
        """One attention with the pair QK of query and key matrices, turned by the rotation, and values V."""
        Q, K = QK if self.rotation is None else (self.rotation @ M for M in QK)
        return Attention(score(Q.clone(), K.clone(), learn=self.learn), normaliser, Matrix(V, self.learn))
