"""Points in boxes with Chebyshev nodes along each axis: from points to nodes and back, and the error of that."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numba
import numpy as np
import torch
from torch import Tensor

STEP = 0.25  # between distances at which the interpolation error is tabulated
REACH = 25.0  # widths of the kernel that a dot product's cloud may span: exp(REACH^2) is still a number


def interpolation_error(gap: Tensor, h: float, p: int) -> Tensor:
    r"""The relative error of the interpolated kernel between two boxes ``gap`` apart along an axis.

    The p-node interpolant of :math:`s \mapsto e^{-(D + s)^2}` on :math:`|s| \le h/2` is compared with the function
    itself at the worst s; rounding is counted by the sum of the terms' sizes. The result is doubled, because both ends
    are interpolated.
    """
    table = torch.from_numpy(_error_table(h, p))
    return table[(gap / STEP).ceil().long().clamp_max(len(table) - 1)]


@lru_cache
def _error_table(h: float, p: int) -> np.ndarray:
    nodes, s = nodes_of(h, p), np.linspace(-h / 2, h / 2, 201)
    L = _lagrange(s[:, None], nodes, p)
    table = np.empty(int(3 * REACH / STEP))
    for i, D in enumerate(STEP * np.arange(len(table))):
        with np.errstate(over="ignore", invalid="ignore"):
            relative = np.exp((D + s[:, None]) ** 2 - (D + nodes) ** 2)  # f(node) / f(s)
            terms = L * relative
            wrong = np.abs(terms.sum(1) - 1) + 4e-16 * np.abs(terms).sum(1)
        table[i] = 2 * np.nan_to_num(wrong, nan=np.inf).max()
    return np.maximum.accumulate(table)


def nodes_of(h: float, p: int) -> np.ndarray:
    """The p Chebyshev nodes of an interval of length h around zero."""
    return h / 2 * np.cos(_angles(p))


def _angles(p: int) -> np.ndarray:
    """The angles whose cosines are the p Chebyshev nodes of [-1, 1]."""
    return np.pi * (2 * np.arange(p) + 1) / (2 * p)


def _lagrange(s: np.ndarray, nodes: np.ndarray, p: int) -> np.ndarray:
    """Values (m, p) of the Lagrange polynomials at points s (m, 1), as a sum of Chebyshev polynomials."""
    half = nodes[0] / np.cos(np.pi / (2 * p))
    k = np.arange(1, p)
    at_s = np.cos(k * np.arccos(np.clip(s / half, -1, 1)))
    at_nodes = np.cos(np.outer(_angles(p), k))
    return (1 + 2 * at_s @ at_nodes.T) / p


@dataclass(frozen=True)
class Boxes:
    """Points sorted into boxes, each with p nodes an axis; always three axes, the first ones idle where d < 3."""

    order: np.ndarray  # the points, box by box
    starts: np.ndarray  # where each box begins in that order, and one past the end
    local: np.ndarray  # the place of each sorted point in its box, in [-1, 1]
    shape: tuple[int, int, int]  # boxes along each axis
    nodes: tuple[int, int, int]  # nodes along each axis of a box: p, or one on an idle axis
    axes: list[Tensor]  # node positions along each axis
    middles: list[Tensor]  # the middle of the box of each node

    @classmethod
    def of(cls, points: Tensor, h: float, p: int) -> Boxes:
        x = np.zeros((len(points), 3))
        idle = 3 - points.shape[1]
        x[:, idle:] = points.numpy()
        low = x.min(0)
        shape = np.maximum(1, np.ceil((x.max(0) - low) / h)).astype(np.int64)
        index = np.minimum(((x - low) / h).astype(np.int64), shape - 1)
        flat = (index[:, 0] * shape[1] + index[:, 1]) * shape[2] + index[:, 2]
        order = np.argsort(flat, kind="stable")
        starts = np.searchsorted(flat[order], np.arange(shape.prod() + 1))
        local = np.clip(2 * ((x - low) / h - index) - 1, -1, 1)[order]
        nodes = (p if idle < 1 else 1, p if idle < 2 else 1, p if idle < 3 else 1)
        middles = [low[a] + h * (np.arange(shape[a]) + 0.5) for a in range(3)]
        axes = [(middles[a][:, None] + (nodes_of(h, p) if a >= idle else 0.0)).reshape(-1) for a in range(3)]
        spread = [torch.from_numpy(np.repeat(middles[a], nodes[a])) for a in range(3)]
        return cls(order, starts, local, tuple(shape.tolist()), nodes, [torch.from_numpy(a) for a in axes], spread)

    def gather(self, sources: Tensor) -> Tensor:
        """From points to nodes: (channels, nodes along each axis)."""
        blocks = np.zeros((len(self.starts) - 1, sources.shape[1], *self.nodes))
        _gather(self.starts, self.local, sources.numpy()[self.order], *_barycentric(self.nodes[2]), blocks)
        tiled = torch.from_numpy(blocks).reshape(*self.shape, sources.shape[1], *self.nodes)
        grid = [boxes * nodes for boxes, nodes in zip(self.shape, self.nodes, strict=True)]
        return tiled.permute(3, 0, 4, 1, 5, 2, 6).reshape(-1, *grid)

    def spread(self, grid: Tensor) -> Tensor:
        """From nodes to points: (points, channels)."""
        (a, b, c), (i, j, k), channels = self.shape, self.nodes, len(grid)
        tiled = grid.reshape(channels, a, i, b, j, c, k).permute(1, 3, 5, 0, 2, 4, 6)
        blocks = tiled.reshape(-1, channels, i, j, k).contiguous().numpy()
        sorted_out = np.empty((len(self.order), channels))
        _spread(self.starts, self.local, blocks, *_barycentric(k), sorted_out)
        out = np.empty_like(sorted_out)
        out[self.order] = sorted_out
        return torch.from_numpy(out)


def _barycentric(p: int) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev nodes of [-1, 1] and their barycentric strengths."""
    angles = _angles(p)
    return np.cos(angles), (-1.0) ** np.arange(p) * np.sin(angles)


@numba.njit(cache=True, nogil=True)
def _weights(s, nodes, strengths, out):
    """Lagrange polynomials of the nodes at s in [-1, 1], by the barycentric formula."""
    total = 0.0
    for j in range(len(nodes)):
        gap = s - nodes[j]
        if abs(gap) < 1e-15:
            out[:] = 0.0
            out[j] = 1.0
            return
        out[j] = strengths[j] / gap
        total += out[j]
    for j in range(len(nodes)):
        out[j] /= total


@numba.njit(cache=True, nogil=True)
def _all_weights(local, nodes, strengths, a, b, c):
    """The weights along three axes; an axis of one node keeps its weight of one."""
    if len(a) > 1:
        _weights(local[0], nodes, strengths, a)
    if len(b) > 1:
        _weights(local[1], nodes, strengths, b)
    if len(c) > 1:
        _weights(local[2], nodes, strengths, c)


@numba.njit(cache=True, nogil=True, fastmath=True)
def _gather(starts, local, sources, nodes, strengths, blocks):
    """blocks[box, channel, i, j, k] = sum over the points of the box of source * a_i * b_j * c_k."""
    n_boxes, channels, I, J, K = blocks.shape
    for box in range(n_boxes):
        a, b, c = np.ones(I), np.ones(J), np.ones(K)
        for point in range(starts[box], starts[box + 1]):
            _all_weights(local[point], nodes, strengths, a, b, c)
            for channel in range(channels):
                for i in range(I):
                    for j in range(J):
                        both = sources[point, channel] * a[i] * b[j]
                        for k in range(K):
                            blocks[box, channel, i, j, k] += both * c[k]


@numba.njit(cache=True, nogil=True, fastmath=True)
def _spread(starts, local, blocks, nodes, strengths, out):
    """out[point, channel] = sum over the nodes of its box of blocks * a_i * b_j * c_k."""
    n_boxes, channels, I, J, K = blocks.shape
    for box in range(n_boxes):
        a, b, c = np.ones(I), np.ones(J), np.ones(K)
        for point in range(starts[box], starts[box + 1]):
            _all_weights(local[point], nodes, strengths, a, b, c)
            for channel in range(channels):
                total = 0.0
                for i in range(I):
                    for j in range(J):
                        line = 0.0
                        for k in range(K):
                            line += blocks[box, channel, i, j, k] * c[k]
                        total += a[i] * b[j] * line
                out[point, channel] = total
