r"""Lemmas A.1 and A.2 of He 2025 made constructive: any smooth function as a sum of sigmoids, hence of softmax heads.

The paper proves by the probabilistic method that weights exist. Here the inner weights are drawn and the outer ones
solved for by least squares, and the sup error is measured on fresh points instead of being bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from measureflow.measures import checks

RIDGE = 1e-10  # keeps the outer weights small where features are nearly dependent; far below every error measured
FIT_POINTS, CHECK_POINTS = 8000, 20000


@dataclass(frozen=True, eq=False)
class SigmoidSum:
    r"""The function :math:`g(x) = a_0 + \sum_{i=1}^M a_i\, \mathrm{Sigmoid}(v_i \cdot (x, 1))` [He 2025, Lemma A.1].

    ``inner`` holds the v_i, (M, d + 1), ``outer`` the a_i, (M,). ``error`` is the greatest difference from the
    function it stands for, measured on fresh points of the shell ``inner_radius <= |x| <= radius``.
    """

    inner: Tensor
    outer: Tensor
    constant: float
    radius: float
    inner_radius: float
    error: float = float("nan")

    @property
    def n_heads(self) -> int:
        """M, the number of sigmoids, each of which is one softmax head."""
        return self.outer.shape[0]

    def __call__(self, x: Tensor) -> Tensor:
        """The values (*b) at points (*b, d)."""
        return self.constant + torch.sigmoid(x @ self.inner[:, :-1].mT + self.inner[:, -1]) @ self.outer


def approximate(
    function: Callable[[Tensor], Tensor],
    n_heads: int,
    radius: float,
    *,
    dimension: int = 1,
    inner_radius: float = 0.0,
    even: bool = False,
    steepness: tuple[float, float] = (3.0, 10.0),
    error: float | None = None,
    seed: int = 0,
) -> SigmoidSum:
    r"""A `SigmoidSum` close to ``function`` on the shell ``inner_radius <= |x| <= radius`` of R^dimension.

    .. math:: \sup_x |f(x) - g(x)| \lesssim C(f)^d \sqrt{\tfrac{d}{M} \log\tfrac{M R}{d}} \qquad
        \text{[He 2025, Lemma A.1]}

    is the lemma's bound for some weights; `SigmoidSum.error` is the error of these weights. The inner weights are
    :math:`v_i = s_i (u_i, -t_i)/R` with u_i uniform on the sphere, t_i uniform in [-R, R] and the slope s_i
    log-uniform in ``steepness``. With ``even`` they come in pairs (u, t), (-u, t) that share one outer weight, so
    that g(-x) = g(x). ``function`` maps (n, dimension) to (n,). ``error`` asks for a sup error: a ValueError says
    when ``n_heads`` is too few for it.

    >>> g = approximate(lambda x: x[:, 0] * x[:, 1], 128, radius=1.0, dimension=2)
    >>> g.error < 1e-3
    True
    """
    _check(n_heads, radius, dimension, inner_radius, even)
    generator = torch.Generator().manual_seed(seed)
    inner = _draw_inner(n_heads // 2 if even else n_heads, dimension, radius, steepness, generator)
    x = _shell(max(FIT_POINTS, 8 * n_heads), dimension, radius, inner_radius, generator)
    a, constant = _least_squares(_features(x, inner, even), function(x))
    if even:
        inner, a = torch.cat([inner, inner * inner.new_tensor([-1.0] * dimension + [1.0])]), torch.cat([a, a])
    fitted = SigmoidSum(inner, a, constant, float(radius), float(inner_radius))
    measured = _sup_error(fitted, function, _shell(CHECK_POINTS, dimension, radius, inner_radius, generator))
    if error is not None and measured > error:
        raise ValueError(
            f"n_heads={n_heads} gives a sup error of {measured:.2g} on radius {radius:g} in dimension {dimension}, not "
            f"error={error:g}: by Lemma A.1 [He 2025] the error falls as sqrt(log M / M), so ask for more heads"
        )
    return replace(fitted, error=measured)


def _check(n_heads: int, radius: float, dimension: int, inner_radius: float, even: bool) -> None:
    checks.whole("n_heads", n_heads)
    if even and n_heads % 2:
        raise ValueError(f"n_heads must be even, because the heads come in pairs, got {n_heads}")
    checks.whole("dimension", dimension)
    checks.positive("radius", radius)
    if not 0 <= inner_radius < radius:
        raise ValueError(f"inner_radius must lie in [0, radius), got {inner_radius} with radius {radius}")


def _draw_inner(n: int, d: int, radius: float, steepness: tuple[float, float], generator: torch.Generator) -> Tensor:
    u = torch.randn(n, d, generator=generator, dtype=torch.float64)
    u = u / u.norm(dim=-1, keepdim=True)
    slope, threshold = torch.rand(2, n, 1, generator=generator, dtype=torch.float64)
    low, high = steepness
    slope = low * (high / low) ** slope
    return torch.cat([slope * u / radius, slope * (1 - 2 * threshold)], -1)


def _shell(n: int, d: int, radius: float, inner_radius: float, generator: torch.Generator) -> Tensor:
    """Points of uniform direction and uniform distance from the origin, so that every distance counts alike."""
    u = torch.randn(n, d, generator=generator, dtype=torch.float64)
    r = inner_radius + (radius - inner_radius) * torch.rand(n, 1, generator=generator, dtype=torch.float64)
    return r * u / u.norm(dim=-1, keepdim=True)


def _features(x: Tensor, inner: Tensor, even: bool) -> Tensor:
    along, bias = x @ inner[:, :-1].mT, inner[:, -1]
    values = torch.sigmoid(along + bias)
    if even:
        values = values + torch.sigmoid(bias - along)
    return torch.cat([values, torch.ones_like(values[:, :1])], -1)


def _least_squares(features: Tensor, values: Tensor) -> tuple[Tensor, float]:
    """Outer weights and constant of least squared error."""
    gram = features.mT @ features + RIDGE * len(features) * torch.eye(features.shape[-1], dtype=features.dtype)
    solution = torch.linalg.solve(gram, features.mT @ values)
    return solution[:-1], float(solution[-1])


def _sup_error(fitted: SigmoidSum, function: Callable[[Tensor], Tensor], x: Tensor) -> float:
    return max(float((fitted(part) - function(part)).abs().max()) for part in x.split(4000))
