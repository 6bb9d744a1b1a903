"""Numbers that describe the state of a flow: entropy, energy, rank, clusters, radius."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree
from scipy.special import digamma, gammaln
from torch import Tensor

from measureflow.measures import Empirical, Gaussian, checks


def entropy(mu: Empirical | Gaussian, k: int = 3, *, sphere: bool = False) -> Tensor:
    r"""Differential entropy: exact for a Gaussian, estimated from k-th neighbours for points.

    .. math:: \mathrm{Ent} \approx \log k - \psi(k) + \sum_i w_i \bigl(\log c_m + m \log r_i - \log W_i\bigr)

    with r_i the distance to the k-th neighbour, W_i the share of the other points' mass within it, c_m the volume
    of the unit ball of dimension m (Kozachenko and Leonenko 1987, with masses). ``sphere`` says that the points
    lie on the unit sphere, of dimension m = d - 1. Points on top of each other give minus infinity.

    >>> uniform = torch.rand(10_000, 1, generator=torch.Generator().manual_seed(0))  # on [0, 1]: its entropy is log 1
    >>> entropy(Empirical(uniform)).abs().round(decimals=1)
    tensor(0.)
    """
    if isinstance(mu, Gaussian):
        return mu.entropy()
    n = int((mu.weights > 0).sum(-1).min())
    if not 1 <= k < n:
        raise ValueError(f"k must lie between 1 and n - 1 = {n - 1}, n being the number of points with mass, got {k}")
    clouds = mu.points.detach().cpu().double().reshape(-1, mu.n, mu.d).numpy()
    weights = mu.probabilities.detach().cpu().double().reshape(-1, mu.n).numpy()
    values = [_entropy(x, w, k, mu.d - 1 if sphere else mu.d) for x, w in zip(clouds, weights, strict=True)]
    return mu.points.new_tensor(values).reshape(mu.points.shape[:-2])


def _entropy(x: np.ndarray, w: np.ndarray, k: int, m: int) -> float:
    x, w = x[w > 0], w[w > 0]
    distances, neighbours = map(np.asarray, KDTree(x).query(x, k + 1))
    share = w[neighbours[:, 1:]].sum(1) / (1 - w)
    log_ball = m / 2 * math.log(math.pi) - gammaln(m / 2 + 1)
    with np.errstate(divide="ignore"):
        local = log_ball + m * np.log(distances[:, k]) - np.log(share)
    return float(math.log(k) - digamma(k) + w @ local)


def interaction_energy(mu: Empirical, kernel: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    r""":math:`E_K[\mu] = \tfrac12 \iint K(x, y)\, d\mu(x)\, d\mu(y)` for a kernel given as a score [Zimin 2025, (2)].

    >>> from measureflow.attention import DotProduct
    >>> interaction_energy(Empirical([[1.0], [-1.0]], weights=[1, 1]), lambda x, y: DotProduct()(x, y).exp())
    tensor(3.0862)
    """
    w, block = mu.weights, max(1, 2**22 // mu.n)
    total = w.new_zeros(w.shape[:-1])
    for start in range(0, mu.n, block):
        part = slice(start, start + block)
        rows = kernel(mu.points[..., part, :], mu.points) @ w[..., None]
        total = total + (w[..., None, part] @ rows).squeeze((-1, -2))
    return 0.5 * total


def numerical_rank(S: Tensor, tol: float = 1e-6) -> Tensor:
    r"""How many eigenvalues of a covariance (\*b, d, d) exceed ``tol`` times the largest, or ``tol`` if all are small.

    >>> numerical_rank(torch.diag(torch.tensor([1.0, 0.5, 1e-9])))
    tensor(2)
    """
    values = torch.linalg.eigvalsh(S)
    return (values > tol * values[..., -1:].clamp_min(1.0)).sum(-1)


def cluster_count(mu: Empirical, radius: float) -> Tensor:
    """How many groups of points are more than ``radius`` apart, points snapped to a grid of a tenth of it.

    >>> cluster_count(Empirical([[0.0], [0.1], [5.0]]), radius=1.0)
    tensor(2)
    """
    checks.positive("radius", radius)
    clouds = mu.points.detach().cpu().reshape(-1, mu.n, mu.d)
    kept = (mu.weights > 0).reshape(-1, mu.n).cpu()
    counts = [_components(x[keep].double().numpy(), radius) for x, keep in zip(clouds, kept, strict=True)]
    return torch.tensor(counts).reshape(mu.points.shape[:-2])


def _components(x: np.ndarray, radius: float) -> int:
    cells = np.unique(np.round(x / (radius / 10)), axis=0)  # whole numbers, whose distances are exact
    pairs = KDTree(cells).query_pairs(10, output_type="ndarray").astype(np.int32)  # scipy 1.11 finds nothing in int64
    n = len(cells)
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return int(connected_components(graph, directed=False)[0])


def support_radius(mu: Empirical) -> Tensor:
    r"""The radius (\*b) of the smallest ball around the origin that holds all mass [Castin 2025, Theorem 3.1].

    >>> support_radius(Empirical([[3.0, 4.0], [1.0, 0.0]]))
    tensor(5.)
    """
    return torch.where(mu.weights > 0, mu.points.norm(dim=-1), 0.0).amax(-1)
