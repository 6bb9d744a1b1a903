"""Exact squared Wasserstein distance between token clouds and few atoms, with its certificate and gradient."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numba
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from measureflow.measures.transport import few_atoms
from measureflow.measures.transport.pairs import pair

_ONE_AT_A_TIME = threading.Lock()  # numba's fallback thread pool aborts when two threads enter it at once


@dataclass(frozen=True, eq=False)
class Transport:
    r"""An optimal plan between points and atoms, and the proof that it is optimal.

    ``cost`` has shape (\*b); ``potentials`` are f (\*b, n) and g (\*b, k) with f_i + g_j <= \|x_i - y_j\|^2 and
    <g, atom_weights> = 0; ``gap`` (\*b) is the cost minus the dual value <f, weights> + <g, atom_weights>, which is
    zero up to rounding exactly when plan and potentials are optimal. Only ``cost`` carries gradients.
    """

    cost: Tensor
    potentials: tuple[Tensor, Tensor]
    gap: Tensor
    entries: tuple[
        Tensor, Tensor, Tensor
    ]  # the plan's rows, columns and masses; unused places have mass zero

    def plan(self) -> Tensor:
        r"""The optimal plan as a dense (\*b, n, k) tensor; its rows sum to the weights, its columns to the atoms'."""
        f, g = self.potentials
        rows, columns, masses = self.entries
        dense = masses.new_zeros(*f.shape[:-1], f.shape[-1] * g.shape[-1])
        dense.scatter_add_(-1, rows * g.shape[-1] + columns, masses)
        return dense.unflatten(-1, (f.shape[-1], g.shape[-1])).to(f.dtype)

    def assignment(self) -> Tensor:
        r"""For each point the atom that takes most of it, (\*b, n); atom 0 for a point of mass zero."""
        return self.plan().argmax(-1)


def wasserstein2(points, atoms, *, weights=None, atom_weights=None) -> Transport:
    r"""Exact squared 2-Wasserstein distance between clouds and few atoms.

    .. math:: W_2^2 = \min_{P \ge 0} \sum_{ij} P_{ij} |x_i - y_j|^2, \quad P 1 = w, \quad P^\top 1 = v

    ``points`` x are (\*b, n, d), ``atoms`` y (\*b, k, d), ``weights`` w (\*b, n) and ``atom_weights`` v (\*b, k); batches
    broadcast, weights are divided by their sum and default to uniform. Either cloud may be an `Empirical`, which
    brings its own weights. Solved in float64 whatever the input, fast when k or n is small; differentiable in the
    points and atoms (the quadratic form at the optimal plan [Zimin 2025, D.3]) and in the weights (the potentials;
    where several are optimal, one of the subgradients).

    >>> W = wasserstein2(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[0.0], [4.0]]), atom_weights=[2, 1])
    >>> W.cost, W.assignment()
    (tensor(0.6667), tensor([0, 0, 1]))
    """
    x, y, w, v = pair(points, atoms, weights, atom_weights)
    cost, f, g, gap, *entries = _Exact.apply(x, y, w, v)
    return Transport(cost, (f, g), gap, tuple(entries))


class _Exact(torch.autograd.Function):
    """x (*b, n, d), y (*b, k, d), probabilities w (*b, n), v (*b, k) -> the cost, and what only describes it."""

    @staticmethod
    def forward(ctx, x, y, w, v):
        batch = x.shape[:-2]
        value, f, g, *entries = (
            out.reshape((*batch, *out.shape[1:])).to(x.device) for out in _solve(x, y, w, v)
        )
        shift = (g * v).sum(-1, keepdim=True)
        f, g = f + shift, g - shift
        gap = value - (f * w).sum(-1)
        ctx.save_for_backward(x, y, f, g, *entries)
        cost, f, g, gap = (t.to(x.dtype) for t in (value, f, g, gap))
        ctx.mark_non_differentiable(f, g, gap, *entries)
        return cost, f, g, gap, *entries

    @staticmethod
    @once_differentiable
    def backward(ctx, slope, *_):
        x, y, f, g, rows, columns, masses = ctx.saved_tensors
        d = x.shape[-1]
        rows, columns = rows[..., None].expand(*rows.shape, d), columns[..., None].expand(*columns.shape, d)
        pull = (
            masses[..., None].to(x)
            * (x.gather(-2, rows) - y.gather(-2, columns))
            * 2
            * slope[..., None, None]
        )
        on_x = torch.zeros_like(x).scatter_add_(-2, rows, pull)
        on_y = torch.zeros_like(y).scatter_add_(-2, columns, -pull)
        return on_x, on_y, slope[..., None] * f, slope[..., None] * g


def _solve(x: Tensor, y: Tensor, w: Tensor, v: Tensor) -> list[Tensor]:
    """Cost, potentials and plan entries of every problem in the batch, in float64, with the smaller side as atoms."""
    if x.shape[-2] < y.shape[-2]:
        cost, g, f, columns, rows, masses = _solve(y, x, v, w)
        return [cost, f, g, rows, columns, masses]
    batch = x.ndim - 2
    flat = [t.detach().to("cpu", torch.float64).reshape(-1, *t.shape[batch:]) for t in (x, y, w, v)]
    arrays = [t.contiguous().numpy() for t in flat]
    n, k = x.shape[-2], y.shape[-2]
    *solution, count = _run(arrays, n + 2 * k)
    if (
        count.max(initial=0) > n + 2 * k
    ):  # ties can close cycles in the plan, which then has more entries than a tree
        *solution, count = _run(arrays, n * k)
    return [torch.from_numpy(out) for out in solution]


def _run(arrays, capacity: int):
    threads = min(len(arrays[0]), torch.get_num_threads(), numba.get_num_threads())
    if threads <= 1:
        return few_atoms.solve_in_turn(*arrays, capacity)
    with _ONE_AT_A_TIME:
        return few_atoms.solve_in_parallel(*arrays, capacity)
