r"""Attention fields that are affine on a Gaussian, x -> M x + c [Castin 2025, section 4].

Each entry gives M and c for the identity value; a field with value matrix V has V M and V c. A Gaussian then
stays Gaussian, with mean' = M mean + c and covariance' = M S + S M^T.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from measureflow.attention.matrix import Matrix
from measureflow.attention.normalisers import Identity, Normaliser, Softmax, SoftmaxExpansion
from measureflow.attention.scores import DotProduct, NegativeSquaredDistance, Score
from measureflow.attention.sinkhorn import Sinkhorn
from measureflow.measures import Gaussian
from measureflow.measures.gaussian import matrix_sqrt


class Affine(NamedTuple):
    r"""The field :math:`x \mapsto M x + c`, M of shape (\*b, d, d) and c (\*b, d).

    >>> Affine(2 * torch.eye(1), torch.ones(1)).at(torch.tensor([[0.0], [3.0]])).flatten()
    tensor([1., 7.])
    """

    M: Tensor
    c: Tensor

    def at(self, x: Tensor) -> Tensor:
        r"""Its values at points x (\*b, n, d)."""
        return x @ self.M.mT + self.c[..., None, :]


def closed_form(score: Score, normaliser: Normaliser, mu: Gaussian) -> Affine:
    """The affine field of a score and a normaliser on a Gaussian, where one exists.

    >>> closed_form(DotProduct(), Softmax(), Gaussian(torch.ones(1), 2 * torch.eye(1)))
    Affine(M=tensor([[2.]]), c=tensor([1.]))
    """
    form = CLOSED_FORMS.get((type(score), type(normaliser)))
    if form is not None:
        return form(score, normaliser, mu.mean, mu.covariance)
    known = ", ".join(f"{s.__name__} with {n.__name__}" for s, n in CLOSED_FORMS)
    raise ValueError(
        f"{type(score).__name__} with {type(normaliser).__name__} is not affine on a Gaussian and has no closed "
        f"form; those that have one: {known}. Sample the Gaussian to flow it as particles."
    )


def _form(left: Matrix, right: Matrix, S: Tensor) -> Tensor:
    """left^T right, such as A = K^T Q, at no cost where one of them is the identity."""
    if left.M is None:
        return right.dense(S.shape[-1], S)
    return left.M.to(S.dtype).mT if right.M is None else left.M.to(S.dtype).mT @ right.M.to(S.dtype)


def _times(M: Tensor, v: Tensor) -> Tensor:
    return (M @ v[..., None]).squeeze(-1)


def dot_softmax(score: DotProduct, normaliser: Softmax, alpha: Tensor, S: Tensor) -> Affine:
    r""":math:`\Gamma(x) = \alpha + \gamma \Sigma A x` [Lemma 4.1]."""
    M = S @ (normaliser.gamma * _form(score.K, score.Q, S))
    return Affine(M, alpha.expand(M.shape[:-1]))


def dot_identity(score: DotProduct, normaliser: Identity, alpha: Tensor, S: Tensor) -> Affine:
    r""":math:`\Gamma(x) = (\Sigma + \alpha\alpha^\top) A x` [section 2.2]."""
    M = (S + alpha[..., None] * alpha[..., None, :]) @ _form(score.K, score.Q, S)
    return Affine(M, torch.zeros_like(M[..., 0]))


def dot_expansion(score: DotProduct, normaliser: SoftmaxExpansion, alpha: Tensor, S: Tensor) -> Affine:
    r""":math:`\Gamma(x) = \alpha/\varepsilon + \Sigma A x` [section 2.2]."""
    M = S @ _form(score.K, score.Q, S)
    return Affine(M, (alpha / normaliser.epsilon).expand(M.shape[:-1]))


def distance_softmax(score: NegativeSquaredDistance, normaliser: Softmax, alpha: Tensor, S: Tensor) -> Affine:
    r""":math:`\Gamma(x) = (I + 2\gamma \Sigma K^\top K)^{-1}(\alpha + 2\gamma \Sigma K^\top Q x)` [Lemma 4.10].

    Multiplied through by Sigma, so that a covariance of low rank needs no inverse.
    """
    eye = torch.eye(S.shape[-1], dtype=S.dtype, device=S.device)
    left = eye + S @ (2 * normaliser.gamma * _form(score.K, score.K, S))
    right = S @ (2 * normaliser.gamma * _form(score.K, score.Q, S))
    both = torch.linalg.solve(left, torch.cat([right, alpha.expand(right.shape[:-1])[..., None]], -1))
    return Affine(both[..., :-1], both[..., -1])


def dot_sinkhorn(score: DotProduct, normaliser: Sinkhorn, alpha: Tensor, S: Tensor) -> Affine:
    """As printed in Lemma 4.14."""
    return _sinkhorn(score, normaliser.epsilon, alpha, S)


def distance_sinkhorn(score: NegativeSquaredDistance, normaliser: Sinkhorn, alpha: Tensor, S: Tensor) -> Affine:
    """As for the dot product at half of epsilon: minus the squared distance contains twice the dot product."""
    return _sinkhorn(score, normaliser.epsilon / 2, alpha, S)


def _sinkhorn(score: Score, epsilon: float, alpha: Tensor, S: Tensor) -> Affine:
    r""":math:`\Gamma(x) = \alpha + M(x - \alpha)`, :math:`M = A^{-\top}\Sigma^{-1}C` [Lemma 4.14], without inverses.

    With :math:`P = \Sigma^{1/2} A \Sigma^{1/2}`, :math:`N = P^\top P` and
    :math:`f(N) = ((N + \varepsilon^2/4)^{1/2} + \varepsilon/2)^{-1}` one finds
    :math:`M = \Sigma A\, (I - \Sigma^{1/2} f(N)^2 \Sigma^{1/2} A^\top \Sigma A)/\varepsilon`, which needs neither A
    nor Sigma to be invertible.
    """
    A, root = _form(score.K, score.Q, S), matrix_sqrt(S)
    P = root @ A @ root
    values, vectors = torch.linalg.eigh(P.mT @ P)
    f = 1 / ((values.clamp_min(0) + epsilon**2 / 4).sqrt() + epsilon / 2)
    middle = root @ (vectors * (f * f)[..., None, :]) @ vectors.mT @ root
    eye = torch.eye(S.shape[-1], dtype=S.dtype, device=S.device)
    M = S @ A @ (eye - middle @ A.mT @ S @ A) / epsilon
    return Affine(M, alpha - _times(M, alpha))


CLOSED_FORMS = {
    (DotProduct, Softmax): dot_softmax,
    (DotProduct, Identity): dot_identity,
    (DotProduct, SoftmaxExpansion): dot_expansion,
    (NegativeSquaredDistance, Softmax): distance_softmax,
    (DotProduct, Sinkhorn): dot_sinkhorn,
    (NegativeSquaredDistance, Sinkhorn): distance_sinkhorn,
}
