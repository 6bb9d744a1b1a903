"""Transport between Gaussians, exact and entropic, in closed form."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from measureflow.measures import checks
from measureflow.measures.gaussian import Gaussian, matrix_sqrt


def bures_wasserstein2(mu: Gaussian, nu: Gaussian) -> Tensor:
    r"""Squared W2 between Gaussians, (\*b):
    :math:`|\alpha - \beta|^2 + \mathrm{tr}\bigl(\Sigma + \Omega - 2(\Sigma^{1/2}\Omega\Sigma^{1/2})^{1/2}\bigr)`.

    Covariances may be of low rank; there the gradient is taken along their range, where it is finite.

    >>> one, two = Gaussian(torch.zeros(1), torch.eye(1)), Gaussian(torch.ones(1), 4 * torch.eye(1))
    >>> bures_wasserstein2(one, two)
    tensor(2.)
    """
    return _value(mu, nu, 0.0)


def entropic_bures(mu: Gaussian, nu: Gaussian, epsilon: float) -> Tensor:
    r"""The least :math:`\int |x-y|^2 d\pi + \varepsilon\, \mathrm{KL}(\pi \| \mu\otimes\nu)` between Gaussians, (\*b).

    [Castin 2025, Theorem A.3] with Q = K = I gives the cross-covariance C of the best coupling. With e = epsilon / 4
    (half their epsilon, which divides :math:`|x-y|^2/2`), m the eigenvalues of
    :math:`\Sigma^{1/2}\Omega\Sigma^{1/2}` and :math:`r = \sqrt{m + e^2}`, its trace is :math:`\sum r - e`, its
    squared canonical correlations are :math:`(r-e)/(r+e)`, and the value is

    .. math:: |\alpha-\beta|^2 + \mathrm{tr}(\Sigma + \Omega) - 2 \sum \Bigl( r - e - e \log\frac{r+e}{2e} \Bigr)

    It rises from `bures_wasserstein2` to the cost of the product as epsilon goes from zero to infinity.

    >>> one, two = Gaussian(torch.zeros(1), torch.eye(1)), Gaussian(torch.ones(1), 4 * torch.eye(1))
    >>> entropic_bures(one, two, 1.0)
    tensor(3.2244)
    """
    return _value(mu, nu, checks.positive("epsilon", epsilon))


def _value(mu: Gaussian, nu: Gaussian, epsilon: float) -> Tensor:
    _check(mu, nu)
    S, T = torch.broadcast_tensors(mu.covariance, nu.covariance)
    traces = (S + T).diagonal(dim1=-2, dim2=-1).sum(-1)
    return (mu.mean - nu.mean).square().sum(-1) + traces - _Gain.apply(S, T, epsilon / 4)


class _Gain(torch.autograd.Function):
    """What the best coupling saves over independence: 2 sum(r - e - e log((r + e) / 2e)) over eigenvalues m of S T.

    Its slope in m is 1 / (r + e), so that in S it is T^1/2 h(T^1/2 S T^1/2) T^1/2 with h = 1 / (r + e). Differentiating
    the eigenvectors instead would divide by differences of eigenvalues, zero at S = I.
    """

    @staticmethod
    def forward(ctx, S: Tensor, T: Tensor, e: float) -> Tensor:
        A, B = matrix_sqrt(S), matrix_sqrt(T)
        U, s, Vh = torch.linalg.svd(A @ B)  # s^2 = m; squaring first would lose half the digits
        r = torch.hypot(s, s.new_tensor(e))
        saved = s * (s / (r + e)) if e > 0 else s  # = r - e
        known = s > s.shape[-1] * torch.finfo(s.dtype).eps * s[..., :1]
        slope = torch.where(known | (e > 0), 1 / (r + e), 0.0)
        ctx.save_for_backward(B @ Vh.mT, A @ U, slope)
        return 2 * (saved - e * torch.log1p(saved / (2 * e)) if e > 0 else saved).sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, slope):  # pyright: ignore[reportIncompatibleMethodOverride]
        BV, AU, h = ctx.saved_tensors
        h = slope[..., None] * h
        return (BV * h[..., None, :]) @ BV.mT, (AU * h[..., None, :]) @ AU.mT, None


def _check(mu: Gaussian, nu: Gaussian) -> None:
    for name, value in (("mu", mu), ("nu", nu)):
        checks.instance(name, value, Gaussian)
    if mu.d != nu.d:
        raise ValueError(f"mu and nu must have the same dimension, got {mu.d} and {nu.d}")
    try:
        np.broadcast_shapes(mu.mean.shape, nu.mean.shape)
    except ValueError:
        shapes = f"{tuple(mu.mean.shape[:-1])} and {tuple(nu.mean.shape[:-1])}"
        raise ValueError(f"mu and nu must have batches that broadcast, got {shapes}") from None
