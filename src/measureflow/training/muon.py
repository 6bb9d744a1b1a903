"""Muon: matrices move by orthogonal steps, all other weights by AdamW's."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

QUINTIC = (3.4445, -4.7750, 2.0315)  # pulls singular values from (0, 1] to near one, fastest where they are small
ROUNDS = 5
MATCH_ADAMW = 0.2  # root mean square of AdamW's steps, so that both kinds of weights share one rate
NARROWEST = 16  # matrices with fewer rows or columns are left to AdamW


class Muon(Optimizer):
    r"""Gradient descent whose steps on a matrix have equal singular values [Jordan 2024; Liu 2025].

    With M the running mean of the gradients G of a matrix of r rows and c columns,

    .. math:: W \leftarrow (1 - \eta \lambda) W - 0.2\, \eta \sqrt{\max(r, c)}\, U V^T,
        \qquad U S V^T = (1 - \mu) G + \mu M

    where the orthogonal factor is found by a few rounds of a polynomial. Leading axes are separate matrices, such as
    heads. torch.optim.Muon does the same in bfloat16, for two axes only; here everything has the dtype of the weights.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.99),
        momentum: float = 0.95,
        weight_decay: float = 0.0,
    ):
        defaults = {"lr": lr, "betas": betas, "momentum": momentum, "weight_decay": weight_decay, "eps": 1e-8}
        super().__init__(parameters, defaults)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:  # type: ignore[override]
        """Move every weight that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                matrix = weight.ndim >= 2 and min(weight.shape[-2:]) >= NARROWEST
                change = (self._orthogonal if matrix else self._adam)(weight, weight.grad, group)
                weight.mul_(1 - group["lr"] * group["weight_decay"]).sub_(change, alpha=group["lr"])

    def _orthogonal(self, weight: Tensor, gradient: Tensor, group: dict) -> Tensor:
        state, mu = self._state(weight, "mean"), group["momentum"]
        mean = state["mean"].lerp_(gradient, 1 - mu)
        return MATCH_ADAMW * math.sqrt(max(weight.shape[-2:])) * orthogonal_factor(gradient.lerp(mean, mu))

    def _adam(self, weight: Tensor, gradient: Tensor, group: dict) -> Tensor:
        state, (first, second) = self._state(weight, "mean", "square", "steps"), group["betas"]
        state["steps"] += 1
        steps = float(state["steps"])
        mean = state["mean"].lerp_(gradient, 1 - first) / (1 - first**steps)
        square = state["square"].lerp_(gradient.square(), 1 - second) / (1 - second**steps)
        return mean / (square.sqrt() + group["eps"])

    def _state(self, weight: Tensor, *names: str) -> dict[str, Tensor]:
        """What is remembered of a weight, zero at first; the number of steps is a number."""
        state = self.state[weight]
        for name in names:
            if name not in state:
                state[name] = torch.zeros(()) if name == "steps" else torch.zeros_like(weight)
        return state


def orthogonal_factor(G: Tensor) -> Tensor:
    r"""Nearly :math:`U V^T` for matrices :math:`G = U S V^T` (\*b, r, c): singular values between 0.7 and 1.2.

    >>> s = torch.linalg.svdvals(orthogonal_factor(torch.diag(torch.tensor([9.0, 1.0, 0.5]))))
    >>> bool(((s > 0.65) & (s < 1.25)).all())
    True
    """
    tall = G.shape[-2] > G.shape[-1]
    X = G.mT if tall else G
    X = X / (torch.linalg.matrix_norm(X, keepdim=True) + 1e-7)
    a, b, c = QUINTIC
    for _ in range(ROUNDS):
        S = X @ X.mT
        X = a * X + (b * S + c * S @ S) @ X
    return X.mT if tall else X
