"""The dual of entropic transport: Sinkhorn's iterations and Newton steps."""

from __future__ import annotations

import torch
from torch import Tensor

MANY = 500  # atoms beyond which a Newton step costs more than it saves


class EntropicDual:
    r"""Potentials f (\*b, n) and g (\*b, k) for logits (\*b, n, k) and probabilities w (\*b, n) and v (\*b, k).

    At the maximum :math:`w_i v_j e^{f_i + g_j + s_{ij}}` has the margins w and v, and each potential is the best
    answer to the other. Transport has logits :math:`-c_{ij}/\varepsilon`, attention :math:`s_{ij}/\varepsilon`.
    """

    def __init__(self, logits: Tensor, w: Tensor, v: Tensor):
        self.logits, self.w, self.v = logits, w, v
        self.log_w, self.log_v = _log(w), _log(v)

    def rows(self, g: Tensor) -> Tensor:
        """The best f for this g: every row sums to its mass."""
        return -torch.logsumexp(self.logits + (g + self.log_v)[..., None, :], -1)

    def columns(self, f: Tensor) -> Tensor:
        """The best g for this f: every column sums to its mass."""
        return -torch.logsumexp(self.logits + (f + self.log_w)[..., None], -2)

    def lack(self, g: Tensor, answer: Tensor) -> Tensor:
        """The mass that each column lacks, (*b, k): the slope of the dual in g at the best f."""
        return torch.where(self.v > 0, self.v * -torch.expm1(g - answer), 0.0)

    def newton(self, f: Tensor, g: Tensor, lack: Tensor) -> Tensor:
        """g where the dual's quadratic model at g is highest; not finite where that has no maximum."""
        share = (self.logits + f[..., None] + (g + self.log_v)[..., None, :]).exp()  # rows sum to one
        mass = (self.w[..., None] * share).sum(-2)
        curvature = torch.diag_embed(mass + (self.v == 0)) - share.mT @ (self.w[..., None] * share)
        gauge = self.v[..., None] * self.v[..., None, :]  # the dual is flat along the ones: make this regular
        root, failed = torch.linalg.cholesky_ex(curvature + gauge)
        step = torch.cholesky_solve(lack[..., None], root).squeeze(-1)
        return torch.where((failed == 0)[..., None], g + step, torch.nan)

    def ascend(self, g: Tensor, tol: float, max_iter: int) -> tuple[Tensor, int, float]:
        """A g whose columns lack less than ``tol`` in total, the number of steps taken, and what the columns still
        lack.

        Sinkhorn's step always works. Newton's is tried every fifth time and taken where it halves the error: it ends
        fast.
        """
        step, f = 0, self.rows(g)
        answer = self.columns(f)
        error = self.lack(g, answer).abs().sum(-1)
        while step < max_iter and (error > tol).any():
            step += 1
            g_next = answer
            if step % 5 == 0 and g.shape[-1] <= MANY:
                jump = self.newton(f, g, self.lack(g, answer))
                after = self.lack(jump, self.columns(self.rows(jump))).abs().sum(-1)
                g_next = torch.where((after < error / 2)[..., None], jump, g_next)
            g, f = g_next, self.rows(g_next)
            answer = self.columns(f)
            error = self.lack(g, answer).abs().sum(-1)
        return g, step, error.max().item() if error.numel() else 0.0


def _log(w: Tensor) -> Tensor:
    return torch.where(w > 0, w.clamp_min(torch.finfo(w.dtype).tiny).log(), -torch.inf)
