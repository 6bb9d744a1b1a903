"""Gaussian measures, whose attention flow is known in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from numpy import broadcast_shapes  # torch's own imports sympy the first time it is called
from torch import Tensor

from measureflow.measures import checks
from measureflow.measures.empirical import Empirical


@dataclass(frozen=True, eq=False)
class Gaussian:
    r"""The measure :math:`\mathcal{N}(\alpha, \Sigma)`, or a batch of them.

    ``mean`` has shape (\*b, d), ``covariance`` (\*b, d, d), symmetric positive semi-definite: a covariance of low
    rank is the limit that clustering flows approach.

    >>> Gaussian(torch.zeros(2), torch.eye(2)).entropy()
    tensor(2.8379)
    """

    mean: Tensor
    covariance: Tensor

    def __init__(self, mean, covariance):
        S = checks.covariance("covariance", covariance)
        alpha = checks.finite("mean", checks.as_floats("mean", mean, S.dtype))
        if alpha.ndim == 0 or alpha.shape[-1] != S.shape[-1]:
            raise ValueError(f"mean must have shape (*batch, {S.shape[-1]}), got {tuple(alpha.shape)}")
        try:
            batch = broadcast_shapes(alpha.shape[:-1], S.shape[:-2])
        except ValueError:
            raise ValueError(
                f"mean and covariance have different batches: {tuple(alpha.shape[:-1])} and {tuple(S.shape[:-2])}"
            ) from None
        self._set(alpha.expand(*batch, -1), S.expand(*batch, -1, -1))

    def _set(self, mean: Tensor, covariance: Tensor) -> None:
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", covariance)

    @classmethod
    def trusted(cls, mean: Tensor, covariance: Tensor) -> Gaussian:
        """The same measure without the checks, for inner loops."""
        mu = object.__new__(cls)
        mu._set(mean, covariance)
        return mu

    @property
    def d(self) -> int:
        """Dimension of the space."""
        return self.mean.shape[-1]

    def to(self, *args, **kwargs) -> Gaussian:
        """The same measure in another dtype or on another device."""
        return self.trusted(self.mean.to(*args, **kwargs), self.covariance.to(*args, **kwargs))

    def sample(self, n: int, generator: torch.Generator) -> Empirical:
        r"""``n`` independent points :math:`\alpha + \Sigma^{1/2} \xi`, drawn from an explicit generator."""
        checks.whole("n", n)
        xi = torch.randn(
            *self.mean.shape[:-1], n, self.d, generator=generator, dtype=self.mean.dtype, device=self.mean.device
        )
        return Empirical.trusted(self.mean[..., None, :] + xi @ matrix_sqrt(self.covariance))

    def entropy(self) -> Tensor:
        r"""Differential entropy :math:`\tfrac12 \log\det(2\pi e \Sigma)`, minus infinity where degenerate."""
        constant = torch.log(self.mean.new_tensor(2 * torch.pi * torch.e))
        return 0.5 * (torch.linalg.slogdet(self.covariance).logabsdet + self.d * constant)

    def __repr__(self) -> str:
        batch = "x".join(map(str, self.mean.shape[:-1]))
        return f"Gaussian({batch + ' of ' if batch else ''}d={self.d})"


def matrix_sqrt(S: Tensor) -> Tensor:
    """The symmetric square root of positive semi-definite matrices (*b, d, d).

    Eigenvalues that are only rounding errors count as zero: their square roots would not be small.

    >>> matrix_sqrt(torch.diag(torch.tensor([4.0, 9.0])))
    tensor([[2., 0.],
            [0., 3.]])
    """
    values, vectors = torch.linalg.eigh(S)
    rounding = S.shape[-1] * torch.finfo(S.dtype).eps * values[..., -1:]
    return (vectors * torch.where(values > rounding, values, 0.0).sqrt()[..., None, :]) @ vectors.mT
