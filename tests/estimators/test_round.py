"""Round data keep the Gaussians' answer; rows that are not round end the search for Gaussians early."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from measureflow import FlowMixture
from measureflow.estimators import flow_mixture
from measureflow.estimators.flow_settings import open_average
from measureflow.measures.priors import paper_test_prior
from measureflow.mixtures.clusters import GaussianClusters
from measureflow.mixtures.misfit import radial_misfit
from measureflow.mixtures.rows import distinct_rows
from measureflow.mixtures.search import FRAME_ROWS, SKETCH_ROWS, Search
from measureflow.mixtures.shared_noise import SharedNoise
from measureflow.models import AnyDimensionFlow, load_pretrained
from measureflow.training.config import seeded


@pytest.mark.parametrize("snr_db", [15.0, 10.0])
def test_round_sets_have_the_same_clusters_as_if_gaussians_were_assumed(snr_db):
    """In at least four sets of five; the paper's test sets overlap, and a few look like something else."""
    mixtures = paper_test_prior(snr_db).sample(10, 600, seeded(3, "round", snr_db))
    same = []
    for points in mixtures.points.double().numpy():
        ours, gaussian = FlowMixture().fit(points), FlowMixture(assume="gaussian").fit(points)
        same.append(np.array_equal(ours.labels_, gaussian.labels_))
        assert gaussian.gaussian_weight_ == 1.0
        assert torch.equal(ours.mixing_measure_.points, gaussian.mixing_measure_.points)
        if ours.gaussian_weight_ > 0.5:
            assert ours.n_clusters_ == gaussian.n_clusters_
    assert np.mean(same) >= 0.8


def test_a_shape_that_a_sample_shows_by_chance_is_not_kept():
    """Of these round clusters, which overlap, 512 rows make noise a sixth wider in one column; all rows do not."""
    mixtures = paper_test_prior(5.0).sample(1, 1000, torch.Generator().manual_seed(43))
    rows = distinct_rows(mixtures.points[0].double().numpy(), np.ones(1000))
    few, whole = (Search(load_pretrained("any-dimension"), some) for some in (rows.sample(FRAME_ROWS), rows))
    assert few.round_clusters().frame.n_learned > 0
    assert whole.round_clusters().frame.n_learned == 0


def test_crescents_are_not_round():
    from sklearn.datasets import make_moons

    X = make_moons(400, noise=0.06, random_state=0)[0]
    fit = FlowMixture().fit(X)
    assert fit.gaussian_weight_ < 0.5
    assert fit.n_clusters_ == 2


def ellipses(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.array([[0.0, 0.0], [0.0, 8.0], [12.0, 4.0]])[rng.integers(3, size=n)] + rng.normal(size=(n, 2)) * [
        4.0,
        0.5,
    ]


def test_a_sketch_ends_with_the_sample_that_shows_a_shape():
    rows = distinct_rows(ellipses(900), np.ones(900))
    model = load_pretrained("any-dimension")
    whole, sketch = (Search(model, rows, sketch=early).run(polish=True) for early in (False, True))
    assert sketch.candidates is None  # the evidence was weighed on the sample alone
    assert whole.candidates.rows.mass == 900
    clusters = GaussianClusters.of(sketch.frame, sketch.mixture)
    r = clusters.probabilities(rows.points)
    gaps = rows.points[:, None] - clusters.centers
    within = np.einsum("nk,nki,nkj->ij", r, gaps, gaps) / 900
    np.testing.assert_allclose(clusters.covariances[0], within, rtol=0.1, atol=0.1)  # the shape is that of all rows
    assert sketch.is_sketch
    assert not whole.is_sketch
    assert len(whole.flowed.seen.weights) == 900
    assert sketch.mixture.weights.sum() == pytest.approx(1.0)


def test_a_sketch_of_round_rows_is_the_whole_search():
    points = paper_test_prior(15.0).sample(1, 700, seeded(4, "round")).points[0].double().numpy()
    rows = distinct_rows(points, np.ones(len(points)))
    model = load_pretrained("any-dimension")
    whole, sketch = (Search(model, rows, sketch=early).run(polish=True) for early in (False, True))
    np.testing.assert_array_equal(sketch.clusters[0], whole.clusters[0])


def test_a_number_that_was_asked_for_is_never_sketched():
    rows = distinct_rows(ellipses(900), np.ones(900))
    search = Search(load_pretrained("any-dimension"), rows, n_clusters=4, sketch=True)
    assert not search.sketch
    assert len(search.run(polish=True).mixture) == 4


def test_a_sketched_fit_searches_for_its_gaussians_when_they_are_asked_for(monkeypatch):
    calls, run = [], AnyDimensionFlow.flow_and_noise
    monkeypatch.setattr(AnyDimensionFlow, "flow_and_noise", lambda *a, **k: calls.append(len(a[1][0])) or run(*a, **k))
    X = ellipses(900)
    fit, gaussian = FlowMixture().fit(X), FlowMixture(assume="gaussian").fit(X)
    calls.clear()
    fit = FlowMixture().fit(X)
    assert fit.gaussian_weight_ < 0.5
    assert max(calls) <= SKETCH_ROWS
    labels, again = fit.labels_.copy(), pickle.loads(pickle.dumps(fit))
    assert torch.equal(fit.mixing_measure_.points, gaussian.mixing_measure_.points)
    n_calls = len(calls)
    np.testing.assert_array_equal(fit.score_samples(X), gaussian.score_samples(X))
    assert torch.equal(fit.flow_[-1], gaussian.flow_[-1])
    assert fit.flow_ is fit.flow_
    assert len(calls) == n_calls  # one search is enough
    assert np.array_equal(fit.predict(X), labels)
    assert torch.equal(again.flow_[-1], fit.flow_[-1])


def test_a_rough_search_flows_once_in_each_frame(monkeypatch):
    monkeypatch.setattr("measureflow.mixtures.search.WRONG_SNR_DB", -1.0)  # any SNR is wrong
    rows, flows = distinct_rows(ellipses(100), np.ones(100)), []
    model, run = load_pretrained("any-dimension"), AnyDimensionFlow.flow_and_noise
    monkeypatch.setattr(AnyDimensionFlow, "flow_and_noise", lambda *a, **k: flows.append(k["exact"]) or run(*a, **k))
    counts = []
    for rough in (False, True):
        flows.clear()
        Search(model, rows, n_clusters=3, rough=rough).round_clusters()
        counts.append(sum(flows))
    assert counts[0] == 2 * counts[1] > 0


def test_misfit_is_small_for_gaussians_and_large_for_a_ring():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 500)
    ring = np.sqrt(2) * np.stack([np.cos(angle), np.sin(angle)], 1)
    one = SharedNoise(np.zeros((1, 2)), np.ones(1), 1.0)
    assert radial_misfit(rng.standard_normal((500, 2)), one) < 0.1
    assert radial_misfit(ring, one) > 0.4


def test_many_round_clusters_on_a_grid_are_all_found():
    """The flow of shapes would merge them, so this is about whom to believe."""
    grid = 4.0 * np.array([[i, j] for i in range(5) for j in range(4)])
    noise = 0.6 * np.random.default_rng(0).standard_normal((2000, 2))
    truth = np.repeat(np.arange(20), 100)
    mixture = FlowMixture().fit(grid[truth] + noise)
    assert mixture.n_clusters_ == 20
    assert adjusted_rand_score(truth, mixture.labels_) > 0.99


@pytest.mark.parametrize(("bias", "sketched"), [(-50.0, True), (50.0, False)])
def test_rows_that_are_likely_round_after_all_are_searched_in_full(bias, sketched, monkeypatch):
    """A sample of long clusters ends the search; a weight of the Gaussians near one makes it go on."""
    average = replace(open_average("any-shape"), bias=bias)
    monkeypatch.setattr(flow_mixture, "open_average", lambda _: average)
    found = FlowMixture().fit(ellipses(600))
    assert found.gaussian_weight_ == pytest.approx(0.0 if sketched else 1.0, abs=1e-6)
    assert found._is_sketch is sketched
