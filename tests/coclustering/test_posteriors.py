"""What a flow says of rows does not hang on their units."""

import numpy as np
import pytest
import torch

from measureflow.coclustering.posteriors import of_shapes
from measureflow.models import AnyShapeConfig, AnyShapeFlow

POINTS = np.random.default_rng(0).normal(size=(40, 2))


@pytest.fixture
def flow() -> AnyShapeFlow:
    torch.manual_seed(0)
    return AnyShapeFlow(AnyShapeConfig(n_layers=2)).double().eval()


@pytest.mark.parametrize("unit", [1e-6, 1e14, 1e20, 1e100, 1e200])
def test_units_do_not_matter_even_beyond_what_float32_holds(flow, unit):
    here, there = of_shapes(flow, POINTS), of_shapes(flow, unit * POINTS)
    np.testing.assert_allclose(there.together, here.together, atol=1e-9)  # float64 through two layers


def test_float32_is_given_what_it_holds(flow):
    far = np.vstack([POINTS, [[1e150, 0.0]]])
    said = of_shapes(flow.float(), far)
    assert np.isfinite(said.together).all()
    assert np.isfinite(said.outlying).all()
