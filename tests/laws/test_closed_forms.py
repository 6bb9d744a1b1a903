"""Affine fields on Gaussians, against integrals, printed formulas and particles."""

import itertools

import pytest
import torch

from measureflow.attention import (
    Affine,
    Attention,
    DotProduct,
    Identity,
    MultiHead,
    NegativeSquaredDistance,
    Sinkhorn,
    Softmax,
    SoftmaxExpansion,
)
from measureflow.attention.closed_forms import CLOSED_FORMS, closed_form
from measureflow.flows import integrate, rk4
from measureflow.measures import Gaussian
from measureflow.measures.gaussian import matrix_sqrt
from members import NORMALISERS, SCORES
from problems import normal, quadrature, random_covariance

ROUNDING = {"rtol": 1e-11, "atol": 1e-11}  # float64 products of a few small matrices


def matrices(d: int, seed: int = 0):
    return 0.5 * normal(3, d, d, seed=seed)


def gaussian(d: int, seed: int = 20, mean: float = 1.0) -> Gaussian:
    return Gaussian(mean * normal(d, seed=seed), random_covariance(d=d, seed=seed + 1))


ROW_FORMS = {
    "dot softmax": (DotProduct, Softmax(0.7)),
    "dot identity": (DotProduct, Identity()),
    "dot expansion": (DotProduct, SoftmaxExpansion(0.5)),
    "distance softmax": (NegativeSquaredDistance, Softmax(0.7)),
}
SINKHORN_FORMS = {"dot sinkhorn": DotProduct, "distance sinkhorn": NegativeSquaredDistance}


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("name", ROW_FORMS)
def test_equals_the_integral(name, d):
    """The field of Gauss-Hermite nodes is the field of the Gaussian, for fields that are integrals over keys."""
    score, normaliser = ROW_FORMS[name]
    Q, K, V = matrices(d)
    field, mu, x = Attention(score(Q, K), normaliser, V), gaussian(d), normal(6, d, seed=30)
    # e^{gamma s} is entire: 60 nodes an axis integrate it to rounding
    torch.testing.assert_close(field(mu).at(x), field.at(x, quadrature(mu, 60)), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", SINKHORN_FORMS)
def test_sinkhorn_equals_its_discretised_self(name):
    """The same for Sinkhorn, whose queries are nodes too: the outermost ones see a kernel the nodes cannot resolve."""
    field = Attention(SINKHORN_FORMS[name]([[0.8]], [[0.6]]), Sinkhorn(1.5, tol=1e-13), [[-0.7]])
    mu = gaussian(1)
    nodes = quadrature(mu, 60)
    inner = (nodes.points - mu.mean).squeeze(-1).abs() < 3 * mu.covariance.sqrt().item()
    assert inner.sum() > 10
    torch.testing.assert_close(field(mu).at(nodes.points)[inner], field(nodes)[inner], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_sinkhorn_equals_the_printed_formula(d, epsilon):
    r"""[Castin 2025, Lemma 4.14] as it is printed, with its inverses; its further 1/epsilon belongs to V."""
    Q, K, V = matrices(d, seed=d)
    mu = gaussian(d)
    A, S, alpha, eye = K.mT @ Q, mu.covariance, mu.mean, torch.eye(d, dtype=torch.float64)
    root = matrix_sqrt(S)
    inner = matrix_sqrt(root @ A.mT @ S @ A @ root + epsilon**2 / 4 * eye)
    C = root @ inner @ torch.linalg.inv(root) - epsilon / 2 * eye
    linear = V @ torch.linalg.inv(A.mT) @ torch.linalg.inv(S) @ C
    field = Attention(DotProduct(Q, K), Sinkhorn(epsilon), V)
    # the printed form divides by A and Sigma, which costs their condition numbers
    torch.testing.assert_close(field(mu).M, linear, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(field(mu).c, V @ alpha - linear @ alpha, rtol=1e-10, atol=1e-10)


def test_sinkhorn_on_a_line_is_proposition_4_17():
    r""":math:`s' = \frac{v}{a}(\sqrt{4a^2s^2 + 1} - 1)` at epsilon = 1."""
    for a, v, s in itertools.product((0.4, -1.2), (1.0, -0.5), (0.3, 2.0)):
        mu = Gaussian(torch.zeros(1), torch.tensor([[s]], dtype=torch.float64))
        M = Attention(DotProduct([[a]], [[1.0]]), Sinkhorn(1.0), [[v]])(mu).M
        expected = v / a * ((4 * a * a * s * s + 1) ** 0.5 - 1)
        assert 2 * M.item() * s == pytest.approx(expected, rel=1e-6)  # the matrices of lists are single precision


def test_distance_sinkhorn_is_dot_sinkhorn_at_half_epsilon():
    Q, K, V = matrices(2)
    dot = Attention(DotProduct(Q, K), Sinkhorn(1.0), V)(gaussian(2))
    distance = Attention(NegativeSquaredDistance(Q, K), Sinkhorn(2.0), V)(gaussian(2))
    torch.testing.assert_close(distance.M, dot.M, **ROUNDING)


def test_softmax_equals_lemma_4_1_and_distance_lemma_4_10_as_printed():
    (Q, K, V), mu, x = matrices(3), gaussian(3), normal(4, 3, seed=30)
    S, alpha = mu.covariance, mu.mean
    softmax = (alpha + x @ (S @ K.mT @ Q).mT) @ V.mT
    torch.testing.assert_close(Attention(DotProduct(Q, K), value=V)(mu).at(x), softmax, **ROUNDING)
    precision = torch.linalg.inv(S)
    inverse = torch.linalg.inv(precision + 2 * K.mT @ K)
    distance = (precision @ alpha + 2 * x @ (K.mT @ Q).mT) @ inverse.mT @ V.mT
    field = Attention(NegativeSquaredDistance(Q, K), value=V)
    torch.testing.assert_close(field(mu).at(x), distance, rtol=1e-10, atol=1e-10)  # it inverts Sigma


ALL_FORMS = ROW_FORMS | {name: (score, Sinkhorn(1.5, tol=1e-8)) for name, score in SINKHORN_FORMS.items()}


@pytest.mark.parametrize("name", ALL_FORMS)
def test_particles_come_near_at_the_rate_of_a_sample(name):
    """The error of n points, seen from ten of them near the middle, falls as 1/sqrt(n)."""
    score, normaliser = ALL_FORMS[name]
    field, mu = Attention(score(*matrices(2)[:2]), normaliser), gaussian(2)
    middle = mu.mean + 0.3 * normal(10, 2, seed=1)  # the outermost points see a mean of heavy tails, with no such rate
    batch, errors = Gaussian(mu.mean.expand(24, 2), mu.covariance.expand(24, 2, 2)), []
    generator = torch.Generator().manual_seed(1)
    for n in (15, 60, 240):
        sample = batch.sample(n, generator).points
        sample[:, :10] = middle
        velocity = field(sample)[:, :10]
        errors.append((velocity - field(mu).at(middle)).square().mean().sqrt().log2().item())
    rate = (errors[2] - errors[0]) / 4
    # two dozen samples give the log2 of an error to about 0.25, hence the slope over four octaves to 0.09;
    # the ten planted points pull the smallest samples to the middle, which steepens it a little
    assert -0.75 < rate < -0.35


@pytest.mark.parametrize("name", ALL_FORMS)
def test_heads_add_up_on_a_gaussian(name):
    score, normaliser = ALL_FORMS[name]
    Q, K, V = 0.5 * normal(3, 4, 2, 2, seed=3)  # four heads
    W = normal(4, 2, 2, seed=4)
    parts = Attention(score(Q, K), normaliser, V)
    batch = Gaussian(normal(3, 2, seed=5), random_covariance(3, d=2, seed=6))
    for mu in (gaussian(2), batch):
        single = [Attention(score(Q[h], K[h]), normaliser, V[h])(mu) for h in range(4)]
        for field, weights in ((MultiHead(parts), torch.eye(2).double().expand(4, 2, 2)), (MultiHead(parts, W), W)):
            M = sum(w @ part.M for w, part in zip(weights, single, strict=True))
            c = sum((w @ part.c[..., None]).squeeze(-1) for w, part in zip(weights, single, strict=True))
            torch.testing.assert_close(field(mu).M, M, **ROUNDING)
            torch.testing.assert_close(field(mu).c, c, **ROUNDING)


@pytest.mark.parametrize("name", ALL_FORMS)
def test_a_batch_is_its_elements_and_matrices_may_be_batched(name):
    score, normaliser = ALL_FORMS[name]
    Q, K, V = 0.5 * normal(3, 5, 2, 2, seed=3)  # one field for each element
    mean, S = normal(5, 2, seed=5), random_covariance(5, d=2, seed=6)
    together = Attention(score(Q, K), normaliser, V)(Gaussian(mean, S))
    for i in range(5):
        alone = Attention(score(Q[i], K[i]), normaliser, V[i])(Gaussian(mean[i], S[i]))
        torch.testing.assert_close(Affine(together.M[i], together.c[i]), alone, **ROUNDING)


@pytest.mark.parametrize("name", ALL_FORMS)
@pytest.mark.parametrize("rank", [0, 1])
def test_a_degenerate_covariance_is_the_limit_of_regular_ones(name, rank):
    score, normaliser = ALL_FORMS[name]
    field = Attention(score(*matrices(3)[:2]), normaliser)
    u = normal(3, rank, seed=7)
    S, eye = u @ u.mT, torch.eye(3, dtype=torch.float64)
    flat = field(Gaussian(normal(3, seed=8), S))
    thick = field(Gaussian(normal(3, seed=8), S + 1e-9 * eye))
    torch.testing.assert_close(flat.M, thick.M, rtol=0, atol=1e-7)  # M is smooth in S, with slopes below a hundred
    torch.testing.assert_close(flat.c, thick.c, rtol=0, atol=1e-7)


def test_a_point_mass_attends_to_itself():
    mu = Gaussian(torch.tensor([1.0, -2.0]), torch.zeros(2, 2))
    for score, normaliser in ((DotProduct(), Softmax()), (NegativeSquaredDistance(), Sinkhorn())):
        M, c = Attention(score, normaliser)(mu)
        assert (M == 0).all()
        torch.testing.assert_close(c, mu.mean)


@pytest.mark.parametrize("normaliser", NORMALISERS)
@pytest.mark.parametrize("score", SCORES)
def test_asking_for_one_that_does_not_exist_says_so(score, normaliser):
    mu, a, b = gaussian(2), SCORES[score](), NORMALISERS[normaliser]()
    if (type(a), type(b)) in CLOSED_FORMS:
        assert isinstance(closed_form(a, b, mu), Affine)
        return
    with pytest.raises(ValueError, match=f"{type(a).__name__} with {type(b).__name__} .* no closed form"):
        Attention(a, b)(mu)


def test_a_value_that_is_no_matrix_says_so():
    with pytest.raises(ValueError, match="value is a Tanh, not a matrix"):
        Attention(value=torch.nn.Tanh())(gaussian(2))


STABLE = {  # A negative: the cloud contracts, and n points follow their limit for all times
    "softmax": Attention(DotProduct(-torch.eye(2).double()), Softmax(0.5)),
    "distance": Attention(NegativeSquaredDistance(-torch.eye(2).double()), Softmax(0.5)),
}


@pytest.mark.parametrize("name", STABLE)
def test_flows_of_particles_converge_to_the_flow_of_the_gaussian(name):
    """At time 1, over 60 samples of each size: the covariance is off by 1/sqrt(n)."""
    S0 = torch.tensor([[1.0, 0.3], [0.3, 0.5]], dtype=torch.float64)
    batch = Gaussian(torch.zeros(60, 2, dtype=torch.float64), S0.expand(60, 2, 2))
    limit = integrate(STABLE[name], batch, [0.25] * 4, rk4)[-1].covariance[0]
    generator, errors = torch.Generator().manual_seed(2), []
    for n in (25, 100, 400):
        end = integrate(STABLE[name], batch.sample(n, generator), [0.25] * 4, rk4)[-1]
        errors.append((end.covariance - limit).square().mean().sqrt().log2().item())
    rate = (errors[2] - errors[0]) / 4
    assert -0.65 < rate < -0.35  # sixty samples give the slope to about 0.04
    assert errors[2] < -5  # and the limit is the right one: within 1/32 at n = 400
