"""Entropic transport between clouds, in the log domain, with its convergence told."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from measureflow.measures import checks
from measureflow.measures.transport.pairs import pair


@dataclass(frozen=True, eq=False)
class EntropicTransport:
    r"""The plan of least cost plus entropy, :math:`P_{ij} = w_i v_j\, e^{(f_i + g_j - |x_i - y_j|^2)/\varepsilon}`.

    ``cost`` (\*b) is its transport cost alone, ``regularised`` the whole objective. ``error`` (\*b) is how far the
    plan's rows are from the weights, summed; ``n_iter`` and ``converged`` say how it ended.
    """

    cost: Tensor
    regularised: Tensor
    potentials: tuple[Tensor, Tensor]
    error: Tensor
    n_iter: int
    converged: bool
    _plan: Tensor

    def plan(self) -> Tensor:
        r"""The plan, dense (\*b, n, k)."""
        return self._plan


def sinkhorn(
    points, atoms, *, epsilon: float, weights=None, atom_weights=None, tol: float = 1e-9, max_iter: int = 10_000
) -> EntropicTransport:
    r"""Entropic transport for the squared distance, by Sinkhorn's iterations.

    .. math:: \min_{P \in \Pi(w, v)} \sum_{ij} P_{ij} |x_i - y_j|^2 + \varepsilon\, \mathrm{KL}(P \,\|\, w \otimes v)

    Shapes and weights are those of `wasserstein2`. ``regularised`` is differentiable in the points and atoms with
    the plan held fixed, which is its exact gradient at convergence. Stops when the potentials change by less
    than ``tol`` times epsilon; warns where they do not within ``max_iter``.

    >>> W = sinkhorn(torch.tensor([[0.0], [1.0]]).double(), torch.tensor([[0.0], [1.0]]).double(), epsilon=0.01)
    >>> W.converged, W.cost < 1e-6
    (True, tensor(True))
    """
    eps = checks.positive("epsilon", epsilon)
    checks.positive("tol", tol)
    x, y, w, v = pair(points, atoms, weights, atom_weights)
    w, v, tol = w.to(x.dtype), v.to(x.dtype), max(tol, 20 * torch.finfo(x.dtype).eps)
    squares = _squares(x, y)
    with torch.no_grad():
        f, g, n_iter, change = _iterate(-squares / eps, _log(w), _log(v), tol, int(max_iter))
        log_plan = f[..., None] + g[..., None, :] - squares / eps + _log(w)[..., None] + _log(v)[..., None, :]
        plan = log_plan.exp()
        entropy = torch.where(plan > 0, plan * (f[..., None] + g[..., None, :] - squares / eps), 0.0).sum((-2, -1))
    if change > tol:
        warnings.warn(
            f"sinkhorn stopped after max_iter={max_iter} with a last change of {change:.1e} in the potentials; "
            "raise epsilon or max_iter",
            RuntimeWarning,
            stacklevel=2,
        )
    cost = (plan * squares).sum((-2, -1))
    error = (plan.sum(-1) - w).abs().sum(-1)
    return EntropicTransport(cost, cost + eps * entropy, (eps * f, eps * g), error, n_iter, change <= tol, plan)


def _iterate(logits: Tensor, log_w: Tensor, log_v: Tensor, tol: float, max_iter: int):
    """Potentials over epsilon: f makes rows right, g columns; columns last."""
    f, g, change = torch.zeros_like(log_w), torch.zeros_like(log_v), torch.inf
    step = 0
    while step < max_iter and change > tol:
        step += 1
        f = -torch.logsumexp(logits + (g + log_v)[..., None, :], -1)
        new = -torch.logsumexp(logits + (f + log_w)[..., None], -2)
        change = (new - g).abs().max().item()
        g = new
    return f, g, step, change


def _squares(x: Tensor, y: Tensor) -> Tensor:
    return (x.unsqueeze(-2) - y.unsqueeze(-3)).square().sum(-1)


def _log(w: Tensor) -> Tensor:
    return torch.where(w > 0, w.clamp_min(torch.finfo(w.dtype).tiny).log(), -torch.inf)
