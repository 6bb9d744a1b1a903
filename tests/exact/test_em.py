"""He's constructed transformers against Algorithm 1, layer by layer, and the conditions of Theorems 3.1 and 3.2."""

import math

import numpy as np
import pytest
import torch

from measureflow.circuits import em_transformer
from measureflow.circuits.textbook_em import cluster_means, lloyd_path, nearest

K, N = 3, 200
VARIANTS = pytest.mark.parametrize("plus", [False, True], ids=["theorem 3.1", "theorem 3.2"])


def separated_draw(seed, d, sigma=0.05, k=K, n=N):
    """Clusters at least 14 sigma apart inside the unit ball, with first centres a few sigma off."""
    rng = np.random.default_rng(seed)
    while True:
        centers = rng.normal(size=(k, d))
        centers *= 0.65 / np.linalg.norm(centers, axis=1, keepdims=True)
        if min(np.linalg.norm(centers[i] - centers[j]) for i in range(k) for j in range(i)) > 14 * sigma:
            break
    x = centers[rng.permutation(np.arange(n) % k)] + sigma * rng.normal(size=(n, d)).clip(-3, 3)
    return x + rng.normal(size=d), centers, rng  # moved off the origin: the construction must centre for itself


def good_start(seed, d, **settings):
    """First centres well off their clusters, but nearer to their own than to another."""
    x, centers, rng = separated_draw(seed, d, **settings)
    labels = nearest(x - x.mean(0), centers - centers.mean(0))
    return x, cluster_means(x, labels, len(centers)) + 0.1 * rng.normal(size=centers.shape)


def moving_start(seed, d):
    """First centres from which labels move: one stands so far behind its cluster that another takes a third."""
    x, centers, _ = separated_draw(seed, d)
    start = cluster_means(x, nearest(x - x.mean(0), centers - centers.mean(0)), K)
    pairs = [(i, j) for i in range(K) for j in range(i)]
    a, b = min(pairs, key=lambda pair: np.linalg.norm(start[pair[0]] - start[pair[1]]))
    way = start[b] - start[a]
    start[b] += way * (1 - 0.05 / np.linalg.norm(way))  # the border lies half a sigma before the mean of b
    return x, start


@VARIANTS
@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_labels_are_lloyds_after_one_and_three_iterations(plus, d):
    net = em_transformer(K, d, N, 3, 96, plus=plus, pad=True, radius=1.2)
    block = net.n_layers // 3
    for seed in range(2):
        x, start = moving_start(seed, d)
        path = lloyd_path(x, start, 3)
        assert (path[0][0] != path[1][0]).mean() > 0.05  # so a network that returns its input does not pass
        states = net.states(net.context(x, start))
        for tau in (1, 3):
            soft = net.readout(states[tau * block])
            assert np.array_equal(soft.argmax(-1).numpy(), path[tau][0])
            hard = torch.eye(K)[path[tau][0]]
            assert float((soft - hard).abs().max()) < K * N**-2.0  # k N^-C, what em_transformer states


@VARIANTS
def test_every_slot_after_every_step_is_what_the_proof_says(plus):
    """Layer by layer against NumPy. Two approximations enter: 1/share (plus) and the distance."""
    d, k, n = 4, 3, 60
    net = em_transformer(k, d, n, 1, 64, plus=plus, radius=1.2, sharpness=8.0, smallest_share=0.2)
    x, start = good_start(3, d, n=n)
    states, place = net.states(net.context(x, start)), net.design.slots
    (first, _), (labels, means) = lloyd_path(x, start, 1)
    slot = lambda layer, name: states[layer][:, place[name]].numpy()  # noqa: E731
    x0, means0 = x - x.mean(0), means - x.mean(0)
    e = 5 if plus else 1
    rounding = 1e-8 if plus else n**-7.0  # N^(1-C) of the E step; the sigmoids' 1/share below
    if plus:
        share = np.bincount(first, minlength=k) / n
        np.testing.assert_allclose(slot(1, "share"), np.tile(share, (n, 1)), atol=1e-14)
        np.testing.assert_allclose(slot(2, "own")[:k], np.diag(share), atol=1e-14)
        assert not slot(2, "own")[k:].any()
        np.testing.assert_allclose(slot(3, "inverse")[:k], np.diag(1 / share), atol=1e-2)  # M = 64 heads
        rounding = 1e-2
    np.testing.assert_allclose(slot(e, "x"), x0, atol=1e-14)
    np.testing.assert_allclose(slot(e, "mu")[:k], means0, atol=rounding)
    np.testing.assert_allclose(slot(e, "mu")[k:], 0, atol=1e-13)
    mu = slot(e, "mu")[:k]
    copied, moved = e - 1 + 2 * k, e - 1 + 3 * k
    for j in range(k):
        np.testing.assert_allclose(slot(copied, f"copy{j}"), x0, atol=1e-14)
        np.testing.assert_allclose(slot(moved, f"copy{j}"), x0 - mu[j], atol=1e-13)  # exact picking
    softened = np.sqrt(((x0[:, None] - mu[None]) ** 2).sum(-1) + 0.6**2)
    assert abs(slot(moved + 1, "norm") - softened).max() <= net.distance.error
    assert not slot(moved + 2, "p1").any()
    np.testing.assert_array_equal(slot(moved + 3, "p1").argmax(1), labels)
    for name in ("copy0", "norm", "new"):
        np.testing.assert_allclose(slot(moved + 3, name), 0, atol=1e-12)  # room for the next iteration


@pytest.mark.parametrize(("k", "tau"), [(2, 1), (3, 2), (4, 3)])
def test_layer_counts_of_the_theorems(k, tau):
    assert em_transformer(k, k + 1, 20, tau, 8).n_layers == tau * (3 + 3 * k)
    plus = em_transformer(k, k + 1, 20, tau, 8, plus=True)
    assert plus.n_layers == tau * (7 + 3 * k)
    assert [not layer.normalised for layer in plus.attention].count(True) == tau  # one un-normalised layer each
    assert all(layer.normalised for layer in em_transformer(k, k + 1, 20, tau, 8).attention)


@VARIANTS
def test_an_empty_cluster_moves_to_the_grand_mean_as_the_oracle_says(plus):
    x, start = good_start(1, 4, n=60)
    start[2] = x.mean(0) + 50.0
    net = em_transformer(K, 4, 60, 1, 64, plus=plus, radius=1.2)
    state = net.states(net.context(x, start))[5 if plus else 1]
    mu = state[:K, net.design.slots["mu"]].numpy()
    np.testing.assert_allclose(mu[2], 0, atol=1e-12)
    means = lloyd_path(x, start, 1)[-1][1] - x.mean(0)
    np.testing.assert_allclose(mu, means, atol=2e-2 if plus else 60**-1.9)  # 1/share by 64 heads; N^-C


def test_a_batch_is_each_set_on_its_own():
    sets = [good_start(seed, 4, n=40) for seed in range(2)]
    net = em_transformer(K, 4, 40, 1, 32, radius=1.2)
    x, start = (np.stack(part) for part in zip(*sets, strict=True))
    together = net(net.context(x, start))
    for i, (points, centers) in enumerate(sets):
        torch.testing.assert_close(together[i], net(net.context(points, centers)), atol=1e-12, rtol=0)


def test_error_stays_under_the_stated_bound_wherever_its_condition_holds():
    r"""max |TF(H) - one-hot| <= k N^-C for points whose softened gap is at least margin + 2 error."""
    d, net = 4, em_transformer(K, 4, N, 1, 512, radius=1.2)
    x, start = good_start(0, d, sigma=0.05)
    x[:40] = x.mean(0) + (x[:40] - x.mean(0)) * np.linspace(0, 1, 40)[:, None]  # some points between the clusters
    (_, _), (labels, means) = lloyd_path(x, start, 1)
    softened = np.sort(np.sqrt(((x[:, None] - means[None]) ** 2).sum(-1) + 0.6**2), 1)
    gap = softened[:, 1] - softened[:, 0]
    off = (net(net.context(x, start)) - torch.eye(K)[labels]).abs().amax(-1).numpy()
    clear = gap >= net.design.margin + 2 * net.distance.error + 1e-3  # 1e-3: the E step's own N^-C shifts the means
    assert clear.sum() > 100
    assert off[clear].max() <= K * N**-2.0
    assert off[~clear].max() > K * N**-2.0  # and the condition is needed


def test_weights_pick_one_token_exactly():
    a, b = em_transformer(2, 3, 50, 1, 8).design.weights()
    logit = em_transformer(2, 3, 50, 1, 8).design.logit
    scores = torch.zeros(50, dtype=torch.float64)
    scores[7] = logit
    picked = a * torch.softmax(scores, 0) - b / 50
    torch.testing.assert_close(picked, torch.eye(50, dtype=torch.float64)[7], atol=1e-14, rtol=0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((7, 9, 6), "k=7 clusters need at least as many points, got N=6"),
        ((3, 3, 50), r"Theorem 3\.1 .* needs k < d, got k=3, d=3"),
        ((3, 2, 50), r"needs k < d.*pad=True"),
        ((2, 9, 9), r"d = o\(N\)"),
        ((0, 3, 9), "k must be a whole number, at least 1"),
        ((2, 3, 9, 0), "n_iterations must be"),
        ((2, 3, 9, 1, 7), "n_heads must be even"),
    ],
)
def test_broken_conditions_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        em_transformer(*arguments)


def test_too_few_heads_for_the_asked_error_is_an_error_that_says_the_rate():
    with pytest.raises(ValueError, match=r"n_heads=16 gives a sup error of .* not error=0\.01.*sqrt\(log M / M\)"):
        em_transformer(3, 5, 50, 1, 16, error=0.01)
    assert em_transformer(2, 3, 50, 1, 512, error=0.05).distance.error <= 0.05


def test_context_says_what_does_not_fit():
    net = em_transformer(2, 3, 10, 1, 8)
    x = np.zeros((10, 3))
    x[0, 0], x[1, 0] = 0.5, -0.5
    with pytest.raises(ValueError, match="built for N=10"):
        net.context(x[:9], x[:2])
    with pytest.raises(ValueError, match="built for radius=1"):
        net.context(4 * x, x[:2])
    with pytest.raises(ValueError, match="non-finite"):
        net.context(x * math.nan, x[:2])
    with pytest.raises(ValueError, match=r"points have 2 .* built for d=3"):
        net.context(x[:, :2], x[:2, :2])
    with pytest.raises(ValueError, match=r"centers have 2 .* built for d=3"):
        net.context(x, x[:2, :2])
    plus = em_transformer(2, 3, 10, 1, 8, plus=True, smallest_share=0.3)
    with pytest.raises(ValueError, match=r"smallest_share=0\.3"):
        plus.context(x, x[:2] * [[1.0], [0.0]])
