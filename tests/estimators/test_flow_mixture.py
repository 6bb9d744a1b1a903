"""FlowMixture against scikit-learn's contract, the laws it declares, and data as they come."""

import hashlib
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from measureflow import FlowMixture
from measureflow.estimators import UnfamiliarDataWarning
from measureflow.models import AnyDimensionFlow, FlowTransformer, load_pretrained, save_model

EXAMPLES = int(os.environ.get("MEASUREFLOW_EXAMPLES", "12"))  # make fuzz asks for 1,000
law = settings(  # a seed says nothing more when it is shrunk
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
any_data = pytest.mark.filterwarnings("ignore::measureflow.estimators.UnfamiliarDataWarning")

TRIANGLE = np.array([[-3.0, 0.0], [3.0, 0.0], [0.0, 4.0]])


def blobs(n=300, centres=TRIANGLE, noise=0.3, seed=0, weights=None):
    """Rows around known centres, and which centre each belongs to."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(centres), n, p=weights)
    return centres[labels] + noise * rng.standard_normal((n, centres.shape[1])), labels


@st.composite
def tables(draw, most_rows=60, least_rows=1):
    """Mixtures from hopelessly mixed to far apart, one row included."""
    d, K = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    n, separation = draw(st.integers(least_rows, most_rows)), draw(st.floats(0.3, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return separation * rng.standard_normal((K, d))[rng.integers(0, K, n)] + rng.standard_normal((n, d))


def rounded(X, coarse):
    """Whole numbers where asked, so that rows repeat and distances tie."""
    return np.round(X) if coarse else X


@any_data  # one of the checks adds a background
@parametrize_with_checks([FlowMixture()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# ---- laws


@any_data
@pytest.mark.law
@law
@given(X=tables(), coarse=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_a_weight_is_a_repetition(X, coarse, seed):
    X, rng = rounded(X, coarse), np.random.default_rng(seed)
    times = rng.integers(0, 4, len(X))
    assume(times.any())
    weighted = FlowMixture().fit(X, sample_weight=times.astype(float))
    order = rng.permutation(times.sum())
    repeated = FlowMixture().fit(np.repeat(X, times, axis=0)[order])
    assert np.array_equal(repeated.labels_, np.repeat(weighted.labels_, times)[order])
    scale = max(np.ptp(X), 1e-300)
    np.testing.assert_allclose(repeated.cluster_centers_, weighted.cluster_centers_, rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(repeated.weights_, weighted.weights_, rtol=0, atol=1e-9)
    assert repeated.n_clusters_posterior_ == pytest.approx(weighted.n_clusters_posterior_, abs=1e-9)


@any_data
@pytest.mark.law
@law
@given(X=tables(), coarse=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_rows_does_not_matter(X, coarse, seed):
    X = rounded(X, coarse)
    order = np.random.default_rng(seed).permutation(len(X))
    here, there = FlowMixture().fit(X), FlowMixture().fit(X[order])
    assert np.array_equal(there.labels_, here.labels_[order])
    assert np.array_equal(there.cluster_centers_, here.cluster_centers_)
    assert there.n_clusters_posterior_ == here.n_clusters_posterior_


def assert_carried(here, there, carry, unit):
    """The same partition, and centres where ``carry`` puts them; the flow counts in 32 bits."""
    assert there.n_clusters_ == here.n_clusters_
    assert adjusted_rand_score(here.labels_, there.labels_) == 1
    gaps = np.abs(carry(here.cluster_centers_)[:, None] - there.cluster_centers_).max(-1)
    assert gaps.min(1).max() < 1e-4 * unit
    assert there.snr_db_ == pytest.approx(here.snr_db_, abs=1e-2)


def is_round(mixture) -> bool:
    """Whether the shared noise is a sphere; one that is longer along a column is sought along the columns only."""
    return np.allclose(mixture.noise_covariance_, mixture.noise_variance_ * np.eye(mixture.n_features_in_))


@any_data
@pytest.mark.law
@law
@given(X=tables(least_rows=3), log_scale=st.floats(-6, 6), shift=st.floats(-100, 100))
def test_moving_and_scaling_the_data_moves_and_scales_the_answer(X, log_scale, shift):
    scale = 10**log_scale
    here, there = FlowMixture().fit(X), FlowMixture().fit(scale * (X + shift))
    assert_carried(here, there, lambda centres: scale * (centres + shift), scale * np.ptp(X))
    assert there.noise_variance_ == pytest.approx(scale**2 * here.noise_variance_, rel=1e-3)


@any_data
@pytest.mark.law
@law
@given(X=tables(least_rows=3), seed=st.integers(0, 2**32 - 1))
def test_turning_the_data_turns_the_answer(X, seed):
    d = X.shape[1]
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
    here, there = FlowMixture().fit(X), FlowMixture().fit(X @ Q.T)
    assume(is_round(here) and is_round(there))
    assert_carried(here, there, lambda centres: centres @ Q.T, np.ptp(X))


def test_turning_takes_the_same_sample_of_many_rows():
    X, _ = blobs(3000, noise=1.5)
    angle = 0.7
    Q = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    here, there = FlowMixture().fit(X), FlowMixture().fit(X @ Q.T)
    assert adjusted_rand_score(here.labels_, there.labels_) == 1


# ---- the same bits


def digest(mixture: FlowMixture) -> str:
    path = [state.numpy().tobytes() for state in mixture.flow_]
    parts = [mixture.labels_.tobytes(), mixture.cluster_centers_.tobytes(), mixture.weights_.tobytes(), *path]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def test_the_same_bits_on_one_thread_and_on_two():
    X, _ = blobs(1500, noise=1.5)
    before = torch.get_num_threads()
    try:
        digests = set()
        for threads in (1, 2, 1):
            torch.set_num_threads(threads)
            digests.add(digest(FlowMixture().fit(X)))
    finally:
        torch.set_num_threads(before)
    assert len(digests) == 1


def test_the_same_bits_in_another_process():
    script = (
        "import numpy as np; from test_flow_mixture import blobs, digest; from measureflow import FlowMixture; "
        "print(digest(FlowMixture().fit(blobs(400, noise=1.0)[0])))"
    )
    env = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": os.path.dirname(__file__)}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env)
    assert run.stdout.strip() == digest(FlowMixture().fit(blobs(400, noise=1.0)[0]))


def test_fitting_leaves_every_generator_alone():
    state = torch.get_rng_state()
    FlowMixture(random_state=0).fit(blobs(60)[0])
    assert torch.equal(state, torch.get_rng_state())


# ---- what it finds


@pytest.mark.parametrize("K", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("d", [1, 2, 10])
def test_it_finds_the_clusters_of_clear_data(K, d):
    rng = np.random.default_rng(0)
    centres = 10.0 * np.arange(K)[:, None] * np.ones(d) / np.sqrt(d) + rng.uniform(-1, 1, (K, d))
    X, truth = blobs(100 * K, centres, noise=0.5)
    mixture = FlowMixture().fit(X)
    assert mixture.n_clusters_ == K
    assert adjusted_rand_score(truth, mixture.labels_) == 1
    assert mixture.noise_variance_ == pytest.approx(0.25, rel=0.2)
    assert mixture.n_clusters_posterior_[K] == max(mixture.n_clusters_posterior_.values())
    assert sum(mixture.n_clusters_posterior_.values()) == pytest.approx(1)


def test_labels_are_ordered_by_weight_then_by_position():
    X, truth = blobs(400, weights=[0.2, 0.5, 0.3])
    mixture = FlowMixture().fit(X)
    assert (np.diff(mixture.weights_) <= 0).all()
    np.testing.assert_allclose(mixture.cluster_centers_, TRIANGLE[[1, 2, 0]], atol=0.1)
    assert np.array_equal(mixture.labels_, np.array([2, 0, 1])[truth])
    corners = np.repeat([[5.0, 0.0], [0.0, 5.0], [0.0, 0.0]], 20, 0)  # equal weights: the smallest position is first
    assert FlowMixture().fit(corners).cluster_centers_ == pytest.approx(np.array([[0.0, 0.0], [0.0, 5.0], [5.0, 0.0]]))


@any_data
@pytest.mark.parametrize("K", [1, 2, 3, 4, 7, 30])
def test_n_clusters_is_obeyed(K):
    mixture = FlowMixture(K).fit(blobs(60)[0])
    assert mixture.n_clusters_ == len(mixture.cluster_centers_) == len(mixture.weights_) == K
    assert mixture.predict_proba(TRIANGLE).shape == (3, K)


def test_more_clusters_than_distinct_rows_is_an_error():
    with pytest.raises(ValueError, match="n_clusters=3 exceeds the 2 distinct rows"):
        FlowMixture(3).fit(np.repeat(TRIANGLE[:2], 5, 0))


def test_a_lower_snr_is_coarser():
    pairs = np.array([[-5.0, -0.6], [-5.0, 0.6], [5.0, -0.6], [5.0, 0.6]])
    X, _ = blobs(400, pairs, noise=0.15)
    assert FlowMixture().fit(X).n_clusters_ == 4
    coarse = FlowMixture(snr_db=5.0).fit(X)
    assert coarse.snr_db_ == 5.0
    assert coarse.n_clusters_ == 2


def test_the_dial_never_has_more_clusters_at_a_lower_snr():
    pairs = np.array([[-5.0, -0.6], [-5.0, 0.6], [5.0, -0.6], [5.0, 0.6]])
    X, _ = blobs(300, pairs, noise=0.15)
    dial = FlowMixture().fit(X).flow_
    cuts = [dial.cut(snr_db) for snr_db in np.linspace(-6, 32, 20)]
    counts = [cut.n_clusters for cut in cuts]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert 4 in counts
    for cut in cuts:
        assert set(cut.labels) == set(range(cut.n_clusters))
        assert cut.weights.sum() == pytest.approx(1)
        assert cut.centres.shape == (cut.n_clusters, 2)
    with pytest.raises(ValueError, match="snr_db"):
        dial.cut(np.nan)


def test_the_flow_starts_at_the_rows_and_ends_near_the_centres():
    X, _ = blobs(200)
    mixture = FlowMixture().fit(X)
    np.testing.assert_allclose(mixture.flow_[0].numpy(), X[np.lexsort(X.T[::-1])], rtol=0, atol=1e-12)
    away = [
        np.sqrt(((points.numpy()[:, None] - mixture.cluster_centers_) ** 2).sum(-1)).min(1) for points in mixture.flow_
    ]
    assert away[-1].mean() < 0.2 * away[0].mean()
    assert np.median(away[-1]) < 0.1 * np.median(away[0])
    table = mixture.flow_.to_pandas()
    assert len(table) == 200 * len(mixture.flow_)


# ---- the fitted mixture


def test_new_rows_are_labelled_without_a_flow(monkeypatch):
    X, _ = blobs(200)
    mixture = FlowMixture(random_state=0).fit(X)

    def attention(*_, **__):
        raise AssertionError("an attention pass was run")

    monkeypatch.setattr(AnyDimensionFlow, "flow_and_noise", attention)
    assert np.array_equal(mixture.predict(X), mixture.labels_)
    for call in (mixture.predict_proba, mixture.score_samples, mixture.score, mixture.transform):
        call(X)
    mixture.sample(3)
    with pytest.raises(AssertionError, match="attention pass"):
        mixture.fit(X)


def test_probabilities_densities_and_distances_agree_with_the_attributes():
    X, _ = blobs(300, noise=1.5)
    mixture = FlowMixture().fit(X)
    new = np.random.default_rng(1).uniform(-5, 5, (50, 2))
    noise = [multivariate_normal(centre, mixture.noise_covariance_) for centre in mixture.cluster_centers_]
    joint = np.log(mixture.weights_) + np.stack([each.logpdf(new) for each in noise], 1)
    np.testing.assert_allclose(mixture.score_samples(new), logsumexp(joint, axis=1), atol=1e-9)
    np.testing.assert_allclose(mixture.predict_proba(new), np.exp(joint - logsumexp(joint, 1)[:, None]), atol=1e-9)
    assert np.array_equal(mixture.predict(new), joint.argmax(1))
    assert mixture.score(new) == pytest.approx(logsumexp(joint, axis=1).mean())
    distances = np.linalg.norm(new[:, None] - mixture.cluster_centers_, axis=-1)
    np.testing.assert_allclose(mixture.transform(new), distances, atol=1e-12)
    assert mixture.certificate_["clusters"] == pytest.approx(mixture.score(X), abs=1e-6)


def test_densities_of_evened_columns_integrate_to_one():
    X, _ = blobs(200)
    mixture = FlowMixture().fit(X * [1.0, 1000.0])
    assert np.linalg.cond(mixture.noise_covariance_) > 1e5
    x, y = np.linspace(-7, 7, 300), 1000 * np.linspace(-5, 9, 300)
    grid = np.stack(np.meshgrid(x, y), -1).reshape(-1, 2)
    mass = np.exp(mixture.score_samples(grid)).sum() * (x[1] - x[0]) * (y[1] - y[0])
    assert mass == pytest.approx(1, abs=1e-6)


def test_samples_follow_the_mixture():
    X, _ = blobs(400, weights=[0.2, 0.5, 0.3])
    mixture = FlowMixture(random_state=0).fit(X * [1.0, 100.0])
    drawn, labels = mixture.sample(20_000)
    np.testing.assert_allclose(np.bincount(labels) / 20_000, mixture.weights_, atol=0.02)  # five standard errors
    for k in range(3):
        mine = drawn[labels == k]
        spread = np.sqrt(np.diagonal(mixture.noise_covariance_))
        assert (np.abs(mine.mean(0) - mixture.cluster_centers_[k]) < 5 * spread / len(mine) ** 0.5).all()
        np.testing.assert_allclose(np.cov(mine.T), mixture.noise_covariance_, rtol=0.1, atol=0.1 * spread.prod())
    assert np.array_equal(mixture.sample(5)[0], mixture.sample(5)[0])
    with pytest.raises(ValueError, match="n_samples"):
        mixture.sample(0)


def test_pickles_and_clones():
    X, _ = blobs(100)
    mixture = FlowMixture(snr_db=12.0, missing="drop").fit(X)
    again = pickle.loads(pickle.dumps(mixture))
    assert digest(again) == digest(mixture)
    assert np.array_equal(again.predict_proba(X), mixture.predict_proba(X))
    fresh = clone(mixture)
    assert fresh.get_params() == mixture.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(X)


def test_names_of_columns_are_checked_and_outputs_are_named():
    X = pd.DataFrame(blobs(100)[0], columns=["width", "height"])
    mixture = FlowMixture().fit(X)
    assert mixture.feature_names_in_.tolist() == ["width", "height"]
    assert mixture.get_feature_names_out().tolist() == ["flowmixture0", "flowmixture1", "flowmixture2"]
    with pytest.raises(ValueError, match="feature names"):
        mixture.predict(X.rename(columns={"width": "depth"}))


def test_polish_raises_the_likelihood():
    X, _ = blobs(500, noise=1.5)
    polished, rough = FlowMixture(3).fit(X), FlowMixture(3, polish=False).fit(X)
    assert polished.score(X) >= rough.score(X) - 1e-9


# ---- data as they come


def test_columns_of_very_different_scale():
    X, truth = blobs(300)
    mixture = FlowMixture().fit(X * [1e-6, 1e6])
    assert adjusted_rand_score(truth, mixture.labels_) == 1


def test_constant_columns_change_nothing():
    X, _ = blobs(300)
    plain, padded = FlowMixture().fit(X), FlowMixture().fit(np.c_[X, np.full(300, 7.0)])
    assert np.array_equal(plain.labels_, padded.labels_)
    assert np.array_equal(padded.cluster_centers_[:, 2], np.full(3, 7.0))
    np.testing.assert_allclose(padded.cluster_centers_[:, :2], plain.cluster_centers_, atol=1e-9)


def test_duplicates_alone_are_their_own_clusters():
    mixture = FlowMixture().fit(np.repeat(TRIANGLE, [30, 20, 10], 0))
    np.testing.assert_allclose(mixture.cluster_centers_, TRIANGLE, atol=1e-6)
    assert np.bincount(mixture.labels_).tolist() == [30, 20, 10]


@pytest.mark.parametrize("rows", [np.array([[1.0, 2.0]]), np.full((5, 2), 3.0), np.array([[0.0], [0.0]])])
def test_one_distinct_row_is_one_cluster(rows):
    mixture = FlowMixture().fit(rows)
    assert mixture.n_clusters_ == 1
    assert mixture.noise_variance_ == 0
    assert np.array_equal(mixture.cluster_centers_, rows[:1])
    assert np.array_equal(mixture.predict(rows + 1), np.zeros(len(rows)))
    assert mixture.flow_.cut(3.0).n_clusters == 1


def test_fewer_rows_than_columns():
    rng = np.random.default_rng(0)
    assert max(FlowMixture().fit(rng.standard_normal((10, 30))).n_clusters_ for _ in range(4)) <= 3
    centres = 3 * rng.standard_normal((2, 30))
    X, truth = blobs(12, centres, noise=1.0)
    assert adjusted_rand_score(truth, FlowMixture().fit(X).labels_) == 1


@pytest.mark.parametrize("d", [1, 2, 8])
def test_a_single_gaussian_is_one_cluster(d):
    found = [FlowMixture().fit(np.random.default_rng(s).standard_normal((300, d))).n_clusters_ for s in range(8)]
    assert found.count(1) >= 7


def background(share):
    X, truth = blobs(500)
    noise = np.random.default_rng(1).uniform(-10, 10, (int(500 * share), 2))
    return np.concatenate([X, noise]), truth


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_uniform_background_becomes_one_wide_cluster(share):
    X, truth = background(share)
    with pytest.warns(UnfamiliarDataWarning, match="spread unlike"):
        mixture = FlowMixture().fit(X)
    assert mixture.n_clusters_ == 4
    assert adjusted_rand_score(truth, mixture.labels_[:500]) > 0.97
    assert np.mean(mixture.labels_[500:] == 3) > 0.9
    np.testing.assert_allclose(np.sort(mixture.cluster_centers_[:3], 0), np.sort(TRIANGLE, 0), atol=0.2)


def test_heavy_tails_are_warned_of():
    X = np.random.default_rng(0).standard_t(2, (500, 2))
    with pytest.warns(UnfamiliarDataWarning):
        mixture = FlowMixture().fit(X)
    assert mixture.weights_[0] > 0.7


def test_unequal_spreads_are_warned_of():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 0.2, (300, 2)), rng.normal(8, 2, (300, 2))])
    with pytest.warns(UnfamiliarDataWarning, match="spread unlike") as caught:
        mixture = FlowMixture().fit(X)
    assert caught[0].filename == __file__  # the warning points at the caller
    assert mixture.n_clusters_ == 2
    np.testing.assert_allclose(np.sqrt(np.diagonal(mixture.covariances_, 0, 1, 2)), [[2.0] * 2, [0.2] * 2], rtol=0.1)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_the_first_missing_value_is_named(value, word):
    X = blobs(20)[0]
    X[7, 1] = X[12, 0] = value
    with pytest.raises(ValueError, match=rf"{word} at row 7, column 1 \(2 such rows\)"):
        FlowMixture().fit(X)
    with pytest.raises(ValueError, match=f"{word} at row 7, column 'height'"):
        FlowMixture().fit(pd.DataFrame(X, columns=["width", "height"]))


def test_rows_with_missing_values_can_be_dropped():
    X, _ = blobs(200)
    holes = X.copy()
    holes[[3, 50], [0, 1]] = np.nan, np.inf
    kept = np.delete(np.arange(200), [3, 50])
    mixture, whole = FlowMixture(missing="drop").fit(holes), FlowMixture().fit(X[kept])
    assert mixture.labels_[[3, 50]].tolist() == [-1, -1]
    assert np.array_equal(mixture.labels_[kept], whole.labels_)
    assert np.array_equal(mixture.predict(holes), mixture.labels_)
    with pytest.raises(ValueError, match="2 rows with missing values"):
        mixture.predict_proba(holes)
    with pytest.raises(ValueError, match="no row without missing values"):
        FlowMixture(missing="drop").fit(np.full((3, 2), np.nan))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": 2.5}, "n_clusters"),
        ({"n_clusters": True}, "n_clusters"),
        ({"snr_db": np.nan}, "snr_db"),
        ({"snr_db": 500.0}, "snr_db"),
        ({"snr_db": "high"}, "snr_db"),
        ({"n_layers": 0}, "n_layers"),
        ({"schedule": "cosine"}, "schedule"),
        ({"missing": "guess"}, "missing"),
        ({"model": "no-such-model"}, "any-dimension"),
        ({"model": "flow-transformer"}, "AnyDimensionFlow"),
    ],
)
def test_wrong_parameters_are_named(options, word):
    with pytest.raises(ValueError, match=word):
        FlowMixture(**options).fit(blobs(20)[0])


def test_a_model_can_be_a_name_a_folder_or_a_module(tmp_path):
    X, _ = blobs(100)
    model = load_pretrained("any-dimension")
    folder = save_model(model, tmp_path / "model")
    assert (
        len({digest(FlowMixture(model=given).fit(X)) for given in ("any-dimension", folder, str(folder), model)}) == 1
    )
    save_model(FlowTransformer(), tmp_path / "other")
    with pytest.raises(ValueError, match="AnyDimensionFlow"):
        FlowMixture(model=tmp_path / "other").fit(X)


# ---- more rows than fit at once


def test_parts_give_the_answer_of_the_whole():
    X, _ = blobs(300)
    whole = FlowMixture().fit(X)
    parts = FlowMixture()
    for part in np.array_split(X, 3):
        parts.partial_fit(part)
    assert np.array_equal(parts.cluster_centers_, whole.cluster_centers_)
    assert np.array_equal(parts.predict(X), whole.labels_)
    assert np.array_equal(parts.labels_, whole.labels_[200:])
    later = FlowMixture().fit(X[:100]).partial_fit(X[100:])
    assert np.array_equal(later.cluster_centers_, whole.cluster_centers_)
    assert np.array_equal(later.fit(X[:100]).cluster_centers_, FlowMixture().fit(X[:100]).cluster_centers_)


def test_parts_beyond_the_memory_of_the_summary():
    X, truth = blobs(30_000)
    parts = FlowMixture()
    for part in np.array_split(X, 3):
        parts.partial_fit(part)
    assert parts.n_clusters_ == 3
    assert adjusted_rand_score(truth, parts.predict(X)) > 0.999
    assert np.sort(parts.weights_) == pytest.approx(np.sort(np.bincount(truth) / 30_000), abs=0.02)


def test_many_rows():
    X, truth = blobs(50_000)
    mixture = FlowMixture().fit(X)
    assert adjusted_rand_score(truth, mixture.labels_) > 0.999


def test_dask_arrays_give_the_answer_of_rows_in_memory():
    da = pytest.importorskip("dask.array")
    import dask

    X, _ = blobs(300)
    w = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    here = FlowMixture().fit(X, sample_weight=w)
    with dask.config.set(scheduler="synchronous"):
        there = FlowMixture().fit(da.from_array(X, chunks=(90, 1)), sample_weight=w)
        assert np.array_equal(there.labels_, here.labels_)
        assert np.array_equal(there.cluster_centers_, here.cluster_centers_)
        with pytest.raises(ValueError, match="NaN"):
            FlowMixture().fit(da.full((20, 2), np.nan, chunks=10))
        with pytest.raises(ValueError, match="sample_weight"):
            FlowMixture().fit(da.ones((20, 2), chunks=10), sample_weight=np.ones(3))


def test_rows_too_close_to_square_are_refused_not_merged():
    with pytest.raises(ValueError, match="varies by less than"):
        FlowMixture().fit(1e-200 * np.arange(10.0).reshape(5, 2))


# ---- many columns


def wide(d=300, n=240):
    """The corners of a tetrahedron in many columns, noise of one in each."""
    rng = np.random.default_rng(0)
    corners = 4.0 * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    axes = np.linalg.qr(rng.normal(size=(d, 3)))[0]
    truth = rng.integers(4, size=n)
    return (corners @ axes.T)[truth] + rng.normal(size=(n, d)), truth


def test_many_columns_are_projected_onto_the_signal_and_back():
    X, truth = wide()
    mixture = FlowMixture(random_state=0).fit(X)
    assert adjusted_rand_score(truth, mixture.labels_) > 0.95
    assert mixture.cluster_centers_.shape == (mixture.n_clusters_, 300)
    means = np.stack([X[mixture.labels_ == k].mean(0) for k in range(mixture.n_clusters_)])
    assert mixture.n_clusters_ == 4
    assert np.linalg.norm(mixture.cluster_centers_ - means, axis=1).max() < 3  # the means are 2.2 from the truth
    assert mixture.noise_variance_ == pytest.approx(1.0, rel=0.1)
    new, labels = mixture.sample(2000)
    for k in range(mixture.n_clusters_):
        assert np.var(new[labels == k], axis=0).mean() == pytest.approx(1.0, rel=0.1)


def test_densities_in_many_columns_are_those_of_the_whole_space():
    X, _ = wide(d=80)
    mixture = FlowMixture().fit(X)
    noise = [multivariate_normal(c, C) for c, C in zip(mixture.cluster_centers_, mixture.covariances_, strict=True)]
    logs = np.stack([np.log(p) + part.logpdf(X) for p, part in zip(mixture.weights_, noise, strict=True)])
    np.testing.assert_allclose(mixture.score_samples(X), np.logaddexp.reduce(logs), rtol=1e-6)


def test_noise_alone_in_many_columns_is_one_cluster():
    assert FlowMixture().fit(np.random.default_rng(0).normal(size=(200, 150))).n_clusters_ == 1


def test_a_known_noise_is_round_however_uneven_the_columns():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (200, 8)), rng.normal(0, 1, (100, 8)) + 60 * np.eye(8)[0]])
    snr_db = 10 * np.log10(60**2 * (2 / 9) / 8)
    assert FlowMixture(snr_db=snr_db).fit(X).n_clusters_ == 2
    assert FlowMixture().fit(X).n_clusters_ == 2


def test_columns_that_are_sums_of_others_change_little():
    X, truth = blobs(300)
    plain, more = FlowMixture().fit(X), FlowMixture().fit(np.c_[X, X.sum(1), 2 * X[:, 0] + 1])
    assert adjusted_rand_score(truth, more.labels_) == 1
    np.testing.assert_allclose(more.cluster_centers_[:, :2], plain.cluster_centers_, atol=1e-3)
    line = np.random.default_rng(0).normal(size=200)
    assert FlowMixture().fit(np.c_[line, 2 * line, line + 1]).n_clusters_ == 1


def test_a_known_ratio_holds_in_many_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 100))
    X[:50] += 3.0
    snr_db = 10 * np.log10(9 * 2 / 9)
    assert FlowMixture(snr_db=snr_db).fit(X).n_clusters_ == 2
