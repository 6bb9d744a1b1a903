"""How well a query matches a key: scores s(x, y), queries on axis -2 and keys on axis -1."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from measureflow.attention.matrix import Matrix


class Score(nn.Module):
    """A similarity of two points through two linear maps Q (of the query) and K (of the key)."""

    def __init__(self, Q=None, K=None, learn: bool = False):
        super().__init__()
        self.Q, self.K = Matrix(Q, learn), Matrix(K, learn)

    def mapped(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Q x and K y, which must have the same dimension."""
        q, k = self.Q(x), self.K(y)
        if q.shape[-1] != k.shape[-1]:
            raise ValueError(
                f"Q maps queries to {q.shape[-1]} coordinates and K maps keys to {k.shape[-1]}: they must agree"
            )
        return q, k

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        r"""Scores (\*b, n, m) of queries x (\*b, n, d) against keys y (\*b, m, d)."""
        raise NotImplementedError

    def lifted(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Vectors q, k and key bias b with s(x_i, y_j) = q_i . k_j + b_j + (a term of i alone).

        A normaliser that is blind to shifts of a row may use them in place of the scores, which lets a fused
        kernel run any score that is a dot product of lifted points.
        """
        raise NotImplementedError


class DotProduct(Score):
    r"""The score of ordinary attention, :math:`s(x, y) = Qx \cdot Ky = x^\top A^\top y` with :math:`A = K^\top Q`.

    >>> DotProduct()(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 0.0], [0.0, 1.0]]))
    tensor([[3., 2.]])
    """

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        q, k = self.mapped(x, y)
        return q @ k.mT

    def lifted(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        return *self.mapped(x, y), None


class NegativeSquaredDistance(Score):
    r"""The score of L2 attention, :math:`s(x, y) = -|Qx - Ky|^2` [Castin 2025, 2.3], with no factor 1/2.

    >>> NegativeSquaredDistance()(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.0], [1.0, 2.0]]))
    tensor([[-4., -0.]])
    """

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        q, k = self.mapped(x, y)
        if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad):
            # the distance has no gradient where it is zero, its square has one: expand the square
            q2, k, b = self.lifted(x, y)
            return (q2 @ k.mT + b[..., None, :] - (q2 * q2).sum(-1, keepdim=True) / 4).clamp_max(0)
        return -torch.cdist(q, k, compute_mode="donot_use_mm_for_euclid_dist").square()

    def lifted(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        r""":math:`-|q-k|^2 = 2 q \cdot k - |k|^2 - |q|^2`, both relative to the mean key to lose no digits."""
        q, k = self.mapped(x, y)
        center = k.detach().mean(-2, keepdim=True)
        q, k = q - center, k - center
        return 2 * q, k, -(k * k).sum(-1)
