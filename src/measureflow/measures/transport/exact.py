"""Exact squared Wasserstein distance between token clouds and few atoms, its certificate and its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from measureflow.measures.transport.batches import solve_batch
from measureflow.measures.transport.pairs import pair


@dataclass(frozen=True, eq=False)
class Transport:
    r"""An optimal plan between points and atoms, and the proof that it is optimal.

    ``cost`` has shape (\*b). ``potentials`` are f (\*b, n) and g (\*b, k) with :math:`f_i + g_j \le |x_i - y_j|^2`
    and :math:`\langle f, w \rangle = \langle g, v \rangle`. ``gap`` (\*b) is the cost minus the dual value
    :math:`\langle f, w \rangle + \langle g, v \rangle`: zero, up to rounding, exactly when plan and potentials are
    optimal. Only ``cost`` carries gradients.
    """

    cost: Tensor
    potentials: tuple[Tensor, Tensor]
    gap: Tensor
    cells: Tensor  # (*b, m): where the plan is not zero, i k + j; unused places hold zero
    amounts: Tensor  # (*b, m): its values there, in float64

    def plan(self) -> Tensor:
        r"""The optimal plan, dense (\*b, n, k): rows sum to the weights, columns to the atoms' weights."""
        f, g = self.potentials
        n, k = f.shape[-1], g.shape[-1]
        flat = self.amounts.new_zeros(*f.shape[:-1], n * k).scatter_add_(-1, self.cells, self.amounts)
        return flat.unflatten(-1, (n, k)).to(f.dtype)

    def assignment(self) -> Tensor:
        r"""For each point the atom that takes most of it, (\*b, n); atom 0 for a point of mass zero."""
        return self.plan().argmax(-1)


def wasserstein2(points, atoms, *, weights=None, atom_weights=None) -> Transport:
    r"""Exact squared 2-Wasserstein distance between clouds and few atoms.

    .. math:: W_2^2 = \min_{P \ge 0} \sum_{ij} P_{ij} |x_i - y_j|^2, \quad P 1 = w, \quad P^\top 1 = v

    ``points`` x are (\*b, n, d), ``atoms`` y (\*b, k, d), ``weights`` w (\*b, n) and ``atom_weights`` v (\*b, k).
    Batches broadcast; weights default to uniform and are divided by their sum. Either cloud may be an `Empirical`,
    which brings its own weights. Solved in float64 on the CPU whatever the input; fast when one side has few points
    (up to about 50). Differentiable in points and atoms: the quadratic form at the optimal plan [Zimin 2025, D.3];
    and in the weights: the potentials, one of the subgradients where several are optimal.

    >>> W = wasserstein2([[0.0], [1.0], [5.0]], [[0.0], [4.0]], atom_weights=[2, 1])
    >>> W.cost, W.assignment()
    (tensor(0.6667), tensor([0, 0, 1]))
    """
    x, y, w, v = pair(points, atoms, weights, atom_weights)
    cost, f, g, gap, cells, amounts = _Exact.apply(x, y, w, v)
    return Transport(cost, (f, g), gap, cells, amounts)


class _Exact(torch.autograd.Function):
    """x (*b, n, d), y (*b, k, d), probabilities w (*b, n), v (*b, k) -> the cost, and what describes it."""

    @staticmethod
    def forward(ctx, x, y, w, v):
        batch = x.shape[:-2]
        value, gap, f, g, cells, amounts = (out.reshape((*batch, *out.shape[1:])) for out in _solve(x, y, w, v))
        ctx.save_for_backward(x, y, f, g, cells, amounts)
        cost, f, g, gap = (t.to(x.dtype) for t in (value, f, g, gap))
        ctx.mark_non_differentiable(f, g, gap, cells, amounts)
        return cost, f, g, gap, cells, amounts

    @staticmethod
    @once_differentiable
    def backward(ctx, slope, *_):  # pyright: ignore[reportIncompatibleMethodOverride]
        x, y, f, g, cells, amounts = ctx.saved_tensors
        k, d = y.shape[-2:]
        i, j = ((c[..., None].expand(*c.shape, d)) for c in (cells // k, cells % k))
        pull = 2 * slope[..., None, None] * amounts.to(x)[..., None] * (x.gather(-2, i) - y.gather(-2, j))
        on_x = torch.zeros_like(x).scatter_add_(-2, i, pull)
        on_y = torch.zeros_like(y).scatter_add_(-2, j, -pull)
        return on_x, on_y, slope[..., None] * f, slope[..., None] * g


def _solve(x: Tensor, y: Tensor, w: Tensor, v: Tensor) -> list[Tensor]:
    """Cost, gap, potentials, cells and amounts of every problem (B, ...), with the smaller side as atoms."""
    n, k = x.shape[-2], y.shape[-2]
    if n < k:
        cost, gap, g, f, cells, amounts = _solve(y, x, v, w)
        return [cost, gap, f, g, cells % n * k + cells // n, amounts]
    flat = [t.detach().to("cpu", torch.float64).reshape(-1, *t.shape[x.ndim - 2 :]) for t in (x, y, w, v)]
    xs, ys, ws, vs = (t.numpy() for t in flat)
    *solution, count = solve_batch(xs, ys, ws, vs, n + 2 * k, torch.get_num_threads())
    if (count > n + 2 * k).any():  # ties can close cycles in a plan, which then has more entries than a tree
        *solution, count = solve_batch(xs, ys, ws, vs, n * k, torch.get_num_threads())
    return [torch.from_numpy(out).to(x.device) for out in solution]
