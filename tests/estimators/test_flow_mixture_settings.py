"""Each parameter of FlowMixture does what it says, and leaves alone what others use."""

import copy

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

from clusters import any_data, blobs
from measureflow import FlowMixture
from measureflow.estimators import checks, flow_settings
from measureflow.mixtures.mixing_measure import sent
from measureflow.mixtures.shared_noise import SharedNoise
from measureflow.models import AnyDimensionFlow, load_pretrained
from measureflow.models.sets import as_sets


@pytest.fixture
def asked(monkeypatch):
    """What the flow is asked for, call by call."""
    calls, run = [], AnyDimensionFlow.flow_and_noise

    def recorded(self, points, snr_db, **options):
        calls.append(options | {"model": self})
        return run(self, points, snr_db, **options)

    monkeypatch.setattr(AnyDimensionFlow, "flow_and_noise", recorded)
    return calls


def test_layers_and_schedule_are_those_asked_for_in_the_fit_and_on_the_dial(asked):
    X, _ = blobs(60)
    mixture = FlowMixture(n_layers=3, schedule="no-flow").fit(X)
    during = len(asked)
    assert mixture.flow_.cut(10.0).n_clusters >= 1
    assert len(asked) > during > 0
    assert {(call["n_layers"], call["schedule"]) for call in asked} == {(3, "no-flow")}
    assert len(mixture.flow_) == 4


@pytest.mark.parametrize("schedule", ["uniform", "unit", "no-flow"])
def test_every_schedule_finds_plain_clusters(schedule):
    X, y = blobs(150)
    mixture = FlowMixture(schedule=schedule).fit(X)
    assert mixture.n_clusters_ == len(set(y))
    steps = torch.stack([torch.as_tensor(t) for t in mixture.flow_.times]).diff()
    assert len(steps) == 6
    assert schedule == "uniform" or set(steps.tolist()) <= {0.0, 1.0}


def test_a_copy_is_moved_and_what_others_use_stays(monkeypatch):
    monkeypatch.setattr(flow_settings, "_place", torch.device)
    model = load_pretrained("any-dimension")
    moved = flow_settings.open_flow(model, "meta")
    assert {p.device.type for p in moved.parameters()} == {"meta"}
    assert {p.device.type for p in model.parameters()} == {"cpu"}
    assert flow_settings.open_flow(model, "cpu") is model
    assert as_sets(torch.zeros(3, 2), 1.0, like=moved.log_width).points.device.type == "meta"
    shipped = flow_settings.open_flow("any-dimension")
    assert flow_settings._shipped("any-dimension", "meta").log_width.is_meta
    assert flow_settings.open_flow("any-dimension") is shipped
    assert {p.device.type for p in shipped.parameters()} == {"cpu"}


@pytest.mark.parametrize("device", ["meta", "cuda:99", "no-such-device", 3.5])
def test_a_device_that_cannot_compute_is_named_before_any_work(device, asked):
    X, _ = blobs(30)
    with pytest.raises(ValueError, match="device"):
        FlowMixture(device=device).fit(X)
    assert not asked
    assert FlowMixture().fit(X).n_clusters_ == FlowMixture(device="cpu").fit(X).n_clusters_


def test_a_module_in_float64_computes_in_float64(asked):
    X, _ = blobs(100)
    model = load_pretrained("any-dimension").double()
    mixture = FlowMixture(model=model).fit(X)
    assert np.array_equal(mixture.labels_, FlowMixture().fit(X).labels_)
    assert asked[0]["model"] is model
    assert model.log_width.dtype == torch.float64


def test_modules_that_cannot_compute_are_named(tmp_path):
    X, _ = blobs(20)
    model, broken = load_pretrained("any-dimension"), load_pretrained("any-dimension")
    with torch.no_grad():
        broken.log_width[0] = torch.nan
    cases = {
        "float32 or float64": copy.deepcopy(model).half(),
        "meta device": copy.deepcopy(model).to("meta"),
        "finite weights": broken,
        "no file config.json": tmp_path,
    }
    for word, given in cases.items():
        with pytest.raises(ValueError, match=f"model.*{word}"):
            FlowMixture(model=given).fit(X)


def test_missing_rows_of_a_dask_array_are_dropped_as_in_memory():
    da = pytest.importorskip("dask.array")
    import dask

    X, _ = blobs(120)
    X[[3, 50, 77]] = np.nan
    X[40, 1] = np.inf
    X[90:] = np.nan  # a whole block
    w = np.ones(120)
    w[30:60] = 0  # another one
    with dask.config.set(scheduler="synchronous"):
        for weights in (None, w):
            here = FlowMixture(missing="drop").fit(X, sample_weight=weights)
            there = FlowMixture(missing="drop").fit(da.from_array(X, chunks=(30, 1)), sample_weight=weights)
            assert np.array_equal(there.labels_, here.labels_)
            assert np.array_equal(there.cluster_centers_, here.cluster_centers_)
            assert (there.labels_[[3, 40, 50, 77, 90, 119]] == -1).all()
        with pytest.raises(ValueError, match=r"NaN at row 77, column 0 .* missing='drop'"):
            FlowMixture().fit(da.from_array(np.where(np.arange(120)[:, None] == 77, X, 0.0), chunks=(30, 1)))
        with pytest.raises(ValueError, match="no row without missing values"):
            FlowMixture(missing="drop").fit(da.full((20, 2), np.nan, chunks=10))


def test_weights_beyond_counting_keep_their_ratios_to_the_bit():
    X, _ = blobs(60)
    w = np.random.default_rng(0).uniform(0.5, 3, 60)
    for exponents in ((70, 200, 1000), (-170, -800, -1000)):
        fits = [FlowMixture(assume="gaussian").fit(X, sample_weight=np.ldexp(w, e)) for e in exponents]
        assert len({fit.cluster_centers_.tobytes() + fit.labels_.tobytes() for fit in fits}) == 1
    assert fits[0].n_clusters_ == 1  # less than one row in all says nothing of clusters
    assert np.isfinite(fits[0].cluster_centers_).all()


@any_data
@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-46, 1e-38, 1e38, 1e300, 1e308])
def test_weights_of_every_size_are_fitted(scale):
    X, y = blobs(60)
    fitted = FlowMixture().fit(X, sample_weight=np.full(60, scale))
    assert fitted.n_clusters_ == 3  # shapes know ratios alone
    assert scale > 1 or fitted.gaussian_weight_ == 0
    mixture = FlowMixture(assume="gaussian").fit(X, sample_weight=np.full(60, scale))
    assert mixture.n_clusters_ == (60 if scale > 1 else 1)  # rows that come back without end are clusters themselves
    assert np.isclose(mixture.weights_.sum(), 1)
    told = FlowMixture(3).fit(X, sample_weight=np.full(60, scale))
    assert adjusted_rand_score(told.labels_, y) == 1


def test_ordinary_weights_are_left_alone():
    w = np.random.default_rng(0).uniform(0, 5, 50)
    assert checks.countable(w) is w
    assert checks.countable(np.full(4, 2.0**900)).tolist() == [2.0**57] * 4  # 2^59 in all, below 2^60
    assert checks.countable(np.array([1.0, 1e-320])).tolist() == [1.0, 0.0]


def test_a_row_whose_weight_is_lost_beside_the_others_changes_nothing():
    X, _ = blobs(60)
    for tiny in (1e-15, 1e-100, 1e-320):
        w = np.where(np.arange(60) == 7, tiny, 1.0)
        mixture, without = FlowMixture().fit(X, sample_weight=w), FlowMixture().fit(np.delete(X, 7, 0))
        np.testing.assert_allclose(mixture.cluster_centers_, without.cluster_centers_, rtol=1e-6)
        assert torch.isfinite(mixture.mixing_measure_.points).all()


def test_a_token_of_no_mass_stays():
    mixture = SharedNoise(np.array([[0.0], [8.0]]), np.ones(2) / 2, 1.0)
    assert sent(np.array([[1.0], [9.0], [5.0]]), np.array([1.0, 1.0, 1e-30]), mixture).ravel().tolist() == [0, 8, 5]
