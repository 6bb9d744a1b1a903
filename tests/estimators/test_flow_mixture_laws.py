"""The laws FlowMixture declares: repetition, order, motion, and the same bits every time."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from clusters import any_data, blobs, digest
from measureflow import FlowMixture

EXAMPLES = int(os.environ.get("MEASUREFLOW_EXAMPLES", "12"))  # make fuzz asks for 1,000
law = settings(  # a seed says nothing more when it is shrunk
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


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
    assert_carried(here, there, lambda centers: scale * (centers + shift), scale * np.ptp(X))
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
    assert_carried(here, there, lambda centers: centers @ Q.T, np.ptp(X))


def test_turning_takes_the_same_sample_of_many_rows():
    X, _ = blobs(3000, noise=1.5)
    angle = 0.7
    Q = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    here, there = FlowMixture().fit(X), FlowMixture().fit(X @ Q.T)
    assert adjusted_rand_score(here.labels_, there.labels_) == 1


# ---- the same bits


def test_the_same_bits_in_another_process():
    script = (
        "from clusters import blobs, digest; from measureflow import FlowMixture; "
        "print(digest(FlowMixture().fit(blobs(400, noise=1.0)[0])))"
    )
    env = os.environ | {"PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(__file__).parents[1])}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env)
    assert run.stdout.strip() == digest(FlowMixture().fit(blobs(400, noise=1.0)[0]))


def test_fitting_leaves_every_generator_alone():
    state = torch.get_rng_state()
    FlowMixture(random_state=0).fit(blobs(60)[0])
    assert torch.equal(state, torch.get_rng_state())
