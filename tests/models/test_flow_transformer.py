"""The flow transformer does what appendix C of Zimin 2025 says, whatever its weights are."""

import pytest
import torch

from measureflow.measures.priors import MixturePrior
from measureflow.models import AnyDimensionFlow, FlowTransformer, FlowTransformerConfig

SMALL = {"width": 16, "n_heads": 2, "hidden": 16, "n_layers": 4, "max_flow": 4.0}


def model(**changes) -> FlowTransformer:
    torch.manual_seed(0)
    made = FlowTransformer(FlowTransformerConfig(**(SMALL | changes))).double().eval()
    with torch.no_grad():
        made.outside.normal_(std=0.3)  # a fresh model ignores the null space: give it something to get wrong
    return made


@pytest.fixture
def data():
    batch = MixturePrior(d=2).sample(3, 20, torch.Generator().manual_seed(1))
    return batch.points.double(), batch.snr_db.double()


def test_without_flow_it_is_the_identity(data):
    x, snr = data
    torch.testing.assert_close(model(max_flow=0.0)(x, snr), x, rtol=0, atol=1e-12)


@pytest.mark.parametrize("changes", [{}, {"distinct": True}, {"schedule": "unit"}, {"schedule": "no-flow"}])
def test_output_shifts_scales_and_permutes_with_the_input(data, changes):
    x, snr = data
    flow = model(**changes)
    y = flow(x, snr)
    assert (y - x).abs().max() > 0.1  # it does move
    order = torch.randperm(20, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(flow(3.0 * x + 7.0, snr), 3.0 * y + 7.0, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(flow(x[:, order], snr), y[:, order], rtol=1e-9, atol=1e-9)


def test_schedules_coincide_when_the_flow_equals_the_depth(data):
    x, snr = data
    flow = model(snr_low=1000.0, snr_high=1001.0)  # far below the range F is at its height, max_flow = n_layers
    uniform, unit, none = (flow(x, snr, schedule=s) for s in ("uniform", "unit", "no-flow"))
    torch.testing.assert_close(uniform, unit, rtol=0, atol=1e-12)
    torch.testing.assert_close(uniform, none, rtol=0, atol=1e-12)


def test_unit_layers_keep_a_fraction_only_while_training(data):
    _, snr = data
    flow = model(schedule="unit")
    evaluated = torch.stack(list(flow.steps(snr, "unit", 4)))
    assert set(evaluated.unique().tolist()) <= {0.0, 1.0}
    flow.train()
    trained = torch.stack(list(flow.steps(snr, "unit", 4)))
    torch.testing.assert_close(trained.sum(0), flow.speed(snr))
    trained.sum().backward()
    assert flow.speed.positions.grad.abs().max() > 0


def test_flow_speed_decreases_for_any_parameters():
    flow = model()
    with torch.no_grad():
        for parameter in flow.speed.parameters():
            parameter.normal_(std=3.0)
    T = flow.speed(torch.linspace(-5, 25, 200, dtype=torch.float64))
    assert (T.diff() <= 0).all()
    assert T.min() >= 0
    assert T.max() <= flow.config.max_flow


def test_flow_reads_out_every_layer(data):
    x, snr = data
    flow = model()
    path = flow.flow(x, snr)
    assert len(path) == 5
    torch.testing.assert_close(path[0], x, rtol=0, atol=1e-12)
    torch.testing.assert_close(path[-1], flow(x, snr))


def test_embedding_is_orthonormal():
    P = model().projection()
    torch.testing.assert_close(P.mT @ P, torch.eye(2, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("points", "snr", "word"),
    [((3, 20, 3), (3,), "points"), ((20, 2), (3,), "points"), ((3, 20, 2), (2,), "snr_db")],
)
def test_wrong_shapes_are_named(points, snr, word):
    with pytest.raises(ValueError, match=word):
        model()(torch.zeros(points, dtype=torch.float64), torch.zeros(snr, dtype=torch.float64))


@pytest.mark.parametrize("kind", [FlowTransformer, AnyDimensionFlow])
def test_values_that_are_not_finite_are_named(kind):
    x, snr = torch.zeros(1, 3, 2), torch.zeros(1)
    with pytest.raises(ValueError, match="points has 6 non-finite"):
        kind()(x * torch.nan, snr)
    with pytest.raises(ValueError, match="snr_db has 1 non-finite"):
        kind()(x, snr - torch.inf)


def test_wrong_words_are_named():
    with pytest.raises(ValueError, match="schedule"):
        FlowTransformerConfig(schedule="sideways")
    with pytest.raises(ValueError, match="width"):
        FlowTransformerConfig(width=10, n_heads=4)
    with pytest.raises(ValueError, match="n_layers must be 4"):
        model(distinct=True)(torch.randn(1, 5, 2).double(), torch.zeros(1).double(), n_layers=8)
