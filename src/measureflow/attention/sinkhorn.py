"""Doubly stochastic attention: queries and keys both give away all of their mass."""

from __future__ import annotations

import torch
from torch import Tensor

from measureflow.attention.normalisers import Normaliser, log_weights
from measureflow.measures import checks
from measureflow.measures.caller import warn_caller
from measureflow.measures.transport.entropic_dual import EntropicDual


class Sinkhorn(Normaliser):
    r"""The limit of normalising rows and columns in turn [Castin 2025, (2.4)], rows last.

    .. math:: z_{ij} = w_j e^{f_i + g_j + s_{ij}/\varepsilon}, \qquad
        \textstyle\sum_j z_{ij} = 1, \quad \sum_i u_i z_{ij} = w_j

    for query masses u and key masses w, both of total one. With the dot product this is the kernel of [Castin
    2025, 2.4] at the same epsilon (their field carries a further 1/epsilon, which belongs to V); with the
    negative squared distance, at half of it. ``tol`` bounds what the columns lack of their masses, summed.
    Differentiable in scores and masses: one Newton step of the converged equations is taken with the graph on,
    so the derivative is that of the limit.

    >>> Sinkhorn()(torch.tensor([[0.0, 2.0], [0.0, 0.0]]))
    tensor([[0.2689, 0.7311],
            [0.7311, 0.2689]])
    """

    couples_queries = True

    def __init__(self, epsilon: float = 1.0, tol: float = 1e-9, max_iter: int = 10_000):
        super().__init__()
        self.epsilon, self.tol = checks.positive("epsilon", epsilon), checks.positive("tol", tol)
        self.max_iter = int(checks.positive("max_iter", max_iter))

    def forward(self, scores: Tensor, weights: Tensor | None = None, query_weights: Tensor | None = None) -> Tensor:
        logits = scores / self.epsilon
        log_w = _log_probabilities(scores, weights, -1)
        log_u = _log_probabilities(scores, query_weights, -2)
        with torch.no_grad():
            f, g = self._potentials(logits, log_u, log_w)
        inputs = [t for t in (logits, log_u, log_w) if t.requires_grad]
        if torch.is_grad_enabled() and inputs:
            f, g = _newton_step(f, g, logits, log_u, log_w)
        return (f + g + logits + log_w).exp()

    def _potentials(self, logits: Tensor, log_u: Tensor, log_w: Tensor) -> tuple[Tensor, Tensor]:
        dual = EntropicDual(logits, log_u.squeeze(-1).exp(), log_w.squeeze(-2).exp())
        tol = max(self.tol, 20 * torch.finfo(logits.dtype).eps)
        g, _, error = dual.ascend(torch.zeros_like(dual.v), tol, self.max_iter)
        if error > tol:
            warn_caller(
                f"Sinkhorn(epsilon={self.epsilon:g}) stopped after max_iter={self.max_iter} with columns wrong by "
                f"{error:.1e}; raise epsilon or max_iter",
                RuntimeWarning,
            )
        return dual.rows(g)[..., None], g[..., None, :]

    def extra_repr(self) -> str:
        return f"epsilon={self.epsilon:g}"


def _log_probabilities(scores: Tensor, weights: Tensor | None, axis: int) -> Tensor:
    """log of masses of total one along ``axis``, with the other axis of length one."""
    shape = list(scores.shape)
    shape[-3 - axis] = 1
    if weights is None:
        return scores.new_zeros(()).expand(shape) - torch.log(scores.new_tensor(float(scores.shape[axis])))
    log_w = torch.atleast_2d(log_weights(scores, weights))
    if log_w.shape[-3 - axis] != 1:
        raise ValueError("Sinkhorn attention couples all queries, so they cannot each see a measure of their own")
    return log_w - torch.logsumexp(log_w, axis, keepdim=True)


def _newton_step(f: Tensor, g: Tensor, logits: Tensor, log_u: Tensor, log_w: Tensor) -> tuple[Tensor, Tensor]:
    """Solve the two marginal equations to first order around their root, with the Jacobian held fixed.

    The Jacobian has the null vector (1, -1), which moves f against g and changes nothing; adding its projector
    makes the system regular.
    """
    kernel = (f + g + logits).detach()
    rows = (kernel + log_w.detach()).exp()
    columns = (kernel + log_u.detach()).exp()
    n, m = logits.shape[-2:]
    eye = torch.eye(n + m, dtype=logits.dtype, device=logits.device).expand(*logits.shape[:-2], -1, -1).clone()
    eye[..., :n, n:] += rows
    eye[..., n:, :n] += columns.mT
    null = torch.cat([torch.ones(n), -torch.ones(m)]).to(logits) / (n + m) ** 0.5
    seen_rows = torch.logsumexp(f + g + logits + log_w, -1)
    seen_columns = torch.logsumexp(f + g + logits + log_u, -2)
    residual = torch.cat([seen_rows, seen_columns], -1)
    step = torch.linalg.solve(eye + null[:, None] * null, residual.unsqueeze(-1))
    return f - step[..., :n, :], g - step[..., n:, :].mT
