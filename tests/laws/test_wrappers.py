"""Fields made from fields."""

import pytest
import torch

from measureflow.attention import (
    Against,
    Attention,
    DotProduct,
    Identity,
    Masked,
    MultiHead,
    NegativeSquaredDistance,
    Relative,
    Sigmoid,
    Sinkhorn,
    Softmax,
    Sum,
    TimeDependent,
    TopK,
)
from measureflow.measures import Empirical, Gaussian
from members import EXACT, FIELDS, NORMALISERS, RANDOM, SCORES, heads
from problems import masses, normal

ROUNDING = {"rtol": 1e-11, "atol": 1e-11}  # float64, a few dozen terms
KINDS = ("tokens", "points", "masses", "batch")


def cloud(kind: str):
    x = normal(6, 2, seed=1)
    return {
        "tokens": x,
        "points": Empirical(x),
        "masses": Empirical(x, masses(6, seed=2)),
        "batch": Empirical(normal(3, 6, 2, seed=1), masses(3, 6, seed=2)),
    }[kind]


def single(parts: Attention, h: int) -> Attention:
    """Head number h on its own."""
    Q, K, V = parts.score.Q.M[h], parts.score.K.M[h], parts.value.M[h]
    return Attention(type(parts.score)(Q, K), parts.normaliser, V)


# --------------------------------------------------------------------------------------------- laws of all fields


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FIELDS)
def test_every_field_moves_every_kind_of_cloud(name, kind):
    mu = cloud(kind)
    velocity = FIELDS[name]()(mu)
    assert velocity.shape == (mu.points if isinstance(mu, Empirical) else mu).shape
    assert torch.isfinite(velocity).all()


@pytest.mark.parametrize("name", FIELDS)
def test_a_batch_is_its_elements_one_by_one(name):
    mu, field = cloud("batch"), FIELDS[name]()
    alone = [field(Empirical(mu.points[i], mu.weights[i])) for i in range(3)]
    torch.testing.assert_close(field(mu), torch.stack(alone), **ROUNDING)


@pytest.mark.parametrize("name", FIELDS)
def test_the_order_of_points_does_not_matter(name, generator):
    mu, order = cloud("masses"), torch.randperm(6, generator=generator)
    field = FIELDS[name]()
    shuffled = field(Empirical(mu.points[order], mu.weights[order]))
    torch.testing.assert_close(shuffled, field(mu)[order], **ROUNDING)


@pytest.mark.parametrize("name", FIELDS)
def test_point_twice_is_mass_two(name):
    x, field = normal(3, 2, seed=1), FIELDS[name]()
    w = torch.tensor([2.0, 1.0, 1.0], dtype=torch.float64) / 4
    torch.testing.assert_close(field(Empirical(x, w)), field(Empirical(x[[0, 0, 1, 2]]))[1:], **ROUNDING)


@pytest.mark.parametrize("name", FIELDS)
def test_a_ragged_batch_is_its_clouds(name):
    """Padding has no say, whatever the field."""
    clouds, field = [normal(n, 2, seed=n) for n in (2, 6, 4)], FIELDS[name]()
    together = field(Empirical.ragged(clouds))
    for i, x in enumerate(clouds):
        torch.testing.assert_close(together[i, : len(x)], field(x), **ROUNDING)


@pytest.mark.parametrize("name", FIELDS)
def test_gradient_in_points(name):
    x, field = normal(3, 2, seed=1).requires_grad_(), FIELDS[name]()
    if "masked" in name:  # a position decides who is seen, which is no smooth matter: move only the rest
        position = torch.arange(3, dtype=torch.float64)[:, None]
        assert torch.autograd.gradcheck(
            lambda y: field(torch.cat([position, y], -1)), (x[:, 1:].detach().requires_grad_(),)
        )
    else:
        assert torch.autograd.gradcheck(field, (x,))


# --------------------------------------------------------------------------------------------------------- heads


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("normaliser", EXACT)
@pytest.mark.parametrize("score", SCORES)
def test_heads_add_up(score, normaliser, kind):
    parts = heads(NORMALISERS[normaliser](), SCORES[score])
    total = sum(single(parts, h)(cloud(kind)) for h in range(3))
    torch.testing.assert_close(MultiHead(parts)(cloud(kind)), total, **ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
def test_output_matrices_write_each_head(kind):
    parts, W = heads(Softmax(), H=3), normal(3, 2, 2, seed=6)
    total = sum(single(parts, h)(cloud(kind)) @ W[h].mT for h in range(3))
    torch.testing.assert_close(MultiHead(parts, W)(cloud(kind)), total, **ROUNDING)
    shared = sum(single(parts, h)(cloud(kind)) @ W[0].mT for h in range(3))
    torch.testing.assert_close(MultiHead(parts, W[0])(cloud(kind)), shared, **ROUNDING)


def test_concatenated_and_averaged_heads():
    parts, x = heads(), normal(6, 2, seed=1)
    each = [single(parts, h)(x) for h in range(3)]
    W = normal(2, 6, seed=8)
    torch.testing.assert_close(MultiHead.concatenated(parts, W)(x), torch.cat(each, -1) @ W.mT, **ROUNDING)
    torch.testing.assert_close(MultiHead.averaged(parts)(x), sum(each) / 3, **ROUNDING)


def test_heads_may_share_what_they_do_not_vary():
    """Only the queries differ: keys and values are the points themselves."""
    Q, x = normal(3, 2, 2, seed=5), normal(4, 6, 2, seed=1)
    total = sum(Attention(DotProduct(Q[h]))(x) for h in range(3))
    torch.testing.assert_close(MultiHead(Attention(DotProduct(Q)))(x), total, **ROUNDING)


def test_narrow_heads_write_back_to_full_width():
    Q, K, V = normal(3, 2, 1, 4, seed=5)  # two heads of width one in four dimensions
    W, x = normal(4, 2, seed=6), normal(6, 4, seed=1)
    each = [Attention(DotProduct(Q[h], K[h]), value=V[h])(x) for h in range(2)]
    torch.testing.assert_close(
        MultiHead.concatenated(Attention(DotProduct(Q, K), value=V), W)(x), torch.cat(each, -1) @ W.mT, **ROUNDING
    )


# -------------------------------------------------------------------------------------------------------- masked


@pytest.mark.parametrize("normaliser", [name for name in EXACT if name not in ("top k", "sinkhorn", "sinkhorn 3")])
@pytest.mark.parametrize("score", SCORES)
def test_masked_is_a_loop_over_prefixes(score, normaliser):
    """[Castin 2025, (2.6)]: token i sees the tokens up to i, as the restriction of one measure.

    TopK is left out because a prefix need not hold the mass it asks for, Sinkhorn because it couples the queries.
    """
    x, w = normal(6, 2, seed=1), masses(6, seed=2) / 6
    position = torch.arange(6, dtype=torch.float64)[:, None] / 6
    inner = Attention(SCORES[score](), NORMALISERS[normaliser](), normal(2, 2, seed=3))
    velocity = Masked(inner)(Empirical(torch.cat([position, x], -1), w))
    prefixes = [inner.at(x[i : i + 1], Empirical(x[: i + 1], w[: i + 1])) for i in range(6)]
    torch.testing.assert_close(velocity[:, 1:], torch.cat(prefixes), **ROUNDING)
    assert (velocity[:, 0] == 0).all()  # nothing moves a position


def test_masked_softmax_of_tokens_is_a_loop_over_prefixes():
    x = normal(2, 6, 2, seed=1)
    position = (torch.arange(6, dtype=torch.float64)[:, None] / 6).expand(2, 6, 1)
    velocity = Masked(Attention())(torch.cat([position, x], -1))
    prefixes = [Attention().at(x[:, i : i + 1], Empirical(x[:, : i + 1])) for i in range(6)]
    torch.testing.assert_close(velocity[..., 1:], torch.cat(prefixes, -2), **ROUNDING)


def test_tokens_at_one_position_see_each_other():
    x = torch.tensor([[0.0, 1.0], [0.0, 3.0], [1.0, 5.0]], dtype=torch.float64)
    blind = Attention(DotProduct([[0.0]], [[0.0]]))
    assert Masked(blind)(x)[:, 1].tolist() == [2.0, 2.0, 3.0]


@pytest.mark.parametrize("normaliser", [Softmax(), Sigmoid(), NORMALISERS["hardmax"](), NORMALISERS["sparsemax"]()])
def test_a_query_that_sees_nothing_stays(normaliser):
    mu = Empirical(torch.tensor([[0.5, 1.0], [0.7, 2.0]], dtype=torch.float64))
    early = torch.tensor([[0.1, 4.0], [0.6, 4.0]], dtype=torch.float64)
    velocity = Masked(Attention(normaliser=normaliser)).at(early, mu)
    assert velocity[0].tolist() == [0.0, 0.0]
    assert velocity[1, 1] != 0


def test_masked_sinkhorn_and_thin_prefixes_say_why_they_cannot():
    x = torch.cat([torch.arange(4, dtype=torch.float64)[:, None], normal(4, 1, seed=1)], -1)
    with pytest.raises(ValueError, match="couples all queries"):
        Masked(Attention(normaliser=Sinkhorn()))(x)
    with pytest.raises(ValueError, match="more mass than the keys have"):
        Masked(Attention(normaliser=TopK(0.5)))(x)


# ------------------------------------------------------------------------------------ relative, against, sum, time


@pytest.mark.parametrize("kind", KINDS)
def test_relative_against_and_sum_by_definition(kind):
    mu, nu = cloud(kind), Empirical(normal(4, 2, seed=9), masses(4, seed=10))
    x = mu.points if isinstance(mu, Empirical) else mu
    a, b = Attention(), Attention(NegativeSquaredDistance(), Sigmoid())
    torch.testing.assert_close(Relative(a)(mu), a(mu) - x, **ROUNDING)
    torch.testing.assert_close(Against(b, nu)(mu), b.at(x, nu), **ROUNDING)
    torch.testing.assert_close(Sum(a, b)(mu), a(mu) + b(mu), **ROUNDING)
    torch.testing.assert_close(Sum(a, b, coefficients=[2.0, -1.0])(mu), 2 * a(mu) - b(mu), **ROUNDING)
    torch.testing.assert_close(Relative(Against(b, nu))(mu), b.at(x, nu) - x, **ROUNDING)
    both = Sum(Against(a, nu), Relative(b))(mu)
    torch.testing.assert_close(both, a.at(x, nu) + b(mu) - x, **ROUNDING)


def test_against_a_gaussian_uses_its_closed_form():
    nu = Gaussian(torch.tensor([1.0, -1.0], dtype=torch.float64), torch.eye(2, dtype=torch.float64))
    x = normal(4, 2, seed=1)
    torch.testing.assert_close(Against(Attention(), nu)(x), nu.mean + x, **ROUNDING)  # alpha + Sigma A x
    M, c = Against(Attention(), nu)(Gaussian(torch.zeros(2), 5 * torch.eye(2)))
    assert torch.equal(M, torch.eye(2, dtype=torch.float64))
    assert torch.equal(c, nu.mean)


def test_relative_and_sum_on_a_gaussian():
    mu = Gaussian(normal(2, seed=1), torch.eye(2, dtype=torch.float64))
    a, b = Attention(), Attention(normaliser=Identity())
    for field, M, c in (
        (Relative(a), a(mu).M - torch.eye(2), a(mu).c),
        (Sum(a, b, coefficients=[2.0, -1.0]), 2 * a(mu).M - b(mu).M, 2 * a(mu).c - b(mu).c),
    ):
        torch.testing.assert_close(field(mu).M, M, **ROUNDING)
        torch.testing.assert_close(field(mu).c, c, **ROUNDING)


def test_a_time_dependent_field_asks_for_its_time():
    field = TimeDependent(lambda t: Attention(normaliser=Softmax(1 + t)))
    x = normal(4, 2, seed=1)
    torch.testing.assert_close(field.frozen(1.0)(x), Attention(normaliser=Softmax(2.0))(x), **ROUNDING)
    for mu in (x, Empirical(x), Gaussian(torch.zeros(2), torch.eye(2))):
        with pytest.raises(ValueError, match="without a time"):
            field(mu)


def test_every_normaliser_is_in_the_list():
    """A normaliser that is exported but not listed would escape every law."""
    from measureflow import attention

    exported = {getattr(attention, name) for name in attention.__all__}
    kinds = {k for k in exported if isinstance(k, type) and issubclass(k, attention.Normaliser)}
    listed = {type(make()) for make in NORMALISERS.values()}
    assert kinds - {attention.Normaliser} == listed
    scores = {k for k in exported if isinstance(k, type) and issubclass(k, attention.Score)}
    assert scores - {attention.Score} == set(SCORES.values())
    assert set(RANDOM) <= set(NORMALISERS)
