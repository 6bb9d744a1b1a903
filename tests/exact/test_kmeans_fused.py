"""The fused passes against the transformer and the textbook: the same numbers without the tokens."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.kmeans_cases import SEED, generic, gumbel_numbers
from measureflow.attention import NormMax, Softmax, Sparsemax
from measureflow.circuits import kmeans_transformer, textbook
from measureflow.circuits.clarkson import rows
from measureflow.circuits.clarkson.geometry import Euclidean, Spherical
from measureflow.circuits.clarkson.selections import PercentileCut, TopKSoftmax
from measureflow.lloyd import empty_clusters
from measureflow.lloyd import steps as fused
from measureflow.lloyd.points import Points

WEIGHED = {
    "percentile": (PercentileCut(60.0, 1e3), lambda X, C, **o: textbook.trimmed(X, C, 60.0, **o)),
    "normmax": (NormMax(math.inf, 0.3), lambda X, C, **o: textbook.trimmed_by_norm(X, C, 0.3, **o)),
    "softmax": (Softmax(2.0), lambda X, C, **o: textbook.robust(X, C, textbook.softmax_weights(2.0), **o)),
    "sparsemax": (Sparsemax(0.2), lambda X, C, **o: textbook.robust(X, C, textbook.sparsemax_weights(0.2), **o)),
    "topk": (TopKSoftmax(3, 2.0), lambda X, C, **o: textbook.robust(X, C, textbook.topk_weights(3, 2.0), **o)),
}

POLICIES = {"mean": empty_clusters.to_mean, "keep": empty_clusters.keep, "relocate": empty_clusters.relocate}


def weights(n, weighed):
    return np.random.default_rng(1).integers(0, 4, n).astype(float) if weighed else None


@pytest.mark.parametrize("geometry", [Euclidean, Spherical])
@pytest.mark.parametrize("weighed", [False, True])
def test_lloyd_equals_the_transformer_layer_by_layer(geometry, weighed):
    X, C = generic(geometry, 300, 5, 6, seed=4)
    w = weights(len(X), weighed)
    net = kmeans_transformer(5, 6, rows.lloyd(math.inf, geometry()), n_layers=8)
    points = Points(X, w, spherical=geometry is Spherical)
    for layer in net.trace(torch.tensor(X), torch.tensor(C), None if w is None else torch.tensor(w)):
        labels, C = fused.lloyd_step(points, C)
        assert np.array_equal(labels, layer.labels.numpy())
        np.testing.assert_allclose(C, layer.centers.numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", WEIGHED)
@pytest.mark.parametrize("spherical", [False, True])
@pytest.mark.parametrize("weighed", [False, True])
def test_weighed_rows_equal_the_textbook(name, spherical, weighed):
    weigh, step = WEIGHED[name]
    X, C = generic(Spherical if spherical else Euclidean, 80, 3, 4, seed=9)
    w = weights(len(X), weighed)
    points = Points(X, w, spherical=spherical)
    for _ in range(4):
        labels, got = fused.weighed_step(points, C, weigh)
        Y, C = step(X, C, w=w, spherical=spherical)
        assert np.array_equal(labels, Y.argmax(1))
        np.testing.assert_allclose(got, C, rtol=0, atol=1e-12)


@pytest.mark.parametrize("spherical", [False, True])
def test_soft_equals_the_textbook(spherical):
    X, C = generic(Spherical if spherical else Euclidean, 200, 3, 5, seed=3)
    w = weights(len(X), True)
    for _ in range(4):
        _, got = fused.soft_step(Points(X, w, spherical=spherical), C, 0.7)
        _, C = textbook.soft(X, C, 0.7, w, spherical)
        np.testing.assert_allclose(got, C, rtol=0, atol=1e-12)


@pytest.mark.parametrize("spherical", [False, True])
def test_medoids_draw_the_same_points(spherical):
    X, C = generic(Spherical if spherical else Euclidean, 60, 3, 4, seed=6)
    generator, noise = torch.Generator().manual_seed(SEED), gumbel_numbers(4, len(X), 5)
    for layer in range(5):
        _, got = fused.medoid_step(Points(X, spherical=spherical), C, 0.5, generator)
        _, C = textbook.medoids(X, C, 0.5, noise[layer], None, spherical)
        np.testing.assert_allclose(got, C, rtol=0, atol=1e-12)


@st.composite
def lattices(draw):
    n, k, d = draw(st.integers(1, 9)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    w = rng.integers(0, 3, n).astype(float)
    X, C = rng.integers(-3, 4, (n, d)) / 2, rng.integers(-3, 4, (k, d)) / 2
    offset = draw(st.sampled_from([0.0, 1024.0, 2.0**20]))
    return X + offset, C + offset, w if w.any() else None


@settings(max_examples=150, deadline=None, derandomize=True)
@given(problem=lattices(), empty=st.sampled_from(list(POLICIES)))
def test_ties_empties_and_far_origins(problem, empty):
    X, C, w = problem
    labels, got = fused.lloyd_step(Points(X, w), C, POLICIES[empty])
    Y, right = textbook.lloyd(X, C, w, empty=empty)
    assert np.array_equal(labels, Y.argmax(1))
    np.testing.assert_allclose(got, right, rtol=1e-14, atol=1e-12)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(problem=lattices(), name=st.sampled_from(["percentile", "sparsemax", "topk"]))
def test_ties_and_empties_where_the_decoder_sees_distances(problem, name):
    X, C, w = problem
    weigh, step = WEIGHED[name]
    _, got = fused.weighed_step(Points(X, w), C, weigh)
    _, right = step(X, C, w=w)
    np.testing.assert_allclose(got, right, rtol=1e-14, atol=1e-11)


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**-30, 1.0, 2.0**30, 2.0**100, 2.0**480])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_screening_in_single_precision_loses_no_label(scale, offset):
    """Points a hair apart, of any size and far from the origin: labels are those of the exact distances."""
    rng = np.random.default_rng(0)
    C = rng.normal(size=(20, 3))
    middle = (C[rng.integers(20, size=500)] + C[rng.integers(20, size=500)]) / 2  # near many a tie
    X, C = (middle + offset) * scale, (C + offset) * scale
    labels = Points(X).assign(C).labels
    assert np.array_equal(labels, textbook.similarities(X / scale, C / scale).argmax(1))


def test_the_number_of_threads_changes_no_bit():
    X, C = generic(Euclidean, 20_000, 4, 8, seed=0)
    one, two = (fused.lloyd_step(Points(X, threads=t), C)[1] for t in (1, 2))
    assert np.array_equal(one, two)


def test_single_precision_stays_single_and_close():
    X, C = generic(Euclidean, 5000, 4, 6, seed=0)
    _, exact = fused.lloyd_step(Points(X), C)
    _, single = fused.lloyd_step(Points(X.astype(np.float32)), C.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, exact, rtol=0, atol=1e-4)  # float32 moves a few points across borders
