"""The field `Fast`: a Gauss transform within a tolerance, exact sums where that is cheaper."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from measureflow.attention.closed_forms import Affine
from measureflow.attention.field import Attention, Field
from measureflow.attention.gauss_transform.boxes import REACH, Boxes, interpolation_error
from measureflow.attention.normalisers import Softmax
from measureflow.attention.scores import DotProduct, NegativeSquaredDistance
from measureflow.measures import Gaussian, checks

DIMENSIONS = 3
FEW_PAIRS = 2**22  # below this many query-key pairs the exact field takes milliseconds
MOST_NODES = 2**24  # of the grid, over all channels: 128 MB
MESHES = ((1.0, 10), (1.0, 14), (0.5, 12), (0.5, 16), (0.25, 16), (0.125, 16))  # (h, p), cheap to dear
EXACT_PAIR = 12.0  # multiplications in the time of one exponential with its sums
MATMUL = 8.0  # multiplications of a matrix product in the time of one elsewhere


@dataclass(frozen=True)
class Report:
    """How a fast field got its last values: ``estimate`` bounds the error relative to the size of the values."""

    estimate: float
    exact: int  # queries that were computed exactly
    side: float = 0.0  # of a box, in widths of the kernel; zero where everything was computed exactly
    nodes: int = 0  # to an axis of a box


class Fast(Field):
    r"""The field of a softmax `Attention` whose score maps to at most three dimensions, within ``tol``.

    Every query gets its own error estimate, the mean over its attention weights of the interpolation error at the
    distance of each key; ``tol`` bounds it relative to the largest value :math:`|V y_j - \bar{Vy}|`. Queries beyond it
    are computed exactly, and so is everything when that is cheaper or a gradient is needed. `report` says what the last
    call did.

    >>> x = torch.randn(4000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> exact = Attention(NegativeSquaredDistance())
    >>> fast = Fast(exact, tol=1e-8)
    >>> bool((fast(x) - exact(x)).abs().max() < 1e-8), fast.report.exact
    (True, 0)
    """

    def __init__(self, attention: Attention, tol: float = 1e-6):
        super().__init__()
        if type(getattr(attention, "normaliser", None)) is not Softmax:
            raise ValueError("attention must be an Attention with a Softmax normaliser to be a Gauss transform")
        if type(attention.score) not in (DotProduct, NegativeSquaredDistance):
            raise ValueError("attention must have a DotProduct or a NegativeSquaredDistance score")
        self.attention, self.tol = attention, checks.positive("tol", tol)
        self.report: Report | None = None

    @property
    def blind_to_total_mass(self) -> bool:
        return True

    def on_gaussian(self, mu: Gaussian) -> Affine:
        return self.attention.on_gaussian(mu)

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        own_measures = w is not None and w.shape[-2] != 1
        wants_gradient = torch.is_grad_enabled() and any(t.requires_grad for t in (x, y, *self.parameters()))
        if own_measures or wants_gradient or x.shape[-2] * y.shape[-2] < FEW_PAIRS:
            return self._exactly(x, y, w, u)
        q, k, values = self.attention.score.Q(x), self.attention.score.K(y), self.attention.value(y)
        if q.shape[-1] > DIMENSIONS:
            raise ValueError(f"x has scores in {q.shape[-1]} dimensions; Fast is for at most {DIMENSIONS}")
        weights = k.new_ones(k.shape[:-1]) if w is None else w.squeeze(-2)
        batch = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], values.shape[:-2], weights.shape[:-1])
        flat = [t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:]) for t in (q, k, values)]
        weights = weights.expand(*batch, -1).reshape(-1, weights.shape[-1])
        tried = [self._one(*cloud) for cloud in zip(*flat, weights, strict=True)]
        parts = [part for part in tried if part is not None]
        if len(parts) < len(tried):
            return self._exactly(x, y, w, u)
        self.report = max((report for _, report in parts), key=lambda report: report.estimate)
        return torch.stack([part for part, _ in parts]).reshape(*batch, *parts[0][0].shape)

    def _exactly(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None) -> Tensor:
        self.report = Report(0.0, x.shape[:-1].numel())
        return self.attention.attend(x, y, w, u)

    def _one(self, q: Tensor, k: Tensor, values: Tensor, w: Tensor) -> tuple[Tensor, Report] | None:
        """One cloud, on the first mesh that leaves few queries beyond the tolerance; None where no mesh is cheaper."""
        problem = _Scaled.of(self.attention, q, k, values, w)
        if not problem.in_reach:
            return None
        for h, p in MESHES:
            cost, limit = problem.cost(h, p), EXACT_PAIR * len(q) * len(k)
            if cost > limit:
                return None
            velocity, estimate = problem.solve(h, p)
            over = (~(estimate <= self.tol)).nonzero().squeeze(-1)
            if len(over) * EXACT_PAIR * len(k) <= min(cost, 0.1 * limit):
                velocity[over] = problem.exact(over)
                worst = float(estimate[estimate <= self.tol].max())
                return velocity.to(values.dtype), Report(worst, len(over), h, p)
        return None


@dataclass(frozen=True)
class _Scaled:
    """Queries u and keys v in widths of the kernel, log masses, and centred values, all in float64."""

    u: Tensor
    v: Tensor
    log_c: Tensor
    values: Tensor
    center: Tensor
    in_reach: bool  # whether the masses stay within what exp can hold

    @classmethod
    def of(cls, attention: Attention, q: Tensor, k: Tensor, values: Tensor, w: Tensor) -> _Scaled:
        dot = isinstance(attention.score, DotProduct)
        scale = math.sqrt(cast(Softmax, attention.normaliser).gamma / (2 if dot else 1))
        u, v, values, w = (t.detach().double() for t in (scale * q, scale * k, values, w))
        seen = w > 0
        v, values, w = v[seen], values[seen], w[seen]
        log_c, fits = w.log(), True
        if dot:  # a shift of the keys changes a row of scores by a constant: bring them over the queries
            v = v - v.mean(0) + u.mean(0)
            size = (v * v).sum(-1)
            fits = bool(size.max() - size.min() < REACH**2)
            log_c = log_c + size
        center = values.mean(0)
        return cls(u, v, log_c - log_c.max(), values - center, center, fits)

    def cost(self, h: float, p: int) -> float:
        """Multiplications that a mesh takes, infinity where its grid would not fit in memory."""
        channels, d = self.values.shape[-1] + 2, self.u.shape[-1]
        sides = [p * np.ceil((t.amax(0) - t.amin(0)).numpy() / h).clip(1) for t in (self.u, self.v)]
        nodes = max(float(np.prod(side)) for side in sides)
        between = nodes * float(sum(np.minimum(*sides))) * (channels + d) / MATMUL
        near = (len(self.u) + len(self.v)) * channels * float(p) ** d
        return between + near if nodes * channels <= MOST_NODES else math.inf

    def solve(self, h: float, p: int) -> tuple[Tensor, Tensor]:
        """Velocities and their estimated errors relative to the size of the values, from one mesh."""
        c = self.log_c.exp()[:, None]
        sources = torch.cat([c, c * self.values], -1)
        target, source = Boxes.of(self.u, h, p), Boxes.of(self.v, h, p)
        grid = source.gather(sources)
        at_nodes = _transform(grid, target, source, h, p)
        out = target.spread(at_nodes)
        total, errors = out[:, 0], out[:, -1]
        velocity = out[:, 1:-1] / total[:, None]
        return velocity + self.center, (errors / total).abs().nan_to_num(math.inf)

    def exact(self, rows: Tensor) -> Tensor:
        """The same sums term by term, for the queries ``rows``."""
        block = max(1, FEW_PAIRS // len(self.v))
        parts = [self._exact(self.u[part]) for part in rows.split(block)]
        return torch.cat(parts) if parts else self.values.new_zeros(0, self.values.shape[-1])

    def _exact(self, u: Tensor) -> Tensor:
        scores = self.log_c - torch.cdist(u, self.v, compute_mode="donot_use_mm_for_euclid_dist").square()
        return torch.softmax(scores, -1) @ self.values + self.center


def _transform(grid: Tensor, target: Boxes, source: Boxes, h: float, p: int) -> Tensor:
    """Gauss transforms from nodes to nodes, axis by axis; the last channel carries the error of the first."""
    kernels, errors = [], []
    for axis in range(3):
        gap = target.axes[axis][:, None] - source.axes[axis]
        boxes_apart = target.middles[axis][:, None] - source.middles[axis]
        idle = target.nodes[axis] == 1
        kernels.append((-gap * gap).exp())
        errors.append(None if idle else kernels[axis] * interpolation_error(boxes_apart.abs(), h, p))
    channels = [_along(channel, kernels) for channel in grid]
    wrong = [
        _along(grid[0], [*kernels[:axis], error, *kernels[axis + 1 :]])
        for axis, error in enumerate(errors)
        if error is not None
    ]
    return torch.stack([*channels, torch.stack(wrong).sum(0)])


def _along(grid: Tensor, matrices: list[Tensor]) -> Tensor:
    """Each matrix applied along its own axis of the grid."""
    grid = grid @ matrices[2].T
    grid = matrices[1] @ grid
    return (matrices[0] @ grid.flatten(1)).unflatten(1, grid.shape[1:])
