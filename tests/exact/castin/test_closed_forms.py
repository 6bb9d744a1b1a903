"""Oracles of Castin 2025, section 4: flows of Gaussians whose answer is known."""

import math

import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import brentq

from measureflow.attention import (
    Attention,
    DotProduct,
    MultiHead,
    NegativeSquaredDistance,
    Sinkhorn,
    SoftmaxExpansion,
)
from measureflow.flows import Outcome, Uniform, dopri5, integrate, numerical_rank, rk4
from measureflow.flows.state import velocity
from measureflow.measures import Empirical, Gaussian
from problems import GROWN, TIGHT, seeded

F64 = torch.float64


def centred(S):
    return Gaussian(torch.zeros_like(S[..., 0]), S)


def positive(*shape, seed=0):
    X = torch.randn(*shape, generator=seeded(seed), dtype=F64)
    return X @ X.mT / shape[-1] + 0.1 * torch.eye(shape[-1], dtype=F64)


def one_dimensional(score, normaliser, a, k, v):
    """Attention in dimension one with a = q k."""
    M = [[a / k]], [[k]]
    return Attention(score(*(torch.tensor(m, dtype=F64) for m in M)), normaliser, torch.tensor([[v]], dtype=F64))


@pytest.mark.parametrize(("a", "v"), [(-0.7, 1.3), (0.5, -2.0), (0.4, 0.9)])
def test_softmax_in_one_dimension(a, v):
    """Proposition 4.3: s(t) = 1 / (1/s0 - 2 v a t), with blow-up at 1 / (2 v a s0)."""
    s0 = 0.8
    path = integrate(
        one_dimensional(DotProduct, None, a, 1.0, v), centred(torch.tensor([[s0]], dtype=F64)), [0.5], TIGHT
    )
    assert float(path[-1].covariance) == pytest.approx(1 / (1 / s0 - 2 * v * a * 0.5), rel=1e-8)
    far = integrate(
        one_dimensional(DotProduct, None, a, 1.0, v), centred(torch.tensor([[s0]], dtype=F64)), [50.0], dopri5
    )
    expected = 1 / (2 * v * a * s0) if a * v > 0 else math.inf
    assert float(far.blow_up_time) == pytest.approx(expected, rel=1e-6)


def commuting(seed, sign):
    """V, Sigma_0 and A such that V commutes with both Sigma_0 and V A + A^T V^T, all three far from diagonal."""
    O, _ = torch.linalg.qr(torch.randn(3, 3, generator=seeded(seed), dtype=F64))
    blocks = torch.diag(torch.tensor([2.0, 2.0, -1.0], dtype=F64))  # V has a double eigenvalue: room inside it
    within = torch.block_diag(positive(2, 2, seed=seed), torch.tensor([[0.6]], dtype=F64))
    symmetric = torch.block_diag(positive(2, 2, seed=seed + 1), torch.tensor([[0.9]], dtype=F64))
    skew = torch.zeros(3, 3, dtype=F64)
    skew[0, 2], skew[2, 0] = 0.3, 0.6  # drops out of V A + A^T V^T: 2 * 0.3 - 1 * 0.6 = 0
    A = sign * torch.linalg.inv(blocks) @ symmetric + skew
    return O @ blocks @ O.T, O @ within @ O.T, O @ A @ O.T


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_softmax_closed_form(sign):
    """Proposition 4.4: Sigma(t) = (Sigma_0^-1 - t (V A + A^T V^T))^-1 until it blows up."""
    V, S0, A = commuting(4, sign)
    B = V @ A + A.T @ V.T
    assert torch.allclose(V @ B, B @ V, atol=1e-12)
    field = Attention(DotProduct(A), value=V)
    t = 0.05
    path = integrate(field, centred(S0), [t], TIGHT)
    assert torch.allclose(path[-1].covariance, torch.linalg.inv(torch.linalg.inv(S0) - t * B), rtol=1e-7, atol=1e-9)
    root = torch.linalg.cholesky(S0)
    fastest = torch.linalg.eigvalsh(root.T @ B @ root)[-1]
    expected = 1 / float(fastest) if fastest > 1e-9 else math.inf
    assert float(integrate(field, centred(S0), [1e3], dopri5).blow_up_time) == pytest.approx(expected, rel=1e-6)


def test_low_rank_limit_when_parameters_commute():
    """Proposition 4.4, case 1: the limit has the rank of the kernel of A + A^T, for V = I."""
    Q = torch.randn(2, 5, generator=seeded(1), dtype=F64)
    path = integrate(Attention(DotProduct(Q, -Q)), centred(positive(5, 5)), [1e6], dopri5)
    assert int(numerical_rank(path[-1].covariance, 1e-4)) == 3
    explicit = torch.linalg.inv(torch.linalg.inv(positive(5, 5)) + 2e6 * Q.T @ Q)
    assert torch.allclose(path[-1].covariance, explicit, atol=1e-7)


def implicit_time(s, s0, rate):
    return quad(lambda x: 1 / rate(x), s0, s, epsabs=1e-13, epsrel=1e-13)[0]


ONE_DIMENSIONAL = {
    "L2 (Proposition 4.13)": (
        lambda a, k, v: one_dimensional(NegativeSquaredDistance, None, a, k, v),
        lambda s, a, k, v: 4 * a * v * s**2 / (1 + 2 * k**2 * s),
    ),
    "Sinkhorn (Proposition 4.17)": (
        lambda a, k, v: one_dimensional(DotProduct, Sinkhorn(1.0), a, k, v),
        lambda s, a, k, v: v / a * (math.sqrt(4 * a**2 * s**2 + 1) - 1),
    ),
}


@pytest.mark.parametrize("name", ONE_DIMENSIONAL)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_one_dimensional_rates_and_limits(name, sign):
    make, rate = ONE_DIMENSIONAL[name]
    a, k, v, s0 = 0.7, 1.1, 0.8 * sign, 0.9
    field = make(a, k, v)
    s = torch.tensor([[s0]], dtype=F64)
    assert float(velocity(centred(s), field)[1]) == pytest.approx(rate(s0, a, k, v), rel=1e-12)
    after = float(integrate(field, centred(s), [1.5], TIGHT)[-1].covariance)
    edges = (1e-3, s0) if sign < 0 else (s0, 1e3)
    exact = brentq(lambda end: implicit_time(end, s0, lambda x: rate(x, a, k, v)) - 1.5, *edges, xtol=1e-13)
    assert after == pytest.approx(exact, rel=1e-7)
    far = integrate(field, centred(s), [300.0], dopri5)
    assert far.divergence == ("none" if sign < 0 else "infinite time")
    assert sign > 0 or float(far[-1].covariance) < 0.01


def test_rank_one_stays_rank_one():
    """Lemma 4.6: Sigma = u u^T with u' = (u^T A u) V u."""
    A, V = (0.4 * torch.randn(4, 4, generator=seeded(s), dtype=F64) for s in (2, 3))
    u = torch.randn(4, generator=seeded(5), dtype=F64)
    path = integrate(Attention(DotProduct(A), value=V), centred(u[:, None] * u), [0.5], TIGHT)
    h = 0.5 / 2000
    for _ in range(2000):  # a Runge-Kutta loop of its own for the vector
        f = lambda u: (u @ A @ u) * (V @ u)  # noqa: E731
        k1 = f(u)
        k2 = f(u + h / 2 * k1)
        k3 = f(u + h / 2 * k2)
        u = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + f(u + h * k3))
    S = path[-1].covariance
    assert torch.allclose(S, u[:, None] * u, rtol=1e-7, atol=1e-9)
    assert torch.linalg.eigvalsh(S)[:-1].abs().max() < 1e-9 * S.abs().max()


def test_stationary_points():
    """Lemma 4.7: u u^T is stationary where V u = 0 or u^T A u = 0, and nowhere else."""
    A = torch.tensor([[1.0, 0.4], [-0.2, -1.0]], dtype=F64)
    V = torch.tensor([[1.0, 1.0], [2.0, 2.0]], dtype=F64)
    isotropic = torch.tensor([1.0, (0.2 + math.sqrt(4.04)) / 2], dtype=F64)  # the root of 1 + 0.2 r - r^2
    kernel, other = torch.tensor([1.0, -1.0], dtype=F64), torch.tensor([1.0, 0.3], dtype=F64)
    speed = [
        velocity(centred(u[:, None] * u), Attention(DotProduct(A), value=V))[1].norm()
        for u in (isotropic, kernel, other)
    ]
    assert speed[0] < 1e-12
    assert speed[1] < 1e-12
    assert speed[2] > 0.1


@pytest.mark.parametrize("signs", [(1, -1, -1), (1, 1, -1, -1, 0), (1, 1, 1, -1)])
def test_rank_of_stationary_points(signs):
    """Proposition 4.8: S A S = 0 forces rank S <= dim ker A + min(n+, n-), and that rank is reached."""
    signs = torch.tensor(signs, dtype=F64)
    plus, minus, null = ((signs == s).nonzero().flatten().tolist() for s in (1, -1, 0))
    d, most = len(signs), len(null) + min(len(plus), len(minus))
    pairs = [torch.eye(d, dtype=F64)[i] + torch.eye(d, dtype=F64)[j] for i, j in zip(plus, minus, strict=False)]
    basis = torch.stack(pairs + [torch.eye(d, dtype=F64)[i] for i in null])
    O, _ = torch.linalg.qr(torch.randn(d, d, generator=seeded(6), dtype=F64))
    A, S = O @ torch.diag(signs) @ O.T, O @ basis.T @ basis @ O.T
    assert int(numerical_rank(S)) == most
    assert velocity(centred(S), Attention(DotProduct(A)))[1].norm() < 1e-12
    for other in O.T:  # one more direction, and it moves
        wider = S + other[:, None] * other
        assert int(numerical_rank(wider)) == most or velocity(centred(wider), Attention(DotProduct(A)))[1].norm() > 1e-3


@pytest.mark.parametrize("field", ["softmax", "l2", "multi-head"])
def test_negative_definite_scores_send_everything_to_zero(field):
    """Section 4.5, behaviour 1: A + A^T < 0, but for a positive V only; see the next test."""
    Q, V = torch.randn(2, 2, generator=seeded(8), dtype=F64), positive(2, 2, seed=9)
    fields = {
        "softmax": Attention(DotProduct(Q, -Q), value=V),
        "l2": Attention(NegativeSquaredDistance(Q, -Q), value=V),
        "multi-head": MultiHead(Attention(DotProduct(Q[:, None], -Q[:, None]), value=V.expand(2, 2, 2).clone())),
    }
    S0 = torch.stack([positive(2, 2, seed=s) for s in range(20)])
    path = integrate(fields[field], centred(S0), [1e5], dopri5)
    assert path.divergence == ["none"] * 20
    assert torch.linalg.eigvalsh(path[-1].covariance)[:, -1].max() < 1e-2


def test_to_zero_depends_on_v():
    """Section 4.5 says "independently of V". With a Gaussian V most runs blow up, with V V^T in its place none."""
    Q, V = (torch.randn(60, 2, 2, generator=seeded(seed), dtype=F64) for seed in (17, 18))
    S0 = positive(60, 2, 2, seed=19)
    paths = [integrate(Attention(DotProduct(Q, -Q), value=value), centred(S0), [1e3], GROWN) for value in (V, V @ V.mT)]
    assert int(torch.isfinite(paths[0].blow_up_time).sum()) > 30
    assert paths[1].outcome == [Outcome.FINISHED] * 60


def test_l2_never_blows_up_where_softmax_does():
    """Lemma 4.12, on 30 random positive definite A, K regular."""
    K = torch.eye(3, dtype=F64) + 0.3 * torch.randn(30, 3, 3, generator=seeded(10), dtype=F64)
    Q = K + 0.2 * torch.randn(30, 3, 3, generator=seeded(11), dtype=F64)
    S0 = positive(30, 3, 3, seed=12)
    softmax = integrate(Attention(DotProduct(Q, K)), centred(S0), [40.0], GROWN)
    l2 = integrate(Attention(NegativeSquaredDistance(Q, K)), centred(S0), [40.0], GROWN)
    assert (torch.isfinite(softmax.blow_up_time)).sum() >= 28
    assert torch.isinf(l2.blow_up_time).all()
    for path in (softmax, l2):
        assert torch.isfinite(path[-1].covariance).all()


def test_particles_follow_the_gaussian():
    """Mean-field limit: particles against the covariance ODE, the error falling as n grows like n^(-1/2)."""
    A = torch.tensor([[-0.5, 0.2], [0.0, -0.3]], dtype=F64)
    field, start = Attention(DotProduct(A)), Gaussian(torch.tensor([0.3, -0.2], dtype=F64), positive(2, 2, seed=13))
    exact = integrate(field, start, Uniform(1.0, 5), rk4)[-1]
    errors = []
    for size in (50, 800):
        runs = [start.sample(size, seeded(s)) for s in range(8)]
        cloud = Empirical(torch.stack([run.points for run in runs]))
        end = integrate(field, cloud, Uniform(1.0, 5), rk4)[-1]
        errors.append(float((end.covariance - exact.covariance).norm(dim=(-2, -1)).square().mean().sqrt()))
    assert 2 < errors[0] / errors[1] < 8  # 4 is the square root of 16; 8 runs leave a factor of two


def quadrature(mean, S):
    """A Gauss-Hermite cloud of a Gaussian in two dimensions: no sampling error."""
    import numpy as np

    x, w = np.polynomial.hermite_e.hermegauss(60)
    grid = torch.tensor([(a, b) for a in x for b in x], dtype=F64)
    masses = torch.tensor([a * b for a in w for b in w], dtype=F64)
    return Empirical(mean + grid @ torch.linalg.cholesky(S).T, masses / masses.sum())


PRINTED_Q = torch.tensor([[0.8, 0.1], [-0.3, 0.6]], dtype=F64)
PRINTED_K = torch.tensor([[0.5, -0.4], [0.2, 0.9]], dtype=F64)  # not the identity, where print and correction agree
PRINTED_V = torch.tensor([[1.1, 0.3], [-0.2, 0.7]], dtype=F64)


def test_quadrature_follows_the_gaussian():
    """The field of the cloud agrees with the closed form to 1e-9, Q, K and V all different."""
    S = torch.tensor([[0.5, 0.2], [0.2, 0.4]], dtype=F64)
    mean = torch.tensor([0.2, -0.1], dtype=F64)
    cloud = quadrature(mean, S)
    probe = torch.randn(7, 2, generator=seeded(14), dtype=F64)
    for field in (
        Attention(DotProduct(PRINTED_Q, PRINTED_K), value=PRINTED_V),
        Attention(NegativeSquaredDistance(PRINTED_Q, PRINTED_K), value=PRINTED_V),
        Attention(DotProduct(PRINTED_Q, PRINTED_K), SoftmaxExpansion(0.5), PRINTED_V),
    ):
        exact = field(Gaussian(mean, S)).at(probe)
        assert torch.allclose(field.at(probe, cloud), exact, atol=1e-9)


def test_the_second_term_of_the_l2_equation_has_the_transposed_inverse():
    """(4.3) and Lemma 4.12 against the covariance of a cloud that the attention moves: the print is off."""
    S = torch.tensor([[0.5, 0.2], [0.2, 0.4]], dtype=F64)
    cloud = quadrature(torch.zeros(2, dtype=F64), S)
    field = Attention(NegativeSquaredDistance(PRINTED_Q, PRINTED_K), value=PRINTED_V)
    moved = cloud.weights[:, None] * field(cloud)
    measured = moved.T @ cloud.points + cloud.points.T @ moved
    I, KK, A = torch.eye(2, dtype=F64), PRINTED_K.T @ PRINTED_K, PRINTED_K.T @ PRINTED_Q
    first = 2 * PRINTED_V @ S @ torch.linalg.inv(I + 2 * KK @ S) @ A @ S
    printed = first + 2 * S @ A.T @ torch.linalg.inv(I + 2 * KK @ S) @ S @ PRINTED_V.T
    assert torch.allclose(measured, first + first.T, atol=1e-9)
    assert torch.allclose(velocity(centred(S), field)[1], measured, atol=1e-9)
    assert (printed - measured).abs().max() > 1e-2
    assert not torch.allclose(printed, printed.T, atol=1e-3)  # no covariance can follow it


def test_l2_attention_blows_up_where_k_is_singular():
    """Lemma 4.12 claims a global solution for every K; here b' = 2 b^2 / (1 + 2a), a = 1, so b = 1 / (1/b0 - 2t/3)."""
    K, Q, V = ([[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]])
    K, Q, V = (torch.tensor(M, dtype=F64) for M in (K, Q, V))
    S0 = torch.tensor([[1.0, 0.5], [0.5, 1.0]], dtype=F64)
    field = Attention(NegativeSquaredDistance(Q, K), value=V)
    path = integrate(field, centred(S0), [2.0], TIGHT)
    assert float(path[-1].covariance[0, 1]) == pytest.approx(1 / (2 - 2 * 2.0 / 3), rel=1e-7)
    assert float(integrate(field, centred(S0), [10.0], GROWN).blow_up_time) == pytest.approx(3.0, rel=1e-3)
    regular = Attention(NegativeSquaredDistance(Q, K + 0.3 * torch.eye(2, dtype=F64)), value=V)
    assert math.isinf(float(integrate(regular, centred(S0), [10.0], GROWN).blow_up_time))
