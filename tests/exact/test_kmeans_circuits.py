"""Every row of Clarkson's Table 1 against the textbook, layer by layer."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.kmeans_cases import Case, cases, generic
from measureflow.circuits import kmeans_transformer, textbook
from measureflow.circuits.clarkson import rows

CASES, LATTICE_CASES = cases(weights_delta=400.0), cases(weights_delta=1024.0)
# Centres are sums of up to a few hundred numbers of size ten: 1e-12 is some hundred roundings.
CLOSE = 1e-12


def trace(case: Case, X, C, layers: int, w=None, **options):
    model = kmeans_transformer(X.shape[1], len(C), case.row(), n_layers=layers, **options)
    return model.trace(torch.tensor(X), torch.tensor(C), None if w is None else torch.tensor(w))


def decided(X, C, spherical: bool) -> bool:
    """Whether every nearest centre is nearest by more than rounding: even copies of one may not round alike."""
    S = textbook.similarities(X, C, spherical)
    return bool(((S.max(1, keepdims=True) - 1e-9 <= S).sum(1) == 1).all())


def assert_same(case: Case, X, C, layers: int, w=None, **options) -> int:
    """Compare until a tie is decided by rounding alone; the number of layers compared."""
    for layer, got in enumerate(trace(case, X, C, layers, w, **options)):
        if layer and not decided(X, C, case.spherical):
            return layer
        Y, C = case.step(X, C, w, layer)
        soft_tie = (Y.max(1, keepdims=True) - 1e-9 <= Y).sum(1) > 1 if case.name == "soft" else np.zeros(len(Y), bool)
        clear = ~soft_tie  # equal softmax shares differ by rounding; equal hard-max shares do not
        assert np.array_equal(got.labels.numpy()[clear], Y.argmax(1)[clear])
        np.testing.assert_allclose(got.assignment.numpy(), Y, rtol=0, atol=CLOSE)
        np.testing.assert_allclose(got.centers.numpy(), C, rtol=0, atol=CLOSE)
    return layers


def fewest(case: Case, layers: int) -> int:
    """How many layers can be compared for sure: two clusters may draw one medoid, and copies tie from then on."""
    return 1 if case.name == "medoids" else layers


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize(("n", "d", "k"), [(60, 3, 4), (12, 3, 12), (20, 4, 1)])
def test_layers_are_iterations(case, n, d, k):
    X, C = generic(case.geometry, n, d, k, seed=n + d + k)
    assert assert_same(case, X, C, layers=6) >= fewest(case, 6)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_weights_are_repetitions_in_every_row(case):
    X, C = generic(case.geometry, 40, 3, 3, seed=5)
    w = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    assert assert_same(case, X, C, layers=4, w=w) >= fewest(case, 4)
    if case.name != "medoids":  # whose draw sees another list of keys
        again = trace(case, np.repeat(X, w.astype(int), 0), C, 4)[-1].centers
        weighed = trace(case, X, C, 4, w)[-1].centers
        np.testing.assert_allclose(again, weighed, rtol=0, atol=CLOSE)


grid = st.integers(-4, 4).map(lambda i: i / 2)  # sums, products and distances of these are exact in floating point


@st.composite
def lattice_problems(draw, spherical: bool):
    """Points and centres on a coarse grid: duplicates, ties, empty clusters, one point, one cluster, no variance."""
    n, k = draw(st.integers(1, 9)), draw(st.integers(1, 4))
    if spherical:  # the 24 unit vectors in four dimensions whose coordinates are 0, 1/2 or 1 in size
        halves = [np.array(v) for v in np.ndindex(2, 2, 2, 2)]
        units = [*np.eye(4), *-np.eye(4), *[v - 0.5 for v in halves]]
        pick = st.sampled_from(range(24)).map(lambda i: units[i])
    else:
        d = draw(st.integers(1, 3))
        pick = st.lists(grid, min_size=d, max_size=d).map(np.array)
    X = np.stack(draw(st.lists(pick, min_size=n, max_size=n))).astype(float)
    C = np.stack(draw(st.lists(pick, min_size=k, max_size=k))).astype(float)
    w = draw(st.none() | st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return X, C, None if w is None or not any(w) else np.array(w, dtype=float)


def threshold_is_decided(case: Case, X, C, w) -> bool:
    """Norm-max drops a point at its threshold, which rounding decides: such a layer has no one answer."""
    if case.name != "trimmed-normmax":
        return True
    l2 = case.geometry.__name__ == "Euclidean"
    a, b = (textbook.trimmed_by_norm(X, C, 0.3 * f, w, case.spherical, l2)[1] for f in (1 - 1e-9, 1 + 1e-9))
    return np.allclose(a, b, rtol=0, atol=1e-6)


@pytest.mark.parametrize("case", [c for c in LATTICE_CASES if c.geometry.__name__ != "ZeroSumSpherical"], ids=str)
@settings(max_examples=25, deadline=None, derandomize=True)
@given(data=st.data())
def test_ties_duplicates_and_empty_clusters(case, data):
    X, C, w = data.draw(lattice_problems(case.spherical))
    if threshold_is_decided(case, X, C, w):
        assert assert_same(case, X, C, layers=1, w=w) == 1
    if case.name == "lloyd":
        assert_same(case, X, C, layers=4, w=w)


def test_a_tied_point_moves_no_centre_and_an_empty_cluster_moves_to_the_mean():
    X = np.array([[-1.0], [0.0], [1.0], [4.0]])
    first = trace(CASES[0], X, np.array([[-1.0], [1.0], [90.0]]), 1)[0]
    assert first.assignment[1].tolist() == [0.5, 0.5, 0.0]
    assert first.centers.flatten().tolist() == [
        -1.0,
        2.5,
        1.0,
    ]  # 0 is in neither mean; (1 + 4)/2; the grand mean


def test_duplicates_reset_harmlessly():
    """sigma_inf(DP(X, X)) is not the identity when 49 points coincide, and the reset is right all the same."""
    X = np.concatenate([np.tile([[0.3, 0.7]], (49, 1)), [[0.1, 0.2], [5.0, 5.0]]])
    assert assert_same(CASES[0], X, X[[0, -1]], layers=5) == 5


def test_a_bare_hardmax_in_the_decoder_would_drop_points():
    """Why the decoder rounds shares: 49 equal points leave 1e-16, which a bare Hardmax takes for a difference."""
    from dataclasses import replace

    from measureflow.attention import Hardmax

    X = np.concatenate([np.tile([[0.3, 0.7]], (49, 1)), [[0.1, 0.2], [5.0, 5.0]]])
    bare = kmeans_transformer(2, 2, replace(rows.lloyd(), update=Hardmax()), n_layers=5)
    wrong = bare(torch.tensor(X), torch.tensor(X[[0, -1]]))
    _, right = textbook.run(textbook.lloyd, X, X[[0, -1]], 5)[-1]
    assert abs(wrong.numpy() - right).max() > 1e-3


@pytest.mark.parametrize("case", [c for c in CASES if c.name in ("lloyd", "soft", "trimmed-percentile60")], ids=str)
def test_rotated_parameters_are_the_same_algorithm(case):
    X, C = generic(case.geometry, 50, 3, 4, seed=11)
    stream = kmeans_transformer(3, 4, case.row(), n_layers=1).stream
    R = stream.rotation(torch.Generator().manual_seed(3))
    assert assert_same(case, X, C, layers=5, rotation=R) == 5


def test_a_gap_of_two_delta_needs_the_root_of_delta():
    """(32) prints the factor delta, which would lower scores by 2 delta squared."""
    from measureflow.circuits.clarkson.geometry import Euclidean
    from measureflow.circuits.stream import Stream

    stream, geometry = Stream(point=1, assignment=2), Euclidean()
    tokens = stream.embed(point=torch.zeros(2, 1, dtype=torch.float64), assignment=torch.eye(2, dtype=torch.float64))
    score = geometry.score(*geometry.query_key(stream, delta=3.0))(tokens, tokens)
    torch.testing.assert_close(score[0, 1].item(), -6.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", [c for c in CASES if c.name == "lloyd"], ids=str)
def test_finite_gamma_approaches_lloyd(case):
    X, C = generic(case.geometry, 60, 4, 3, seed=2)
    exact = textbook.run(textbook.lloyd, X, C, 3, spherical=case.spherical)[-1][1]
    gaps = []
    for gamma in (1.0, 10.0, 100.0, 1e4):
        model = kmeans_transformer(4, 3, rows.lloyd(gamma, case.geometry()), n_layers=3)
        gaps.append(np.abs(model(torch.tensor(X), torch.tensor(C)).numpy() - exact).max())
    assert gaps[0] > gaps[1] > gaps[-1]
    assert gaps[-1] < 1e-3 if not case.spherical else gaps[-1] < gaps[0] / 10


def test_gumbel_draws_follow_algorithm_6():
    """The circuit's draws have the probabilities of line 7, by a chi-squared of three degrees of freedom."""
    X = np.array([[0.0], [1.0], [2.0], [5.0]])
    C = X[[0, 3]]
    model = kmeans_transformer(1, 2, rows.medoids(torch.Generator().manual_seed(1), delta=0.5), n_layers=1)
    many = (torch.tensor(t).expand(2000, -1, -1) for t in (X, C))
    draws = model(*many)[:, 0, 0].numpy()
    p = np.exp(-((X[:, 0] - 0.0) ** 2) - 2 * 0.5 * np.array([0, 0, 0, 1]))
    expected = 2000 * p / p.sum()
    seen = np.array([(draws == x).sum() for x in X[:, 0]])
    assert ((seen - expected)[:3] ** 2 / expected[:3]).sum() < 16.3  # the 99.9 % point


def test_trained_module_takes_the_hand_set_weights():
    hand = kmeans_transformer(2, 3, rows.lloyd(50.0), n_layers=4)
    learned = kmeans_transformer(2, 3, rows.lloyd(50.0), n_layers=4, learn=True)
    assert not list(hand.parameters())
    with torch.no_grad():
        for parameter in learned.parameters():
            parameter.normal_()
    learned.load_state_dict(hand.state_dict())
    X = torch.randn(30, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(learned(X, X[:3]), hand(X, X[:3]), rtol=0, atol=1e-9)
    loss = (X[:, None] - learned(X, X[:3])).square().sum(-1).amin(1).sum()
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in learned.parameters())


def test_batches_run_side_by_side():
    X = torch.randn(3, 20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    model = kmeans_transformer(2, 4, n_layers=3)
    together = model(X, X[:, :4])
    for one, x in zip(together, X, strict=True):
        torch.testing.assert_close(one, model(x, x[:4]), rtol=0, atol=CLOSE)


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (lambda: kmeans_transformer(0, 2), "d must"),
        (lambda: kmeans_transformer(2, 2, n_layers=0), "n_layers"),
        (lambda: kmeans_transformer(2, 2, rotation=torch.ones(4, 4)), "rotation"),
        (lambda: kmeans_transformer(2, 2)(torch.zeros(3, 1), torch.zeros(2, 2)), "points"),
        (lambda: kmeans_transformer(2, 2)(torch.zeros(3, 2), torch.zeros(3, 2)), "centers"),
        (lambda: kmeans_transformer(2, 1)(torch.tensor([[math.nan, 0.0]]), torch.zeros(1, 2)), "points"),
        (lambda: kmeans_transformer(2, 1)(torch.zeros(3, 2), torch.zeros(1, 2), [-1.0, 1, 1]), "weights"),
        (
            lambda: kmeans_transformer(2, 1, rows.spherical())(torch.ones(3, 2), torch.zeros(1, 2)),
            "unit vectors",
        ),
        (
            lambda: kmeans_transformer(1, 1, rows.spherical(zero_sum=True))(torch.ones(3, 1), torch.zeros(1, 1)),
            "zero",
        ),
        (lambda: rows.trimmed_by_percentile(101), "percent"),
        (lambda: rows.robust(delta=0.0), "delta"),
    ],
)
def test_bad_input_is_named(bad, word):
    with pytest.raises(ValueError, match=word):
        bad()


@pytest.mark.parametrize("gamma", [0.01, 0.05, 0.3, 5.0])
def test_gamma_as_a_percentile(gamma):
    """What norm-max keeps of a cluster is what `kept_percentage` says, and one gamma trims a larger cluster more."""
    from measureflow.attention import NormMax
    from measureflow.circuits.clarkson.selections import kept_percentage

    r = torch.rand(40, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 9
    w = torch.arange(40) % 3 + 1.0
    for weights in (None, w.double()):
        z = NormMax(math.inf, gamma)(-r[None], weights)[0]
        mass = torch.ones_like(r) if weights is None else weights
        assert kept_percentage(r, gamma, weights) == pytest.approx(float(100 * mass[z > 0].sum() / mass.sum()))
    assert kept_percentage(r.repeat(10), gamma) <= kept_percentage(r, gamma)
