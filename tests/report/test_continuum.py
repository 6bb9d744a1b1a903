"""Pieces of one shape are told from groups: borders of a continuum are as full as its middle."""

import numpy as np
import pandas as pd
import pytest

from measureflow import FlowMixture
from measureflow.report.continuum import pieces
from measureflow.report.summary import Summary
from measureflow.tables.read import choose_columns


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_square_cut_in_two_is_one_piece():
    square = rng().uniform(-1, 1, (600, 2))
    assert pieces(square, (square[:, 0] > 0.1).astype(int)) == [[0, 1]]


@pytest.mark.parametrize("d", [1, 2, 8])
@pytest.mark.parametrize("away", [5.0, 12.0])
def test_groups_with_a_gap_are_not_pieces(d, away):
    step = np.zeros(d)
    step[0] = away
    X = np.concatenate([rng(k).standard_normal((80, d)) + k * step for k in range(3)])
    assert pieces(X, np.repeat([0, 1, 2], 80)) == []


def test_two_moons_in_eight_pieces_are_two_shapes():
    angle = rng().uniform(0, np.pi, 800)
    upper = np.arange(800) % 2
    X = np.stack([np.cos(angle) * (1 - 2 * upper) + upper, np.sin(angle) * (1 - 2 * upper) + 0.5 * upper], 1)
    X += 0.05 * rng(1).standard_normal(X.shape)
    labels = 4 * upper + np.minimum((4 * angle / np.pi).astype(int), 3)
    found = pieces(X, labels)
    assert found
    assert all(set(group) <= {0, 1, 2, 3} or set(group) <= {4, 5, 6, 7} for group in found)


def test_neither_units_nor_order_nor_outliers_matter():
    square = rng().uniform(-1, 1, (500, 2))
    labels = np.digitize(square[:, 0], [-0.3, 0.4])
    found = pieces(square, labels)
    order = rng(1).permutation(500)
    assert pieces((square * [1e6, 1e-3] + [5, 7])[order], labels[order]) == found
    far = np.concatenate([square, [[90.0, 90.0]]])
    assert pieces(far, np.append(labels, -1)) == found


def test_one_cluster_or_none_has_no_pieces():
    X = rng().standard_normal((50, 2))
    assert pieces(X, np.zeros(50, int)) == pieces(X, np.full(50, -1)) == []


def test_a_summary_warns_of_a_cut_square():
    table = choose_columns(pd.DataFrame(rng().uniform(0, 1, (400, 2)), columns=["a", "b"]))
    summary = Summary.of(table, FlowMixture(n_clusters=4, assume="gaussian").fit(table.numbers))
    assert any("meet without a gap: they may be pieces of one shape" in words for words in summary.diagnosis)
