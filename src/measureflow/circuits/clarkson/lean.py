r"""Lloyd's algorithm in d + ceil(log2 k) slots: clusters are told apart by binary codes instead of unit vectors.

A centre carries a code of m = ceil(log2 k) signs, and a point takes over the code of its nearest centre. Two codes
that differ have :math:`\langle c_i, c_j \rangle \le m - 2 < m = \langle c_j, c_j \rangle`, so a centre's hard-max over
points finds those of its own code alone. The matrices are those of [Clarkson 2025, (8)] on a narrower stream.

What differs from unit vectors: a centre that no point is nearest to has no row of equal scores. It finds the points
whose code is nearest to its own, and moves to their mean. A point tied between centres carries the mean of their codes.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from measureflow.circuits.clarkson import rows
from measureflow.circuits.clarkson.kmeans import Iteration, KMeansTransformer, LayerBuilder
from measureflow.circuits.stream import Stream
from measureflow.measures import checks


def codes(k: int) -> Tensor:
    """The first k binary numbers as signs, (k, ceil(log2 k)); a single cluster has one sign.

    >>> codes(3)
    tensor([[-1., -1.],
            [-1.,  1.],
            [ 1., -1.]], dtype=torch.float64)
    """
    width = max(1, math.ceil(math.log2(k)))
    bits = torch.arange(k)[:, None] >> torch.arange(width - 1, -1, -1) & 1
    return 2.0 * bits.double() - 1.0


class LeanKMeansTransformer(KMeansTransformer):
    """A `KMeansTransformer` whose tokens carry a code for their cluster; ``assignment`` is how well codes agree."""

    codes: Tensor

    def __init__(self, stream: Stream, k: int, configuration, layers):
        super().__init__(stream, configuration, layers)
        self.register_buffer("codes", codes(k))

    @property
    def k(self) -> int:
        return len(self.codes)

    def embed(self, points: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens of the points, without a code, and of the centres with theirs."""
        return self.stream.embed(point=points), self.stream.embed(point=centers, assignment=self.codes)

    def trace(self, points, centers, weights=None) -> list[Iteration]:
        """Agreement of codes (1 for a point's own cluster) and centres after each layer."""
        width = self.codes.shape[-1]
        steps = super().trace(points, centers, weights)
        return [Iteration(step.assignment @ self.codes.mT / width, step.centers) for step in steps]


def lean_kmeans_transformer(d: int, k: int, *, n_layers: int = 10) -> LeanKMeansTransformer:
    """A transformer whose layers are iterations of Lloyd's algorithm, in d + ceil(log2 k) slots.

    >>> points = torch.tensor([[0.0], [1.0], [8.0], [9.0]], dtype=torch.float64)
    >>> lean_kmeans_transformer(d=1, k=2, n_layers=2)(points, points[:2]).flatten()
    tensor([0.5000, 8.5000], dtype=torch.float64)
    """
    for name, value in (("d", d), ("k", k), ("n_layers", n_layers)):
        checks.whole(name, value)
    stream, row = Stream(point=d, assignment=codes(k).shape[-1]), rows.lloyd()
    build = LayerBuilder(stream, row, None, False)
    return LeanKMeansTransformer(stream, k, row, [build.layer() for _ in range(n_layers)]).double()


def matrix_entries(net: nn.Module) -> int:
    """The number of entries of a circuit's attention matrices: its parameters, were they learned."""
    return sum(tensor.numel() for name, tensor in net.state_dict().items() if name.startswith("layers."))
