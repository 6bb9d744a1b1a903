r"""Functionals that decrease along attention flows [Castin 2025, section 5].

Sinkhorn attention with :math:`V = -A = -A^\top` is the Wasserstein gradient flow of :math:`\mathcal F_\varepsilon`;
softmax attention decreases the interaction energy :math:`\mathcal F` when A is symmetric and
:math:`B = -V A^{-\top}` symmetric positive definite.
"""

from __future__ import annotations

import torch
from torch import Tensor

from measureflow.attention import Affine, DotProduct, Field, Sinkhorn
from measureflow.flows.diagnostics import interaction_energy
from measureflow.measures import Empirical, Gaussian, checks
from measureflow.measures.gaussian import matrix_sqrt


class SinkhornEnergy:
    r"""The functional whose Wasserstein gradient flow is Sinkhorn attention with :math:`V = -A` [Castin 2025, (5.11)].

    .. math:: \mathcal F_\varepsilon(\mu) = -\tfrac12 \int \kappa^\infty \log(\kappa^\infty / \kappa^0)\, d\mu\otimes\mu
        + \tfrac{1}{4\varepsilon} \int (|Qx|^2 + |Kx|^2)\, d\mu = -\tfrac12 \int (f + g)\, d\mu

    with :math:`\kappa^\infty = e^{f(x) + g(y) + Qx\cdot Ky/\varepsilon}`: it depends on :math:`A = K^\top Q` only.
    On a Gaussian, with the singular values s of :math:`\Sigma^{1/2} A \Sigma^{1/2}` and
    :math:`r = (s^2/\varepsilon^2 + \tfrac14)^{1/2}`,

    .. math:: F_\varepsilon(\alpha, \Sigma) = \tfrac12 \Bigl(\alpha^\top A \alpha / \varepsilon
        + \textstyle\sum_s \bigl[r - \tfrac12 - \tfrac12 \log(r + \tfrac12)\bigr]\Bigr).

    >>> energy = SinkhornEnergy(torch.eye(2), epsilon=1.0)
    >>> energy(Gaussian(torch.zeros(2), torch.eye(2)))
    tensor(0.3774)
    """

    def __init__(self, A, epsilon: float = 1.0):
        self.A, self.epsilon = checks.square("A", A), checks.positive("epsilon", epsilon)

    def __call__(self, mu: Empirical | Gaussian) -> Tensor:
        return self._on_gaussian(mu) if isinstance(mu, Gaussian) else self._on_points(mu)

    def _on_gaussian(self, mu: Gaussian) -> Tensor:
        A, S = self.A.to(mu.covariance), mu.covariance
        if S.requires_grad:  # the trace of a function of A^T S A S is smooth in S, its square root is not
            squares = torch.linalg.eigvals(A.mT @ S @ A @ S).real
        else:
            root = matrix_sqrt(S)
            squares = torch.linalg.svdvals(root @ A @ root).square()
        r = (squares / self.epsilon**2 + 0.25).sqrt()
        mean = (mu.mean * (mu.mean @ A.mT)).sum(-1) / self.epsilon
        return 0.5 * (mean + (r - 0.5 - 0.5 * (r + 0.5).log()).sum(-1))

    def _on_points(self, mu: Empirical) -> Tensor:
        scores = DotProduct(self.A.to(mu.points))(mu.points, mu.points)
        p = mu.probabilities
        z = Sinkhorn(self.epsilon)(scores, p[..., None, :], p[..., :, None])
        log_kappa = (z / p[..., None, :]).log()
        f_plus_g = log_kappa - scores / self.epsilon
        return -0.5 * (p[..., :, None] * p[..., None, :] * f_plus_g).sum((-2, -1))


class InteractionEnergy:
    r"""The functional :math:`\mathcal F(\mu) = \tfrac12 \iint e^{Ax\cdot y}\, d\mu(x)\, d\mu(y)` [Castin 2025, 5.4].

    On a Gaussian, with :math:`H = I - \Sigma A \Sigma A^\top`,

    .. math:: F(\alpha, \Sigma) = \tfrac12 \det(H)^{-1/2}
        \exp\bigl(\tfrac12 \alpha^\top [(A^\top + \Sigma^{-1}) H^{-1} (\Sigma A + I) - \Sigma^{-1}]\, \alpha\bigr)

    as long as :math:`\Sigma^{1/2} A \Sigma^{1/2}` has norm below one; beyond that the integral is infinite.

    >>> InteractionEnergy(torch.eye(1) / 2)(Gaussian(torch.zeros(1), torch.eye(1)))
    tensor(0.5774)
    """

    def __init__(self, A):
        self.A = checks.square("A", A)

    def __call__(self, mu: Empirical | Gaussian) -> Tensor:
        if isinstance(mu, Empirical):
            score = DotProduct(self.A.to(mu.points))
            return interaction_energy(mu, lambda x, y: score(x, y).exp())
        return self._on_gaussian(mu)

    def _on_gaussian(self, mu: Gaussian) -> Tensor:
        A, S, alpha = self.A.to(mu.covariance), mu.covariance, mu.mean[..., None]
        eye = torch.eye(mu.d, dtype=S.dtype, device=S.device)
        H = eye - S @ A @ S @ A.mT
        # (A^T + S^-1) H^-1 (S A + I) - S^-1 without the inverse of S: the terms in S^-1 cancel
        inner = (A.mT + A @ S @ A.mT) @ torch.linalg.solve(H, S @ A + eye) + A
        exponent = 0.5 * (alpha.mT @ inner @ alpha).squeeze((-1, -2))
        root = matrix_sqrt(S)
        finite = torch.linalg.matrix_norm(root @ A @ root, 2) < 1
        value = 0.5 * torch.linalg.det(H).clamp_min(torch.finfo(S.dtype).tiny).rsqrt() * exponent.exp()
        return torch.where(finite, value, torch.inf)


class GradientFlow(Field):
    r"""The Wasserstein gradient flow of a functional of Gaussians: :math:`v = -\nabla \delta F`, affine.

    .. math:: v(x) = -\nabla_\alpha F - 2\, \nabla_\Sigma F\, (x - \alpha), \qquad
        \dot\Sigma = -2\,(\nabla_\Sigma F\, \Sigma + \Sigma\, \nabla_\Sigma F)

    This is the Bures-Wasserstein flow of [Castin 2025, (5.9)], with the sign and the factor 2 that the print drops.

    >>> GradientFlow(SinkhornEnergy(torch.eye(1)))(Gaussian(torch.ones(1), torch.eye(1)))
    Affine(M=tensor([[-0.6180]]), c=tensor([-0.3820]))
    """

    def __init__(self, functional):
        super().__init__()
        self.functional = functional

    def on_gaussian(self, mu: Gaussian) -> Affine:
        with torch.enable_grad():
            alpha, S = mu.mean.detach().requires_grad_(), mu.covariance.detach().requires_grad_()
            value = self.functional(Gaussian.trusted(alpha, S)).sum()
            d_alpha, d_S = torch.autograd.grad(value, (alpha, S))
        M = -(d_S + d_S.mT)
        return Affine(M, -d_alpha - (M @ mu.mean[..., None]).squeeze(-1))


def curvature_at_dirac(A: Tensor, V: Tensor, x: Tensor, p: Tensor) -> Tensor:
    r"""The second derivative of the interaction energy along a geodesic of the twisted distance that leaves a Dirac.

    .. math:: \partial_s^2 \mathcal F = \frac{1}{4 e^{Ax \cdot x}}
        \bigl[(p \cdot Bp)(Vx \cdot B^{-1} Vx) - p \cdot VBp\bigr], \qquad B = -V A^{-\top},

    for A symmetric, from the point x with initial slope p. Negative at x = 0 where V B is positive definite: the
    functional is not geodesically convex [Castin 2025, Proposition 5.4].

    >>> eye = torch.eye(2)
    >>> curvature_at_dirac(-eye, eye, torch.zeros(2), torch.tensor([1.0, 0.0]))
    tensor(-0.2500)
    """
    B = -V @ torch.linalg.inv(A).mT
    Vx = V @ x
    grown = (p @ B @ p) * (Vx @ torch.linalg.solve(B, Vx))
    return (grown - p @ V @ B @ p) / (4 * torch.exp((A @ x) @ x))
