r"""He 2025, Theorems 3.1 and 3.2: a transformer that runs Lloyd's algorithm, every weight explicit.

Each iteration is one block of 3 + 3k layers (7 + 3k with un-normalised attention), the same weights in every block:

=====================  =====================================================================================
E step                 the centre of cluster j appears at token j (`expectation`)
M step 1, 2k layers    k copies of the points, positive parts and negative parts in turn
M step 2, k layers     subtract centre j from copy j at all tokens
M step 3, 2 layers     the norm of each copy, by `approximate`; then forget copies and old labels
M step 4, 1 layer      soft-max of minus beta times the norms: the new labels
=====================  =====================================================================================

docs/corrections.md lists the misprints of the paper and what is built instead; tests/exact/test_em.py runs it.
"""

from __future__ import annotations

import math

from torch import Tensor

from measureflow.circuits.he.approximate import SigmoidSum, approximate
from measureflow.circuits.he.expectation import expectation, expectation_plus
from measureflow.circuits.he.layers import Transformer
from measureflow.circuits.he.maximisation import maximisation
from measureflow.circuits.he.stream import Design, context, padded


class EMTransformer(Transformer):
    r"""What `em_transformer` returns: eq. (4) goes in, nearly one-hot labels (\*b, N, k) come out.

    ``distance`` is the approximated (softened) norm and ``distance.error`` its measured sup error.
    """

    def __init__(self, layers, design: Design, distance: SigmoidSum, d: int):
        super().__init__(layers, design.slots.take("p1"))
        self.design, self.distance, self.d = design, distance, d

    def context(self, points, centers) -> Tensor:
        r"""The matrix H of eq. (4), tokens as rows, of points (\*b, N, d) and first centres (\*b, k, d)."""
        x = padded("points", points, self.d, self.design.d)
        mu = padded("centers", centers, self.d, self.design.d)
        return context(self.design, x, mu)

    def labels(self, points, centers) -> Tensor:
        r"""The labels (\*b, N) after all iterations."""
        return self(self.context(points, centers)).argmax(-1)

    def extra_repr(self) -> str:
        D = self.design
        return f"k={D.k}, d={self.d}, N={D.N}, layers={self.n_layers}, heads={self.distance.n_heads}, beta={D.beta:.3g}"


def em_transformer(
    k: int,
    d: int,
    N: int,
    n_iterations: int = 1,
    n_heads: int = 256,
    plus: bool = False,
    *,
    radius: float = 1.0,
    margin: float | None = None,
    sharpness: float = 2.0,
    smallest_share: float = 0.1,
    error: float | None = None,
    pad: bool = False,
    seed: int = 0,
) -> EMTransformer:
    r"""The transformer of Theorem 3.1, :math:`L = \tau(3 + 3k)`, or with ``plus`` of 3.2, :math:`L = \tau(7 + 3k)`.

    It clusters N points of dimension d that lie within ``radius`` of their mean. ``n_heads`` is the theorem's M: the
    heads spent on each approximated function. Soft-max replaces arg-max at :math:`\beta = C \log N / \text{margin}`
    with C = ``sharpness``: a point whose nearest centre is nearer by ``margin`` plus twice ``distance.error`` (of
    softened distances) than the second gets a label within :math:`k N^{-C}` of one-hot. ``smallest_share`` is the
    alpha of the paper's parameter space, needed by ``plus`` alone: the least share of points in a cluster.

    The theorems assume k < d, because the context rows p_2 of eq. (4) tell apart d tokens by d coordinates; ``pad``
    gives points of fewer dimensions k + 1 - d more that are zero, which changes no distance. ``error`` asks for a
    sup error of the distances and raises a ValueError where M heads do not reach it.

    >>> import torch
    >>> net = em_transformer(2, 3, 8, n_iterations=2, n_heads=64)
    >>> net.n_layers
    18
    >>> x = torch.tensor([[0.5, 0, 0], [0.6, 0, 0], [0.5, 0.1, 0], [0.4, 0, 0]], dtype=torch.float64)
    >>> net.labels(torch.cat([x, -x]), torch.stack([x[0], -x[0]]))
    tensor([0, 0, 0, 0, 1, 1, 1, 1])
    """
    margin = radius / 10 if margin is None else margin
    width = max(d, k + 1) if pad else d
    design = Design(k, width, N, n_iterations, radius, margin, sharpness, smallest_share if plus else None)
    softening = radius / 2
    distance = approximate(
        lambda v: (v.square().sum(-1) + softening**2).sqrt(),
        n_heads, 2 * radius, dimension=d, even=True, error=error, seed=seed,
    )  # fmt: skip
    if plus:
        inverse = approximate(
            lambda v: 1 / v.norm(dim=-1),
            n_heads, 1.0, inner_radius=smallest_share, even=True, steepness=(8.0, 80.0), seed=seed,
        )  # fmt: skip
        first = expectation_plus(design, inverse)
    else:
        first = expectation(design)
    block = maximisation(design, first, distance, ceiling=math.hypot(2 * radius, softening))
    return EMTransformer(block * n_iterations, design, distance, d)
