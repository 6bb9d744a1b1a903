"""Lloyd's algorithm with binary codes for the clusters: exact on a stream of width d + ceil(log2 k)."""

import math

import numpy as np
import pytest
import torch

from measureflow.circuits import kmeans_transformer, textbook
from measureflow.circuits.clarkson.lean import codes, lean_kmeans_transformer, matrix_entries


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 8, 9, 17])
def test_layers_are_iterations_in_the_width_stated(k):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(20 * k, 3)) + rng.normal(size=(k, 3))[np.arange(20 * k) % k]
    C = X[:k].copy()
    net = lean_kmeans_transformer(3, k, n_layers=6)
    assert net.stream.width == 3 + max(1, math.ceil(math.log2(k)))
    path = textbook.run(textbook.lloyd, X, C, 6)
    moved = 0
    for got, (Y, centers) in zip(net.trace(torch.tensor(X), torch.tensor(C)), path, strict=True):
        np.testing.assert_array_equal(got.labels.numpy(), Y.argmax(1))
        np.testing.assert_allclose(got.centers.numpy(), centers, atol=1e-12)
        moved += int((Y.argmax(1) != path[0][0].argmax(1)).sum())
    assert k < 3 or moved > 0  # the layers do something


def test_codes_are_signs_and_distinct():
    for k in (1, 2, 7, 64, 65):
        C = codes(k)
        assert (C.abs() == 1).all()
        overlap = C @ C.T
        width = C.shape[1]
        assert (overlap.diagonal() == width).all()
        assert k == 1 or (overlap - 2 * width * torch.eye(k, dtype=C.dtype)).max() <= width - 2


def test_parameters_are_twelve_squares_of_the_width():
    d, k = 4, 33
    lean, plain = lean_kmeans_transformer(d, k, n_layers=2), kmeans_transformer(d, k, n_layers=2)
    assert matrix_entries(lean) == 2 * 12 * (d + 6) ** 2
    assert matrix_entries(plain) == 2 * 12 * (d + k) ** 2


def test_an_empty_cluster_moves_to_the_points_of_the_nearest_code():
    X = torch.tensor([[0.0], [1.0], [10.0], [11.0]], dtype=torch.float64)
    start = torch.tensor([[0.5], [99.0], [10.5]], dtype=torch.float64)  # codes --, -+, +-
    centers = lean_kmeans_transformer(1, 3, n_layers=1)(X, start)
    assert centers.flatten().tolist() == [0.5, 0.5, 10.5]
    assert kmeans_transformer(1, 3, n_layers=1)(X, start).flatten().tolist() == [0.5, 5.5, 10.5]


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="k must be a whole number, at least 1, got 0"):
        lean_kmeans_transformer(2, 0)
    with pytest.raises(ValueError, match=r"centers must have shape \(\*batch, 3, 2\), got \(2, 2\)"):
        lean_kmeans_transformer(2, 3)(np.zeros((5, 2)), np.zeros((2, 2)))
