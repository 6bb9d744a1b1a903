"""Trees of merges over the rows of a set, and what is known at each merge."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import torch
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from torch import Tensor

CORE_SHARE = 0.02  # of the rows: who is that near is surely connected ...
MOST_CORE = 10  # ... but never more rows than this, or small clusters beside many others would be overlooked
TIE = 1e-6  # steps are often equally long, because one core is in all of them: then the nearer rows meet first
SUREST = 8.0  # logits beyond this are as good as certain
REACHES = (0.25, 0.4, 0.5, 0.75)  # of the way from a child's mean to that of its sibling
BEYOND = 1e-5  # a row is beyond a place by at least so much of the way: on a grid many lie just there
N_LINE = len(REACHES) + 1  # facts of a child on one line
N_GEOMETRY = 2 * N_LINE + 1  # facts of `geometry` about each child


class MergeTrees(NamedTuple):
    """A binary tree over the n rows of each of B sets. Merge v joins order[start:middle] and order[middle:end].

    Merges are numbered from the first, of the least height, to the last, which joins all rows.
    """

    order: Tensor  # (B, n): the rows as the leaves of the tree stand from left to right
    bounds: Tensor  # (B, n - 1, 3): start, middle and end of each merge in that order
    heights: Tensor  # (B, n - 1)
    below: Tensor  # (B, n - 1, 2): the heights of both children; that of a row is its own
    above: Tensor  # (B, n - 1): the height of the merge that comes next; the last has its own
    joined: Tensor  # (B, n, n): the merge at which two rows meet; 0 on the diagonal

    @classmethod
    def of(cls, linkages: list[np.ndarray], rows: Tensor) -> MergeTrees:
        """The trees that SciPy's ``linkage`` found, one for each set, where single rows have heights (B, n)."""
        parts = zip(*(_laid_out(Z, own) for Z, own in zip(linkages, rows.cpu().numpy(), strict=True)), strict=True)
        order, bounds, heights, below, above, joined = (torch.from_numpy(np.stack(part)) for part in parts)
        return cls(order, bounds, heights.to(rows), below.to(rows), above.to(rows), joined)

    def means(self, values: Tensor) -> Tensor:
        """Means of values (B, n, p) over the rows of both children of each merge, (B, n - 1, 2, p)."""
        B, _, p = values.shape
        ordered = torch.gather(values, 1, self.order[..., None].expand(-1, -1, p))
        sums = torch.cat([ordered.new_zeros(B, 1, p), ordered.cumsum(1)], 1)
        at = torch.gather(sums, 1, self.bounds.flatten(1)[..., None].expand(-1, -1, p)).unflatten(1, (-1, 3))
        return at.diff(dim=2) / self.sizes[..., None]

    @property
    def sizes(self) -> Tensor:
        """Rows of both children of each merge, (B, n - 1, 2)."""
        return self.bounds.diff(dim=-1).to(self.heights.dtype)

    def of_pairs(self, values: Tensor) -> Tensor:
        """What merges say (B, n - 1), for the pairs of rows (B, n, n) that meet there."""
        return torch.gather(values, 1, self.joined.flatten(1)).view(self.joined.shape)

    def geometry(self, x: Tensor) -> Tensor:
        r"""How far each child reaches toward its sibling, (B, n - 1, 2, 11), for rows x (B, n, d).

        Rows are looked at along two lines. One goes through the means of both children, at :math:`\delta` from each
        other; the other is Fisher's, along :math:`W^{-1} \delta` with W the covariance within the children, drawn
        toward a round one where rows are few. The distance of the means is the unit. On each line the facts are the
        shares of the child's rows beyond a few places, and the log of its standard deviation; the last fact is the log
        of its scatter in all directions.
        """
        with torch.no_grad():
            points = x.double().cpu().numpy()
            ordered = np.take_along_axis(points, self.order.numpy()[..., None], 1)
            facts = [_geometry(rows, bounds) for rows, bounds in zip(ordered, self.bounds.numpy(), strict=True)]
            return torch.from_numpy(np.stack(facts)).to(x)


def path_trees(gaps: Tensor) -> tuple[MergeTrees, Tensor]:
    r"""How rows at squared distances (B, n, n) hang together: trees of paths, and the logs of paths (B, n, n).

    A step from i to j is as long as :math:`\max(c_i, c_j, |x_i - x_j|)`, where c is the distance to the nearest 2 % of
    the rows, at most ten of them, and the best path is the one whose longest step is shortest. Rows of one ring are
    near in this sense however far apart they are; rows of two rings are not. It is the tree that HDBSCAN cuts, its
    heights in logarithms.
    """
    with torch.no_grad():
        n = gaps.shape[-1]
        near = max(1, min(n - 1, round(CORE_SHARE * n), MOST_CORE))
        cores, found = [], []
        for squares in gaps.cpu().numpy():
            core = np.maximum(np.partition(squares, near, -1)[:, near], 1e-12)
            squares = squares.astype(np.float64)
            steps = np.maximum(np.maximum(squares, core), core[:, None]) + TIE * squares
            Z = linkage(squareform(steps, checks=False), "single")
            Z[:, 2] = 0.5 * np.log(Z[:, 2])
            cores.append(0.5 * np.log(core))
            found.append(Z)
        own = torch.from_numpy(np.stack(cores)).to(gaps)
        trees = MergeTrees.of(found, own)
        return trees, torch.where(torch.eye(n, dtype=torch.bool), own[:, None], trees.of_pairs(trees.heights))


def pair_trees(logits: Tensor) -> MergeTrees:
    """Average-linkage trees of the probability that rows belong apart, for logits (B, n, n) that they belong together.

    The height of a merge is the logit of the mean probability between its children, with the sign turned.
    """
    with torch.no_grad():
        found = []
        for apart in torch.sigmoid(-logits).double().cpu().numpy():
            Z = linkage(squareform((apart + apart.T) / 2, checks=False), "average")
            Z[:, 2] = np.clip(np.log(np.maximum(Z[:, 2], 1e-9) / np.maximum(1 - Z[:, 2], 1e-9)), -SUREST, SUREST)
            found.append(Z)
        return MergeTrees.of(found, torch.full_like(logits[..., 0], -SUREST))


def _laid_out(Z: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, ...]:
    """The fields of `MergeTrees` for one tree."""
    n = len(Z) + 1
    children = Z[:, :2].astype(np.int64)
    heights = Z[:, 2].astype(np.float64)
    all_heights = np.concatenate([own, heights])
    above = heights.copy()
    inner = children >= n
    above[children[inner] - n] = np.repeat(heights[:, None], 2, 1)[inner]
    order, bounds = _bounds(children, n)
    return order, bounds, heights, all_heights[children], above, _joined(order, bounds)


@numba.njit(cache=True)
def _bounds(children, n):
    """The order of the leaves, and start, middle and end of each merge in it."""
    sizes = np.ones(2 * n - 1, np.int64)
    for v in range(n - 1):
        sizes[n + v] = sizes[children[v, 0]] + sizes[children[v, 1]]
    starts = np.zeros(2 * n - 1, np.int64)
    bounds = np.empty((n - 1, 3), np.int64)
    for v in range(n - 2, -1, -1):
        left, right = children[v]
        starts[left] = starts[n + v]
        starts[right] = starts[n + v] + sizes[left]
        bounds[v] = starts[left], starts[right], starts[n + v] + sizes[n + v]
    order = np.empty(n, np.int64)
    order[starts[:n]] = np.arange(n)
    return order, bounds


@numba.njit(cache=True)
def _joined(order, bounds):
    """The merge (n, n) at which two rows meet: of those between them in the order of the leaves, the last."""
    n = len(order)
    between = np.empty(n - 1, np.int64)  # the merge whose children touch there
    between[bounds[:, 1] - 1] = np.arange(n - 1)
    joined = np.zeros((n, n), np.int64)
    for i in range(n):
        last = 0
        for j in range(i + 1, n):
            last = max(last, between[j - 1])
            joined[order[i], order[j]] = last
            joined[order[j], order[i]] = last
    return joined


@numba.njit(cache=True)
def _geometry(x, bounds):
    """The facts of `MergeTrees.geometry` (n - 1, 2, 11) for rows x (n, d) in the order of the leaves."""
    n, d = x.shape
    sums, squares = np.zeros((n + 1, d)), np.zeros((n + 1, d, d))
    for i in range(n):
        sums[i + 1] = sums[i] + x[i]
        for k in range(d):
            for m in range(d):
                squares[i + 1, k, m] = squares[i, k, m] + x[i, k] * x[i, m]
    facts = np.zeros((n - 1, 2, N_GEOMETRY))
    for v in range(n - 1):
        start, middle, end = bounds[v]
        size = end - start
        first, second = (sums[middle] - sums[start]) / (middle - start), (sums[end] - sums[middle]) / (end - middle)
        across = second - first
        W = squares[end] - squares[start]
        for k in range(d):
            for m in range(d):
                W[k, m] -= (middle - start) * first[k] * first[m] + (end - middle) * second[k] * second[m]
        W /= size
        spread = max(np.trace(W), 0.0) / d + 1e-9
        for k in range(d):
            W[k, k] += (0.001 + 0.1 * d / size) * spread
        fisher = np.linalg.solve(W, across)
        for side in range(2):
            mean, low, high = (first, start, middle) if side == 0 else (second, middle, end)
            toward = across if side == 0 else -across
            _on_line(x[low:high], mean, toward, toward, facts[v, side, :N_LINE])
            _on_line(x[low:high], mean, fisher if side == 0 else -fisher, toward, facts[v, side, N_LINE : 2 * N_LINE])
            scatter = np.trace(squares[high] - squares[low]) / (high - low) - np.sum(mean * mean)
            facts[v, side, 2 * N_LINE] = 0.5 * np.log(max(scatter, 0.0) / (d * np.sum(across * across) + 1e-12) + 1e-4)
    return facts


@numba.njit(cache=True)
def _on_line(x, mean, direction, toward, facts):
    """Write the shares of rows beyond each of `REACHES` on a line, and the log of their deviation, into ``facts``."""
    unit = np.sum(direction * toward) + 1e-12
    variance = 0.0
    for i in range(len(x)):
        t = 0.0
        for k in range(len(mean)):
            t += (x[i, k] - mean[k]) * direction[k]
        t /= unit
        variance += t * t / len(x)
        for r in range(len(REACHES)):
            if t > REACHES[r] + BEYOND:
                facts[r] += 1.0 / len(x)
    facts[len(REACHES)] = 0.5 * np.log(variance + 1e-4)
