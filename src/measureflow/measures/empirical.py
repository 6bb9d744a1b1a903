"""Finitely many weighted points: a token sequence seen as a measure."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from measureflow.measures import checks


@dataclass(frozen=True, eq=False)
class Empirical:
    r"""The measure :math:`\mu = \sum_j w_j\, \delta_{y_j}`, or a batch of them.

    ``points`` has shape (\*b, n, d) and ``weights`` (\*b, n). Weights are masses: 1/n each by default, a
    probability; ones make a counting measure, whose field is a plain sum over tokens. A mass of 2 is the same as
    a point twice, and a mass of zero the same as no point, which is how batches of different sizes are padded
    (`ragged`).

    >>> mu = Empirical([[0.0, 0.0], [2.0, 0.0]], weights=[1, 3])
    >>> mu.mean
    tensor([1.5000, 0.0000])
    >>> mu.mass
    tensor(4.)
    """

    points: Tensor
    weights: Tensor
    uniform: bool = False  # all masses are 1/n: lets fused kernels leave the weights out

    def __init__(self, points, weights=None):
        y = checks.points("points", points)
        w = None if weights is None else checks.weights("weights", weights, y)
        self._set(y, w)

    def _set(self, points: Tensor, weights: Tensor | None) -> None:
        if weights is None:
            w = points.new_tensor(1.0 / points.shape[-2]).expand(points.shape[:-1])
        else:
            w = weights
        for name, value in (("points", points), ("weights", w), ("uniform", weights is None)):
            object.__setattr__(self, name, value)

    @classmethod
    def trusted(cls, points: Tensor, weights: Tensor | None = None) -> Empirical:
        """The same measure without the checks, for inner loops whose arguments were checked before."""
        mu = object.__new__(cls)
        mu._set(points, weights)
        return mu

    @classmethod
    def ragged(cls, clouds, weights=None) -> Empirical:
        """A batch of clouds of different sizes, padded by points of mass zero at each cloud's first point.

        >>> Empirical.ragged([[[1.0], [2.0]], [[5.0]]]).weights
        tensor([[0.5000, 0.5000],
                [1.0000, 0.0000]])
        """
        clouds = list(clouds)
        if not clouds:
            raise ValueError("clouds must hold at least one cloud")
        if weights is not None and len(weights) != len(clouds):
            raise ValueError(f"weights must have one entry for each of {len(clouds)} clouds, got {len(weights)}")
        parts = [cls(cloud, None if weights is None else weights[i]) for i, cloud in enumerate(clouds)]
        if {(*part.points.shape[:-2], part.d) for part in parts} != {(parts[0].d,)}:
            shapes = ", ".join(str(tuple(part.points.shape)) for part in parts)
            raise ValueError(f"clouds must have shapes (n_i, d) with the same d, got {shapes}")
        n = max(part.n for part in parts)
        grow = [(part, n - part.n) for part in parts]
        y = [torch.cat([part.points, part.points[:1].expand(k, -1)]) for part, k in grow]
        w = [torch.cat([part.weights, part.weights.new_zeros(k)]) for part, k in grow]
        return cls(torch.stack(y), torch.stack(w))

    def moved(self, points: Tensor) -> Empirical:
        """The same masses at new positions, as a flow moves them."""
        return self.trusted(points, None if self.uniform else self.weights)

    def to(self, *args, **kwargs) -> Empirical:
        """The same measure in another dtype or on another device."""
        return self.trusted(self.points.to(*args, **kwargs), None if self.uniform else self.weights.to(*args, **kwargs))

    @property
    def n(self) -> int:
        """Number of points, those of mass zero included."""
        return self.points.shape[-2]

    @property
    def d(self) -> int:
        """Dimension of the space."""
        return self.points.shape[-1]

    @property
    def mass(self) -> Tensor:
        r"""Total mass :math:`\sum_j w_j`, shape (\*b)."""
        return self.weights.sum(-1)

    @property
    def probabilities(self) -> Tensor:
        r"""The masses divided by their sum, shape (\*b, n)."""
        return self.weights / self.mass[..., None]

    @property
    def mean(self) -> Tensor:
        r"""Barycentre :math:`\alpha = \int y\, d\mu / \mu(1)`, shape (\*b, d)."""
        return (self.probabilities[..., None, :] @ self.points).squeeze(-2)

    @property
    def covariance(self) -> Tensor:
        r"""Covariance :math:`\int (y-\alpha)(y-\alpha)^\top d\mu / \mu(1)`, shape (\*b, d, d)."""
        z = self.points - self.mean[..., None, :]
        return z.mT @ (self.probabilities[..., None] * z)

    def __repr__(self) -> str:
        batch = "x".join(map(str, self.points.shape[:-2]))
        kind = ", uniform" if self.uniform else ""
        return f"Empirical({batch + ' of ' if batch else ''}n={self.n}, d={self.d}{kind})"
