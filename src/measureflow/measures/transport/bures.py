"""Transport between Gaussians, exact and entropic, in closed form."""

from __future__ import annotations

import torch
from torch import Tensor

from measureflow.measures import checks
from measureflow.measures.gaussian import Gaussian, matrix_sqrt


def bures_wasserstein2(mu: Gaussian, nu: Gaussian) -> Tensor:
    r"""Squared W2 between Gaussians, (\*b):
    :math:`|\alpha - \beta|^2 + \mathrm{tr}\bigl(\Sigma + \Omega - 2(\Sigma^{1/2}\Omega\Sigma^{1/2})^{1/2}\bigr)`.

    Covariances may be of low rank.

    >>> one, two = Gaussian(torch.zeros(1), torch.eye(1)), Gaussian(torch.ones(1), 4 * torch.eye(1))
    >>> bures_wasserstein2(one, two)
    tensor(2.)
    """
    _check(mu, nu)
    return _means(mu, nu) + _trace(mu.covariance) + _trace(nu.covariance) - 2 * _fidelity(mu, nu, 0.0)


def entropic_bures(mu: Gaussian, nu: Gaussian, epsilon: float) -> Tensor:
    r"""The least :math:`\int |x-y|^2 d\pi + \varepsilon\, \mathrm{KL}(\pi \| \mu\otimes\nu)` between Gaussians, (\*b).

    [Castin 2025, Theorem A.3] with Q = K = I gives the cross-covariance C of the optimal coupling: with
    :math:`M = \Sigma^{1/2}\Omega\Sigma^{1/2}` of eigenvalues m it has trace
    :math:`\sum (m + \varepsilon^2/16)^{1/2} - \varepsilon/4` (their epsilon is half of ours), and

    .. math:: |\alpha-\beta|^2 + \mathrm{tr}(\Sigma + \Omega) - 2\,\mathrm{tr}\,C
        - \tfrac{\varepsilon}{2}\textstyle\sum \log\bigl(1 - c\bigr)

    where :math:`c = (\sqrt{m + \varepsilon^2/16} - \varepsilon/4)^2/m` are the squared canonical correlations. It
    tends to `bures_wasserstein2` as epsilon falls to zero.
    """
    _check(mu, nu)
    eps = checks.positive("epsilon", epsilon)
    m = _joint(mu, nu)
    root = (m + eps**2 / 16).sqrt()
    correlation = torch.where(m > 0, (root - eps / 4) / (root + eps / 4), 0.0)  # = (root - eps/4)^2 / m
    information = -0.5 * torch.log1p(-correlation).sum(-1)  # KL between the coupling and the product
    trace = _trace(mu.covariance) + _trace(nu.covariance) - 2 * _fidelity(mu, nu, eps)
    return _means(mu, nu) + trace + eps * information


def _fidelity(mu: Gaussian, nu: Gaussian, eps: float) -> Tensor:
    return ((_joint(mu, nu) + eps**2 / 16).sqrt() - eps / 4).sum(-1)


def _joint(mu: Gaussian, nu: Gaussian) -> Tensor:
    """Eigenvalues (*b, d) of S^1/2 T S^1/2, rounding below zero cut."""
    root = matrix_sqrt(mu.covariance)
    product = root @ nu.covariance @ root
    return torch.linalg.eigvalsh((product + product.mT) / 2).clamp_min(0)


def _means(mu: Gaussian, nu: Gaussian) -> Tensor:
    return (mu.mean - nu.mean).square().sum(-1)


def _trace(S: Tensor) -> Tensor:
    return S.diagonal(dim1=-2, dim2=-1).sum(-1)


def _check(mu: Gaussian, nu: Gaussian) -> None:
    for name, value in (("mu", mu), ("nu", nu)):
        if not isinstance(value, Gaussian):
            raise ValueError(f"{name} must be a Gaussian, got {type(value).__name__}")
    if mu.d != nu.d:
        raise ValueError(f"mu and nu must have the same dimension, got {mu.d} and {nu.d}")
