"""The residual stream with named slots, and matrices built from what they do to the slots."""

from __future__ import annotations

import torch
from torch import Tensor

from measureflow.measures import checks


class Stream:
    r"""Coordinates of a token, cut into named slots: ``Stream(point=d, assignment=k)`` has width d + k.

    A matrix is built from what it does: `only` keeps slots and zeroes the rest, the :math:`I^{i:j}` of
    [Clarkson 2025, Definition 3]; `matrix` moves one slot onto another, as the lift of Definition 4 does.

    >>> stream = Stream(point=2, assignment=1)
    >>> stream.only("point")
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 0.]], dtype=torch.float64)
    >>> stream.read(stream.embed(point=torch.tensor([[3.0, 4.0]])), "point")
    tensor([[3., 4.]])
    """

    def __init__(self, **slots: int):
        if not slots:
            raise ValueError("slots must name at least one slot")
        for name, width in slots.items():
            checks.whole(f"the width of slot {name}", width)
        self.slots, start = {}, 0
        for name, width in slots.items():
            self.slots[name] = slice(start, start + int(width))
            start += int(width)
        self.width = start

    def __getitem__(self, name: str) -> slice:
        if name not in self.slots:
            raise ValueError(f"the stream has no slot {name!r}; it has {', '.join(self.slots)}")
        return self.slots[name]

    def size(self, name: str) -> int:
        """The width of one slot."""
        return self[name].stop - self[name].start

    def __contains__(self, name: str) -> bool:
        return name in self.slots

    def matrix(self, *moves: tuple[str, str, float]) -> Tensor:
        """The matrix that adds factor times source to target, for each move (source, target, factor)."""
        M = torch.zeros(self.width, self.width, dtype=torch.float64)
        for source, target, factor in moves:
            if self.size(source) != self.size(target):
                raise ValueError(f"slots {source!r} and {target!r} differ in width, so one cannot move onto the other")
            M[self[target], self[source]] += factor * torch.eye(self.size(source), dtype=M.dtype)
        return M

    def only(self, *names: str, factor: float = 1.0) -> Tensor:
        """The matrix that keeps the named slots, times ``factor``, and zeroes all others."""
        return self.matrix(*[(name, name, factor) for name in names])

    def embed(self, **values: Tensor) -> Tensor:
        r"""Tokens (\*b, n, width) with the given slots filled and zeros elsewhere."""
        first = next(iter(values.values()))
        tokens = first.new_zeros(*first.shape[:-1], self.width)
        for name, value in values.items():
            tokens[..., self[name]] = value
        return tokens

    def read(self, tokens: Tensor, name: str) -> Tensor:
        """One slot of every token."""
        return tokens[..., self[name]]

    def rotation(self, generator: torch.Generator) -> Tensor:
        """A random rotation of the whole stream, for [Clarkson 2025, Remark 1]."""
        normal = torch.randn(self.width, self.width, generator=generator, dtype=torch.float64)
        Q, R = torch.linalg.qr(normal)
        Q = Q * R.diagonal().sign()
        if torch.linalg.det(Q) < 0:
            Q[:, 0] = -Q[:, 0]
        return Q

    def __repr__(self) -> str:
        return f"Stream({', '.join(f'{name}={self.size(name)}' for name in self.slots)})"
