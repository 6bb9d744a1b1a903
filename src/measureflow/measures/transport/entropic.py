"""Entropic transport between clouds, in the log domain, with its convergence told."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from measureflow.measures import checks
from measureflow.measures.transport.exact import wasserstein2
from measureflow.measures.transport.pairs import pair

FEW = 50  # points on one side up to which exact potentials are quickly found
MANY = 500  # atoms beyond which a Newton step costs more than it saves


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
    r"""Entropic transport for the squared distance, by Sinkhorn's iterations helped by Newton's.

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
        dual = _Dual(-squares / eps, w, v)
        g, n_iter, error = _ascend(dual, _start(x, y, w, v) / eps, tol, int(max_iter))
        f = dual.rows(g)
        g = dual.columns(f)
        exponent = f[..., None] + g[..., None, :] + dual.logits
        plan = (exponent + dual.log_w[..., None] + dual.log_v[..., None, :]).exp()
        entropy = torch.where(plan > 0, plan * exponent, 0.0).sum((-2, -1))
    if error > tol:
        warnings.warn(
            f"sinkhorn stopped after max_iter={max_iter} with margins wrong by {error:.1e}; raise epsilon or max_iter",
            RuntimeWarning,
            stacklevel=2,
        )
    cost = (plan * squares).sum((-2, -1))
    margins = (plan.sum(-1) - w).abs().sum(-1)
    return EntropicTransport(cost, cost + eps * entropy, (eps * f, eps * g), margins, n_iter, error <= tol, plan)


class _Dual:
    """Potentials over epsilon, f (*b, n) and g (*b, k), of logits -c / epsilon: each the best answer to the other."""

    def __init__(self, logits: Tensor, w: Tensor, v: Tensor):
        self.logits, self.w, self.v = logits, w, v
        self.log_w, self.log_v = _log(w), _log(v)

    def rows(self, g: Tensor) -> Tensor:
        return -torch.logsumexp(self.logits + (g + self.log_v)[..., None, :], -1)

    def columns(self, f: Tensor) -> Tensor:
        return -torch.logsumexp(self.logits + (f + self.log_w)[..., None], -2)

    def lack(self, f: Tensor, g: Tensor) -> Tensor:
        """The mass each atom still wants, (*b, k): the slope of the dual in g when f answers it."""
        return self.v * -torch.expm1(g - self.columns(f))

    def newton(self, f: Tensor, g: Tensor) -> Tensor:
        """g where the dual's quadratic model at g is highest; not finite where that has no maximum."""
        share = (self.logits + f[..., None] + (g + self.log_v)[..., None, :]).exp()  # rows sum to one
        mass = (self.w[..., None] * share).sum(-2)
        curvature = torch.diag_embed(mass + (self.v == 0)) - share.mT @ (self.w[..., None] * share)
        gauge = self.v[..., None] * self.v[..., None, :]  # the direction of all ones is flat: close it
        return g + torch.linalg.solve_ex(curvature + gauge, self.lack(f, g)[..., None])[0].squeeze(-1)


def _start(x: Tensor, y: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """The potential without entropy, to which the entropic one tends, where it is quickly had; else zero."""
    if min(x.shape[-2], y.shape[-2]) > FEW:
        return torch.zeros_like(v)
    return wasserstein2(x, y, weights=w, atom_weights=v).potentials[1]


def _ascend(dual: _Dual, g: Tensor, tol: float, max_iter: int) -> tuple[Tensor, int, float]:
    """Sinkhorn's step, and Newton's every fifth time where it halves the error: one always works, one ends fast."""
    step, f = 0, dual.rows(g)
    error = dual.lack(f, g).abs().sum(-1)
    while step < max_iter and (error > tol).any():
        step += 1
        g_next = dual.columns(f)
        if step % 5 == 0 and g.shape[-1] <= MANY:
            jump = dual.newton(f, g)
            after = dual.lack(dual.rows(jump), jump).abs().sum(-1)
            g_next = torch.where((after < error / 2)[..., None], jump, g_next)
        g, f = g_next, dual.rows(g_next)
        error = dual.lack(f, g).abs().sum(-1)
    return g, step, error.max().item() if error.numel() else 0.0


def _squares(x: Tensor, y: Tensor) -> Tensor:
    return (x.unsqueeze(-2) - y.unsqueeze(-3)).square().sum(-1)


def _log(w: Tensor) -> Tensor:
    return torch.where(w > 0, w.clamp_min(torch.finfo(w.dtype).tiny).log(), -torch.inf)
