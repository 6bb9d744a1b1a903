"""The estimates of Castin 2025, Lemmas B.1 to B.7, on random draws; stability of the flow, masked and not."""

import math

import pytest
import torch
from scipy.optimize import linear_sum_assignment

from measureflow.attention import (
    Attention,
    DotProduct,
    Masked,
    MultiHead,
    NegativeSquaredDistance,
    Sigmoid,
    Sinkhorn,
)
from measureflow.flows import Uniform, integrate, rk4
from measureflow.measures import Empirical
from measureflow.reproduce.castin2025 import stability

F64 = torch.float64
SEEDS = range(12)


def op(M):
    return float(torch.linalg.matrix_norm(M, 2))


def wasserstein(x, y, p):
    """W_p of two clouds of equal size and masses, by assignment."""
    cost = torch.cdist(x, y) ** p
    rows, columns = linear_sum_assignment(cost.numpy())
    return float(cost[rows, columns].mean()) ** (1 / p)


class Draw:
    """Two clouds in a ball of radius R, matrices, and a point x that may lie far outside."""

    def __init__(self, seed, d=2, n=5):
        g = torch.Generator().manual_seed(seed)
        self.Q, self.K, self.V = (torch.randn(d, d, generator=g, dtype=F64) / 2 for _ in range(3))
        self.mu, nu = (torch.randn(n, d, generator=g, dtype=F64) for _ in range(2))
        self.nu = self.mu + 10 ** (-3 * float(torch.rand(1, generator=g))) * nu  # near and far
        self.R = float(torch.cat([self.mu, self.nu]).norm(dim=-1).max())
        self.x = 3 * torch.rand(1, generator=g, dtype=F64) * torch.randn(d, generator=g, dtype=F64)
        self.A, self.norm_x = self.K.T @ self.Q, float(self.x.norm())


def check(draw, at, size, slope, lipschitz, p):
    """(i), (ii) and (iii) for the field ``at(x, cloud)`` at one x."""
    value = at(draw.x, draw.mu)
    assert value.norm() <= size * (1 + 1e-12)
    jacobian = torch.autograd.functional.jacobian(lambda x: at(x, draw.mu), draw.x)
    assert op(jacobian) <= slope * (1 + 1e-9)
    assert (value - at(draw.x, draw.nu)).norm() <= lipschitz * wasserstein(draw.mu, draw.nu, p) * (1 + 1e-9)


def at_point(field):
    return lambda x, cloud: field.at(x[None], Empirical.trusted(cloud))[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_variance_is_below_the_square_of_the_radius(seed):
    """Lemma B.1."""
    draw = Draw(seed)
    assert op(Empirical(draw.mu).covariance) <= float(draw.mu.norm(dim=-1).max()) ** 2


@pytest.mark.parametrize("seed", SEEDS)
def test_softmax(seed):
    """Lemma B.2."""
    D = Draw(seed)
    a, v = op(D.A), op(D.V)
    reach = a * D.R * D.norm_x
    field = Attention(DotProduct(D.Q, D.K), value=D.V)
    check(D, at_point(field), v * D.R, v * a * D.R**2, v * (1 + 2 * reach) * math.exp(2 * reach), p=1)


@pytest.mark.parametrize("seed", SEEDS)
def test_l2(seed):
    """Lemma B.3, with the factor 2 that (ii) lacks in print."""
    D = Draw(seed)
    a, v, R = op(D.A), op(D.V), D.R
    growth = math.exp((op(D.Q) * D.norm_x + op(D.K) * R) ** 2)
    lipschitz = v * (1 + 4 * R * (a * D.norm_x + op(D.K.T @ D.K) * R)) * growth
    field = Attention(NegativeSquaredDistance(D.Q, D.K), value=D.V)
    check(D, at_point(field), v * R, 2 * v * a * R**2, lipschitz, p=1)


def test_l2_needs_the_factor_two():
    """Lemma B.3 (ii) as printed fails for two keys at distance R from the origin, seen from the middle."""
    field, keys = Attention(NegativeSquaredDistance()), torch.tensor([[1.0], [-1.0]], dtype=F64)
    slope = torch.autograd.functional.jacobian(lambda x: at_point(field)(x, keys), torch.zeros(1, dtype=F64))
    assert float(slope) == pytest.approx(2.0)  # |V| |A| R^2 = 1


@pytest.mark.parametrize("seed", SEEDS)
def test_multi_head(seed):
    """Lemma B.4, two heads of width one with output matrices."""
    D = Draw(seed)
    W = torch.randn(2, 2, 2, generator=torch.Generator().manual_seed(seed + 100), dtype=F64)
    field = MultiHead(Attention(DotProduct(D.Q[:, None], D.K[:, None]), value=D.V.expand(2, 2, 2).clone()), W)
    heads = [(op(W[h] @ D.V), op(D.K[h][:, None] * D.Q[h])) for h in range(2)]
    size, slope = sum(v for v, _ in heads) * D.R, sum(v * a for v, a in heads) * D.R**2
    reach = [a * D.R * D.norm_x for _, a in heads]
    lipschitz = sum(v * (1 + 2 * r) * math.exp(2 * r) for (v, _), r in zip(heads, reach, strict=True))
    check(D, at_point(field), size, slope, lipschitz, p=1)


def potentials(D, cloud):
    """f and g on the cloud, with kappa = exp(f + g - |Qx - Ky|^2 / 2)."""
    scores = -((cloud @ D.Q.T)[:, None] - cloud @ D.K.T).square().sum(-1) / 2
    log_kappa = (len(cloud) * Sinkhorn(1.0, tol=1e-12)(scores)).log()
    both = log_kappa - scores
    return both[:, 0], both[0] - both[0, 0]


def sinkhorn_at(D):
    """Sinkhorn attention anywhere: softmax with the masses that the potentials of the keys give."""

    def at(x, cloud):
        _, g = potentials(D, cloud)
        scores = g - ((D.Q @ x) - cloud @ D.K.T).square().sum(-1) / 2
        return torch.softmax(scores, -1) @ cloud @ D.V.T

    return at


@pytest.mark.parametrize("seed", SEEDS)
def test_sinkhorn_kernel(seed):
    """Lemma B.5: the kernel and its slope in the second point."""
    D = Draw(seed)
    f, g = potentials(D, D.mu)
    size = (op(D.Q) + op(D.K)) ** 2
    assert f[:, None].add(g).sub(((D.mu @ D.Q.T)[:, None] - D.mu @ D.K.T).square().sum(-1) / 2).max() <= size * D.R**2

    def kappa(y):
        c = (D.Q @ D.mu[0] - D.K @ y).square().sum() / 2
        to_all = f - ((D.mu @ D.Q.T) - D.K @ y).square().sum(-1) / 2
        return torch.exp(f[0] - torch.logsumexp(to_all, 0) + math.log(len(D.mu)) - c)

    slope = torch.autograd.functional.jacobian(kappa, D.mu[1]).norm()
    assert slope <= 2 * size * D.R * math.exp(size * D.R**2)


@pytest.mark.parametrize("seed", SEEDS)
def test_sinkhorn(seed):
    """Lemma B.6; (iii) holds on these draws with the unknown c(R, Q, K) set to zero."""
    D = Draw(seed)
    size, v = (op(D.Q) + op(D.K)) ** 2, op(D.V)
    reach = size * D.R * max(D.norm_x, 1e-9)
    check(D, sinkhorn_at(D), v * D.R, v * op(D.A) * D.R**2, v * (1 + 2 * reach) * math.exp(reach), p=2)


@pytest.mark.parametrize("seed", SEEDS)
def test_sigmoid(seed):
    """Lemma B.7, with |V| (1 + |A| R |x| / 4) in (iii): the derivative of sigma(Ax.y) in y has Ax in it, not A y."""
    D = Draw(seed)
    a, v = op(D.A), op(D.V)
    field = Attention(DotProduct(D.Q, D.K), Sigmoid(), D.V)
    check(D, at_point(field), v * D.R, v * a * D.R**2 / 4, v * (1 + a * D.R * D.norm_x / 4), p=2)


def test_sigmoid_needs_the_size_of_x():
    """Lemma B.7 (iii) as printed, |V| (1 + |A| R^2) W_2, fails far from the origin."""
    field, x = Attention(DotProduct(), Sigmoid()), torch.tensor([[0.0, 40.0]], dtype=F64)
    clouds = [torch.tensor([[1.0, shift]], dtype=F64) for shift in (0.0, 1e-3)]
    change = (field.at(x, Empirical(clouds[0])) - field.at(x, Empirical(clouds[1]))).norm()
    assert change > 4 * (1 + 1.0) * 1e-3
    assert change <= (1 + 40 / 4) * 1e-3


@pytest.mark.parametrize("name", stability.ATTENTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_flow_is_stable(name, seed):
    """Theorem 3.1: W2 of two solutions below exp(int L + c) W2 of their starts, and the support in the ball of R(t)."""
    rows = stability.growth(name, seed)
    assert rows[0]["growth"] == pytest.approx(1.0)
    for row in rows:
        assert math.log(row["growth"]) <= row["log bound"] + 1e-9
        assert row["radius"] <= 1 + 1e-9
    assert rows[-1]["log bound"] > 0


def test_masked_attention_is_not_continuous_in_w2():
    """Proposition B.14: the measures come together as 1/sqrt(4n), their fields at (3/4, 0) part as n / (3/4)."""
    near, nearer = (stability.masked_row(n) for n in (8, 32))
    for row in (near, nearer):
        assert row["W2"] <= row["printed W2"]
        assert row["difference of the fields"] == pytest.approx(row["printed difference"], rel=0.02)  # 16 n tokens
    assert nearer["W2"] < 0.6 * near["W2"]


@pytest.mark.parametrize("seed", range(5))
def test_masked_flow_is_stable_in_the_conditional_distance(seed):
    """Theorem 3.4: d(mu(t), nu(t)) <= exp((C1 + C2 R^2) t) d(mu_0, nu_0), R = R(t); two points at each position."""
    D, t = Draw(seed, n=8), 0.3
    V, positions = D.V / 2, torch.arange(4, dtype=F64).repeat_interleave(2)[:, None] / 4
    field = Masked(Attention(DotProduct(D.Q / 2, D.K / 2), value=V))
    ends = []
    for cloud in (D.mu, D.nu):
        path = integrate(field, Empirical(torch.cat([positions, cloud / 2], -1)), Uniform(t, 20), rk4)
        assert torch.equal(path[-1].points[:, 0], positions[:, 0])  # the time marginal does not move
        ends.append((path[0].points[:, 1:], path[-1].points[:, 1:]))
    before, after = (conditional(*pair) for pair in zip(*ends, strict=True))
    R = math.exp(op(V) * t) * D.R / 2
    a = op(D.A) / 4
    C1, C2 = op(V) * (1 + 2 * a * R**2) * math.exp(2 * a * R**2), op(V) * a
    assert after <= math.exp((C1 + C2 * R**2) * t) * before
    assert after > 0


def conditional(x, y):
    """The conditional W2 of two clouds with the same pairs of positions [Castin 2025, Definition 3.2]."""
    return math.sqrt(sum(wasserstein(x[i : i + 2], y[i : i + 2], 2) ** 2 for i in range(0, len(x), 2)) / (len(x) / 2))
