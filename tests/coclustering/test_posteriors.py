"""What a flow says of rows does not depend on their units; columns that may have units of their own are seen twice."""

import numpy as np
import pytest
import torch
from scipy.special import logit

from measureflow.coclustering.posteriors import of_shapes, views
from measureflow.models import AnyShapeConfig, AnyShapeFlow

POINTS = np.random.default_rng(0).normal(size=(40, 2))


@pytest.fixture
def flow() -> AnyShapeFlow:
    torch.manual_seed(0)
    return AnyShapeFlow(AnyShapeConfig(n_layers=2)).double().eval()


@pytest.mark.parametrize("unit", [1e-6, 1e14, 1e20, 1e100, 1e200])
def test_units_do_not_matter_even_beyond_what_float32_holds(flow, unit):
    here, there = of_shapes(flow, views(POINTS)), of_shapes(flow, views(unit * POINTS))
    np.testing.assert_allclose(there.together, here.together, atol=1e-9)  # float64 through two layers


def test_float32_is_given_what_it_holds(flow):
    far = np.vstack([POINTS, [[1e150, 0.0]]])
    said = of_shapes(flow.float(), views(far))
    assert np.isfinite(said.together).all()
    assert np.isfinite(said.outlying).all()


def test_even_columns_are_seen_as_they_are():
    assert np.array_equal(views(POINTS), POINTS[None])
    assert np.array_equal(views(POINTS * [1, 2]), (POINTS * [1, 2])[None])
    assert np.array_equal(views(POINTS * [1, 0]), (POINTS * [1, 0])[None])  # a column without spread has no unit


def test_uneven_columns_are_seen_in_units_of_their_spread_too():
    own, common = views(POINTS * [1, 7])
    assert np.array_equal(own, POINTS * [1, 7])
    np.testing.assert_allclose(common.std(0), 1)
    np.testing.assert_allclose(common, POINTS / POINTS.std(0))


def test_logits_are_averaged_over_the_views(flow):
    seen = views(POINTS * [1, 7])
    both, each = of_shapes(flow, seen), [of_shapes(flow, view[None]) for view in seen]
    np.testing.assert_allclose(logit(both.together), np.mean([logit(one.together) for one in each], 0), atol=1e-9)
    np.testing.assert_allclose(logit(both.outlying), np.mean([logit(one.outlying) for one in each], 0), atol=1e-9)
    numbers = np.array([list(one.n_clusters.values()) for one in each])
    wanted = np.exp(np.log(numbers).mean(0))
    np.testing.assert_allclose(list(both.n_clusters.values()), wanted / wanted.sum(), atol=1e-9)
