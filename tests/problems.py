"""Problems that carry their exact answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from measureflow.attention import Attention, DotProduct, Field, Identity, Relative, Softmax, Sum, TimeDependent
from measureflow.flows import Dopri5
from measureflow.measures import Empirical, Gaussian
from measureflow.measures.gaussian import matrix_sqrt

TIGHT = Dopri5(rtol=1e-10, atol=1e-12)
GROWN = Dopri5(rtol=1e-6, limit=1e5)  # far enough to tell a blow-up from growth, near enough to lose no digits


def seeded(seed: int = 0) -> torch.Generator:
    """A generator that begins at the seed."""
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> Tensor:
    """Standard normal numbers in float64, always the same ones."""
    return torch.randn(*shape, dtype=torch.float64, generator=seeded(seed))


def masses(*shape: int, seed: int = 0) -> Tensor:
    """Masses between 0.2 and 1.2, of no particular total."""
    return 0.2 + torch.rand(*shape, dtype=torch.float64, generator=seeded(seed))


def random_covariance(*batch: int, d: int, seed: int = 0) -> Tensor:
    """Positive definite matrices with eigenvalues of about one."""
    R = normal(*batch, d, d + 2, seed=seed)
    return R @ R.mT / (d + 2)


# ---------------------------------------------------------------------------------------- flows of any measure


@dataclass(frozen=True)
class Flow:
    """A field, where it starts, and where it is at every time."""

    field: Field
    start: Tensor | Empirical | Gaussian
    exact: Callable[[float], Tensor]  # points (n, d) or covariance (d, d) at time t
    time: float = 1.0

    def error(self, state) -> float:
        """How far a state at the end is from the exact one."""
        return float((moving_part(state) - self.exact(self.time)).abs().max())


def moving_part(state) -> Tensor:
    """The points, or the covariance of a Gaussian."""
    if isinstance(state, Gaussian):
        return state.covariance
    return state.points if isinstance(state, Empirical) else state


def second_moment(state) -> Tensor:
    if isinstance(state, Gaussian):
        return state.covariance
    mu = state if isinstance(state, Empirical) else Empirical(state)
    return mu.points.mT @ (mu.weights[..., None] * mu.points)


def starts() -> dict[str, Tensor | Empirical | Gaussian]:
    """The same kind of start as each kind of measure: tokens, weighted points, a centred Gaussian."""
    x = normal(5, 2, seed=11)
    return {
        "tokens": x,
        "points": Empirical(x),
        "weighted points": Empirical(x, masses(5, seed=12)),
        "gaussian": Gaussian(torch.zeros(2), random_covariance(d=2, seed=13)),
    }


def riccati(start) -> Flow:
    r"""Linear attention with V = gI: :math:`x' = g S x` for the second moment S, so :math:`S' = 2g S^2` and

    .. math:: S(t) = (S_0^{-1} - 2gt)^{-1}, \qquad x(t) = (I - 2 g t S_0)^{-1/2} x_0

    with g such that the way to infinity takes time 2. Every derivative has one sign, so that an integrator shows its
    order at once.
    """
    S0 = second_moment(start)
    eye = torch.eye(2, dtype=torch.float64)
    g = 0.25 / torch.linalg.eigvalsh(S0)[-1]

    def exact(t: float) -> Tensor:
        grow = torch.linalg.inv(matrix_sqrt(eye - 2 * g * t * S0))
        return grow @ S0 @ grow if isinstance(start, Gaussian) else moving_part(start) @ grow

    return Flow(Attention(DotProduct(), Identity(), g * eye), start, exact)


def blind() -> Field:
    """The pull to the mean: scores of zero attend to all keys alike."""
    zero = torch.zeros(2, 2, dtype=torch.float64)
    return Relative(Attention(DotProduct(zero, zero)))


def leaving(start) -> Flow:
    r"""A push away from the mean of strength :math:`c(t) = 1 + 2t`: distances grow by :math:`e^{t + t^2}`."""

    def exact(t: float) -> Tensor:
        grow = math.exp(t + t * t)
        if isinstance(start, Gaussian):
            return grow**2 * start.covariance
        mu = start if isinstance(start, Empirical) else Empirical(start)
        return mu.mean + grow * (mu.points - mu.mean)

    def field(t) -> Field:
        push = -1 - 2 * torch.as_tensor(t, dtype=torch.float64)
        return Sum(blind(), coefficients=[push[..., None, None] if push.ndim else float(push)])

    return Flow(TimeDependent(field), start, exact, time=0.5)


def meeting_on_the_circle(angle: float = 1.0, time: float = 1.0) -> Flow:
    r"""Two tokens at angles :math:`\pm\theta` pulled to their mean along the circle.

    .. math:: \tan\theta(t) = e^{-t}\tan\theta_0
    """

    def place(theta: float) -> Tensor:
        up = [math.cos(theta), math.sin(theta)]
        return torch.tensor([up, [up[0], -up[1]]], dtype=torch.float64)

    zero = torch.zeros(2, 2, dtype=torch.float64)
    field = Attention(DotProduct(zero, zero))
    return Flow(field, place(angle), lambda t: place(math.atan(math.tan(angle) * math.exp(-t))), time)


# ------------------------------------------------------------------------------------------- flows of Gaussians


@dataclass(frozen=True)
class LineFlow:
    r"""Softmax attention of a normal law on a line [Castin 2025, Proposition 4.3], with its mean.

    .. math:: s(t) = (s_0^{-1} - 2vat)^{-1}, \qquad \alpha(t) = \alpha_0\, e^{vt} (1 - 2vas_0 t)^{-1/2}
    """

    a: float
    v: float
    s0: float
    mean0: float = 0.5

    @property
    def field(self) -> Attention:
        return Attention(DotProduct([[self.a]], [[1.0]]), Softmax(), [[self.v]])

    @property
    def start(self) -> Gaussian:
        return Gaussian(torch.tensor([self.mean0], dtype=torch.float64), torch.tensor([[self.s0]], dtype=torch.float64))

    def variance(self, t: float) -> float:
        return 1 / (1 / self.s0 - 2 * self.v * self.a * t)

    def mean(self, t: float) -> float:
        return self.mean0 * math.exp(self.v * t) / math.sqrt(1 - 2 * self.v * self.a * self.s0 * t)

    @property
    def blow_up_time(self) -> float:
        rate = 2 * self.v * self.a * self.s0
        return 1 / rate if rate > 0 else math.inf


LINES = {
    "spreads": LineFlow(a=0.7, v=1.3, s0=0.8),
    "spreads, both negative": LineFlow(a=-0.7, v=-1.3, s0=2.0),
    "clusters": LineFlow(a=-0.7, v=1.3, s0=0.8),
    "stays": LineFlow(a=0.0, v=1.0, s0=1.5),
}


def plane_flows(n: int, d: int, seed: int = 0) -> tuple[Tensor, Gaussian, Tensor]:
    r"""``n`` softmax flows with V = I and random A: A (n, d, d), the starts, and the blow-up times [Proposition 4.4].

    :math:`\Sigma(t) = (\Sigma_0^{-1} - t(A + A^\top))^{-1}` is lost when the largest eigenvalue of
    :math:`t\,\Sigma_0^{1/2}(A + A^\top)\Sigma_0^{1/2}` reaches one.
    """
    A = normal(n, d, d, seed=seed)
    S0 = random_covariance(n, d=d, seed=seed + 1)
    root = matrix_sqrt(S0)
    fastest = torch.linalg.eigvalsh(root @ (A + A.mT) @ root)[:, -1]
    start = Gaussian(torch.zeros(n, d, dtype=torch.float64), S0)
    return A, start, torch.where(fastest > 0, 1 / fastest, torch.inf)


def plane_covariance(A: Tensor, S0: Tensor, t: float) -> Tensor:
    r""":math:`(\Sigma_0^{-1} - t(A + A^\top))^{-1}` [Castin 2025, Proposition 4.4]."""
    return torch.linalg.inv(torch.linalg.inv(S0) - t * (A + A.mT))


def quadrature(mu: Gaussian, nodes: int) -> Empirical:
    """A normal law in one or two dimensions as Gauss-Hermite nodes: integrals of smooth functions to rounding."""
    t, w = np.polynomial.hermite_e.hermegauss(nodes)
    grid = torch.cartesian_prod(*[torch.from_numpy(t)] * mu.d).reshape(-1, mu.d)
    weights = torch.cartesian_prod(*[torch.from_numpy(w)] * mu.d).reshape(-1, mu.d).prod(-1)
    return Empirical(mu.mean + grid @ matrix_sqrt(mu.covariance), weights / weights.sum())
