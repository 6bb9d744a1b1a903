"""Entropic transport between clouds, in the log domain, with a report of its convergence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from measureflow.measures import checks
from measureflow.measures.caller import warn_caller
from measureflow.measures.transport.entropic_dual import EntropicDual
from measureflow.measures.transport.exact import wasserstein2
from measureflow.measures.transport.pairs import pair

FEW = 50  # points on one side up to which exact potentials are quickly found


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
    r"""Entropic transport for the squared distance, by Sinkhorn's iterations and Newton steps.

    .. math:: \min_{P \in \Pi(w, v)} \sum_{ij} P_{ij} |x_i - y_j|^2 + \varepsilon\, \mathrm{KL}(P \,\|\, w \otimes v)

    Shapes and weights are those of `wasserstein2`. ``regularised`` is differentiable in the points and atoms with
    the plan held fixed, which is its exact gradient at convergence. Stops when the plan's margins are right to
    ``tol``, summed; warns where they are not within ``max_iter``.

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
        dual = EntropicDual(-squares / eps, w, v)
        g, n_iter, error = dual.ascend(_start(x, y, w, v) / eps, tol, int(max_iter))
        f = dual.rows(g)
        g = dual.columns(f)
        exponent = f[..., None] + g[..., None, :] + dual.logits
        plan = (exponent + dual.log_w[..., None] + dual.log_v[..., None, :]).exp()
        entropy = torch.where(plan > 0, plan * exponent, 0.0).sum((-2, -1))
    if error > tol:
        warn_caller(
            f"sinkhorn stopped after max_iter={max_iter} with margins wrong by {error:.1e}; raise epsilon or max_iter",
            RuntimeWarning,
        )
    cost = (plan * squares).sum((-2, -1))
    margins = (plan.sum(-1) - w).abs().sum(-1)
    return EntropicTransport(cost, cost + eps * entropy, (eps * f, eps * g), margins, n_iter, error <= tol, plan)


def _start(x: Tensor, y: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """The potential without entropy, to which the entropic one tends, where it is cheap to find; else zero."""
    if min(x.shape[-2], y.shape[-2]) > FEW:
        return torch.zeros_like(v)
    return wasserstein2(x, y, weights=w, atom_weights=v).potentials[1]


def _squares(x: Tensor, y: Tensor) -> Tensor:
    return (x.unsqueeze(-2) - y.unsqueeze(-3)).square().sum(-1)
