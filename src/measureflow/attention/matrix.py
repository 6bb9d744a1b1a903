"""A linear map of tokens whose matrix is hand-set or learned."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from measureflow.measures import checks


class Matrix(nn.Module):
    r"""The map :math:`x \mapsto M x` on the last axis; ``M=None`` is the identity.

    ``M`` has shape (k, d), or (\*batch, k, d) with axes that broadcast against those of the points; a leading
    axis of heads is one such. A hand-set matrix is a buffer, a learned one (``learn=True``) a parameter, at first a
    copy of ``M``.

    >>> Matrix([[0.0, 2.0]])(torch.tensor([[1.0, 3.0]]))
    tensor([[6.]])
    """

    M: Tensor | None

    def __init__(self, M=None, learn: bool = False):
        super().__init__()
        if M is None and learn:
            raise ValueError("M must be given to be learned: an identity left out has no entries")
        if M is not None:
            M = checks.finite("M", checks.as_floats("M", M))
            if M.ndim < 2:
                raise ValueError(f"M must be a matrix, got shape {tuple(M.shape)}")
        if learn:
            self.M = nn.Parameter(M.detach().clone())  # type: ignore[union-attr]: given, as checked above
        else:
            self.register_buffer("M", M)

    def forward(self, x: Tensor) -> Tensor:
        if self.M is None:
            return x
        M = self.M.to(x.dtype)
        if x.shape[-1] != M.shape[-1]:
            raise ValueError(f"points have {x.shape[-1]} coordinates, the matrix takes {M.shape[-1]}")
        if M.ndim == 3 and x.ndim >= 3 and x.shape[-3] == 1:  # heads share the points: one product for all
            y = nn.functional.linear(x.squeeze(-3), M.flatten(0, 1))
            return y.unflatten(-1, M.shape[:2]).transpose(-2, -3)
        return x @ M.mT

    @property
    def entries(self) -> Tensor:
        """The matrix itself, of a map that has one: the identity has no entries."""
        if self.M is None:
            raise ValueError("this map is the identity, which has no matrix")
        return self.M

    def dense(self, d: int, like: Tensor) -> Tensor:
        """The matrix itself, the identity of size ``d`` where none was given, in the dtype of ``like``."""
        if self.M is None:
            return torch.eye(d, dtype=like.dtype, device=like.device)
        return self.M.to(like.dtype)

    def extra_repr(self) -> str:
        if self.M is None:
            return "identity"
        return f"{'x'.join(map(str, self.M.shape))}{', learned' if isinstance(self.M, nn.Parameter) else ''}"
