"""Lemmas A.1, A.2 and B.1, the slips of the print, and the failure signatures of He's construction."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from measureflow.attention import Hardmax, Identity, Softmax
from measureflow.circuits import approximate, em_transformer
from measureflow.circuits.he.layers import AttentionLayer, FullyConnected, Heads, Transformer, gated, linear
from measureflow.circuits.he.sigmoid_heads import sigmoid_heads
from measureflow.circuits.he.stream import Design
from measureflow.circuits.textbook_em import lloyd_path


def softened(x, delta=0.5):
    return (x.square().sum(-1) + delta**2).sqrt()


@pytest.mark.parametrize("d", [2, 4])
def test_sup_error_falls_at_least_as_fast_as_the_lemma(d):
    heads = np.array([32, 64, 128, 256])
    errors = [approximate(softened, int(M), 2.0, dimension=d, even=True).error for M in heads]
    slope = np.polyfit(np.log(heads), np.log(errors), 1)[0]
    theory = np.polyfit(np.log(heads), 0.5 * np.log(np.log(heads) / heads), 1)[0]
    assert slope < theory < 0


def test_approximate_takes_functions_that_are_not_even():
    g = approximate(lambda x: torch.sin(3 * x[:, 0]) + x[:, 1], 128, 1.0, dimension=2)
    x = torch.rand(500, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 0.5
    assert float((g(x) - torch.sin(3 * x[:, 0]) - x[:, 1]).abs().max()) <= g.error < 1e-2


def test_even_means_even():
    g = approximate(softened, 32, 1.0, dimension=3, even=True)
    x = torch.randn(50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(g(x), g(-x), atol=1e-12, rtol=0)


def test_approximate_names_bad_arguments():
    for settings, words in [
        ({"n_heads": 0, "radius": 1.0}, "n_heads"),
        ({"n_heads": 4, "radius": -1.0}, "radius"),
        ({"n_heads": 4, "radius": 1.0, "dimension": 0}, "dimension"),
        ({"n_heads": 4, "radius": 1.0, "inner_radius": 2.0}, "inner_radius"),
        ({"n_heads": 4, "radius": 1.0, "error": 1e-9}, "Lemma A.1"),
    ]:
        with pytest.raises(ValueError, match=words):
            approximate(softened, **settings)


def test_softmax_heads_are_sigmoids_exactly():
    """Lemma A.2: with log(N - 1), the number of other tokens, not log d as printed."""
    design = Design(2, 3, 30, 1, 1.0, 0.1, 2.0, None)
    g = approximate(softened, 16, 2.0, dimension=3, even=True)
    s = design.slots
    layer = AttentionLayer(sigmoid_heads(design, g, s.take("copy0"), s.put("norm", slice(1))))
    h = torch.zeros(30, s.width, dtype=torch.float64)
    x = torch.randn(30, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    h[:, s["copy0"]], h[:3, s["p2"]], h[:, s["one"]] = x, torch.eye(3).double(), 1.0
    written = layer(h)[:, s["norm"]]
    torch.testing.assert_close(written[:, 0] + g.constant, g(x), atol=1e-11, rtol=0)
    assert not written[:, 1].any()


@given(
    st.lists(st.integers(-8, 8), min_size=1, max_size=8),
    st.floats(0.1, 20.0),
)
def test_softmax_to_hardmax_gap_is_below_lemma_b1(values, beta):
    r"""|SoftMax(beta v) - Hardmax(v)|_2 <= ((d - n) + (d - n)^2/n^3)^(1/2) exp(-beta Delta), n ties, Delta the gap.

    The print defines Delta by the maximum over the tied entries, which is zero; it is over the others.
    """
    v = torch.tensor(values, dtype=torch.float64) / 4
    best = v.max()
    others = v[v < best]
    n, d = int((v == best).sum()), len(v)
    delta = float(best - others.max()) if len(others) else 0.0
    bound = math.sqrt((d - n) + (d - n) ** 2 / n**3) * math.exp(-beta * delta)
    gap = float((Softmax(beta)(v[None]) - Hardmax()(v[None])).norm())
    assert gap <= bound + 1e-15


def _heads(seed, M=3, D=5):
    draw = lambda *shape: torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)  # noqa: E731
    return Heads(draw(M, 2, D), draw(M, 2, D) + 1, draw(M, 4, D) - 1, draw(M, D, 4))


@pytest.mark.parametrize("normaliser", [Softmax(), Identity()], ids=["definition 2.1", "definition 2.2"])
def test_attention_layers_are_the_definitions_with_tokens_as_columns(normaliser):
    heads = _heads(0)
    H = torch.randn(5, 7, generator=torch.Generator().manual_seed(9), dtype=torch.float64)  # D x N, as in the paper
    expected = H.clone()
    for m in range(3):
        scores = (heads.Q[m] @ H).T @ (heads.K[m] @ H)
        weights = torch.softmax(scores, 0) if isinstance(normaliser, Softmax) else scores  # columns sum to one
        expected += heads.write[m] @ heads.read[m] @ H @ weights
    torch.testing.assert_close(
        H + AttentionLayer(heads, normaliser=normaliser)(H.T).T, expected, atol=1e-10, rtol=1e-12
    )


def test_transformer_and_its_norm_are_the_definitions():
    attend, heads = AttentionLayer(_heads(0)), _heads(0)
    read = torch.randn(2, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    write = torch.randn(5, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    connect = FullyConnected(gated(read, write), linear(read, write))
    h = torch.randn(7, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    after = h + torch.relu(h @ read.T) @ write.T + h @ read.T @ write.T
    torch.testing.assert_close(h + connect(h), after, atol=1e-12, rtol=0)
    net = Transformer([(attend, connect), (AttentionLayer(), FullyConnected())], read)
    between = h + attend(h)
    torch.testing.assert_close(net(h), (between + connect(between)) @ read.T, atol=1e-12, rtol=0)
    norm = lambda M: float(torch.linalg.matrix_norm(M, 2))  # noqa: E731
    most = max(norm(M) for M in [*heads.Q, *heads.K])
    values = sum(norm(heads.write[m] @ heads.read[m]) for m in range(3))
    fully = norm(connect.W1.M) + norm(connect.W2.M)
    assert net.parameter_norm() == pytest.approx(norm(read) + 1 + most + values + fully, rel=1e-12)


def test_parameter_norm_of_the_construction_grows_no_faster_than_log_n_plus_heads():
    small, wide = (em_transformer(2, 3, 50, 1, M).parameter_norm() for M in (64, 256))
    far = em_transformer(2, 3, 5000, 1, 64).parameter_norm()
    assert wide < 4 * small  # C^d (log N + M): here the outer weights stay bounded, so much less than linear in M
    assert far < small * math.log(5000) / math.log(50) * 1.05


def test_printed_second_head_adds_and_so_doubles_the_grand_mean():
    """Theorem 3.1 prints V_2 = V_1; with the sum, tokens after k keep twice the grand mean, not zero."""
    rng = np.random.default_rng(0)
    x, d = rng.normal(size=(20, 3)) * 0.1 + 0.3, 3
    net = em_transformer(2, d, 20, 1, 8)
    s, h = net.design.slots, net.context(x, x[:2])
    mean = Heads.one(net.design.logit * s.take("p1"), s.take("p2", slice(2)), s.take("x"), s.put("new"))
    grand = Heads.uniform(s.take("x"), s.put("new"))
    printed = (h + AttentionLayer(mean, grand)(h))[2:, s["new"]].numpy()
    np.testing.assert_allclose(printed, np.tile(2 * x.mean(0), (18, 1)), atol=1e-12)


def test_printed_second_layer_of_theorem_3_2_cancels_to_nothing():
    """Its heads average values that are the same at every token, so each pair gives v - v = 0."""
    net = em_transformer(2, 3, 20, 1, 8, plus=True)
    s, rng = net.design.slots, np.random.default_rng(0)
    x = rng.normal(size=(20, 3)) * 0.1
    h = net.context(x, x[:2])
    h = h + net.attention[0](h)  # the shares are now at every token
    code = s.take("p2", slice(1))
    share, own = s.take("share", slice(1)), s.put("own", slice(1))
    pair = AttentionLayer(Heads.one(20.0 * code, 20.0 * code, share, own), Heads.uniform(share, -own))
    np.testing.assert_allclose(pair(h).numpy(), 0, atol=1e-15)


def test_printed_last_soft_max_without_the_lift_drowns_in_the_other_tokens():
    """Step 4 is written as a soft-max over k rows; a layer's runs over N tokens, and N - k of them have logit zero."""
    distances, N, beta = torch.tensor([0.2, 0.9]), 200, 50.0
    logits = torch.cat([-beta * distances, torch.zeros(N - 2)]).double()
    assert float(torch.softmax(logits, 0)[0]) < 1e-6
    lifted = torch.cat([-beta * distances + beta * 2.0 + 2 * math.log(N), torch.zeros(N - 2)]).double()
    assert float(torch.softmax(lifted, 0)[0]) > 1 - 1 / N


def _draw(seed, separation, n=100, sigma=0.08):
    rng = np.random.default_rng(seed)
    corners = (
        np.array([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]]) / 3**0.5
    )  # an equilateral triangle of side one
    x = separation * sigma * corners[np.arange(n) % 3] + sigma * rng.normal(size=(n, 2)).clip(-3, 3)
    return x, separation * sigma * corners


def _worst(net, x, start, tau):
    soft = net(net.context(x, start)).numpy()
    return abs(soft - np.eye(3)[lloyd_path(x, start, tau)[-1][0]]).max()


def test_failure_low_separation_leaves_labels_undecided():
    net = em_transformer(3, 2, 100, 1, 128, radius=1.0, pad=True)
    apart = [_worst(net, *_draw(0, separation), 1) for separation in (14.0, 2.0)]
    assert apart[0] < 1e-3
    assert apart[1] > 0.3


def test_failure_no_temperature_leaves_labels_soft():
    """With beta of order one, not log N over the margin, labels are far from one-hot though their order is right."""
    x, start = _draw(1, 12.0)
    sharp, blunt = (em_transformer(3, 2, 100, 1, 128, margin=margin, pad=True) for margin in (0.1, 5.0))
    assert _worst(sharp, x, start, 1) < 1e-3
    assert _worst(blunt, x, start, 1) > 0.2
    assert np.array_equal(blunt.labels(x, start).numpy(), lloyd_path(x, start, 1)[-1][0])


def test_failure_large_centre_norms_need_more_heads():
    """Distances must be approximated over a ball as large as the data: at fixed M the error grows with it."""
    errors = [em_transformer(3, 5, 100, 1, 64, radius=r).distance.error for r in (1.0, 4.0, 16.0)]
    assert errors[0] < errors[1] < errors[2]
    assert errors[2] == pytest.approx(16 * errors[0], rel=1e-6)  # everything scales with the radius


def test_failure_too_few_layers_stops_before_lloyd():
    """A network of fewer blocks than Lloyd needs is Lloyd stopped early."""
    x, _ = _draw(0, 7.0)
    poor = x[[0, 3, 9]]  # three first centres in one cluster: labels change twice
    path = lloyd_path(x, poor, 8)
    needed = next(t for t in range(9) if np.array_equal(path[t][0], path[-1][0]))
    assert needed >= 2
    one, full = (em_transformer(3, 2, 100, t, 256, pad=True, margin=0.002).labels(x, poor).numpy() for t in (1, needed))
    assert not np.array_equal(one, path[-1][0])
    assert np.array_equal(one, path[1][0])
    assert np.array_equal(full, path[-1][0])


def test_expectation_error_falls_as_the_power_of_n_that_the_sharpness_sets():
    """With C log N the E step is off by N^-C: slope -1 for C = 1, the theorem's 1/N."""
    sizes = np.array([50, 100, 200, 400])
    for sharpness in (1.0, 2.0):
        errors = []
        for n in sizes:
            x = np.array([[-0.5, 0, 0], [0.5, 0, 0]])[np.arange(n) % 2]
            net = em_transformer(2, 3, int(n), 1, 8, sharpness=sharpness)
            mu = net.states(net.context(x, x[:2]))[1][:2, net.design.slots["mu"]]
            errors.append(float((mu - torch.as_tensor(x[:2])).abs().max()))
        slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
        assert slope == pytest.approx(-sharpness, abs=0.05)
