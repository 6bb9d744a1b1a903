"""Each learned model is a field and a schedule, moved by the one loop: a layer is a step of Euler's method."""

import pytest
import torch

from measureflow.flows import Tokens, integrate
from measureflow.measures import Empirical
from measureflow.models import AnyDimensionFlow, FlowTransformer, FlowTransformerConfig
from measureflow.models.any_dimension import AnyDimensionConfig, Layer
from measureflow.models.flow_transformer import Block
from problems import masses, normal

SNR = torch.tensor([4.0, 9.0], dtype=torch.float64)


def block() -> Block:
    torch.manual_seed(0)
    return Block(width=8, n_heads=2, hidden=8).double()


def transformer(**changes) -> FlowTransformer:
    torch.manual_seed(0)
    shape = {"width": 8, "n_heads": 2, "hidden": 8, "n_layers": 3, "max_flow": 3.0}
    return FlowTransformer(FlowTransformerConfig(**(shape | changes))).double()


def test_a_block_sees_masses():
    x, counts = normal(4, 8, seed=1), torch.tensor([2, 1, 0, 3])
    weighed = block()(Empirical(x, counts))
    repeated = block()(x.repeat_interleave(counts, 0))
    torch.testing.assert_close(weighed.repeat_interleave(counts, 0), repeated, rtol=0, atol=1e-12)  # rounding


def test_a_block_has_a_velocity_elsewhere():
    mu = Empirical(normal(4, 8, seed=1), masses(4, seed=2))
    field, x = block(), normal(3, 8, seed=3)
    torch.testing.assert_close(field.at(mu.points.clone(), mu), field(mu), rtol=0, atol=1e-12)
    joined = Empirical(torch.cat([mu.points, x]), torch.cat([mu.weights, torch.zeros(3)]))
    torch.testing.assert_close(field.at(x, mu), field(joined)[4:], rtol=0, atol=1e-12)  # mass zero is seen by nobody


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("schedule", ["uniform", "unit", "no-flow"])
def test_a_layer_of_the_transformer_is_a_step_of_its_block(schedule, distinct):
    model = transformer(schedule=schedule, distinct=distinct)
    path = model.latent_flow(normal(2, 6, 2, seed=1), SNR)
    steps = list(model.steps(SNR, schedule, 3))
    for layer, h in enumerate(steps):
        velocity = model.blocks[layer if distinct else 0](path[layer])
        expected = path[layer] + torch.as_tensor(h).expand(2)[:, None, None] * velocity
        assert torch.equal(path[layer + 1], expected)
    torch.testing.assert_close(
        torch.as_tensor(path.times[-1]).expand(2), sum(torch.as_tensor(h).expand(2) for h in steps)
    )


def test_a_layer_of_any_dimension_flow_is_the_velocity_of_its_tokens():
    torch.manual_seed(0)
    model = AnyDimensionFlow(AnyDimensionConfig(n_layers=3, max_flow=3.0)).double()
    x, p = normal(2, 7, 3, seed=1), torch.full((2, 7), 1 / 7, dtype=torch.float64)
    tokens = Tokens(normal(2, 7, 3, seed=2), normal(2, 7, model.config.n_features, seed=3))
    field = Layer(model, x, p)
    v, change = field(tokens)
    whole, half = (integrate(field, tokens, [h])[-1] for h in (1.0, 0.5))
    assert torch.equal(whole.positions, tokens.positions + v)
    assert torch.equal(half.positions, tokens.positions + 0.5 * v)
    assert torch.equal(half.features, tokens.features + change)  # what a token remembers has no clock
    assert v.abs().max() > 0.01
    assert change.abs().max() > 0.01


def test_the_flow_begins_at_the_data_and_lasts_as_long_as_the_snr_says():
    torch.manual_seed(0)
    model, x = AnyDimensionFlow(AnyDimensionConfig(n_layers=3)).double(), normal(2, 7, 3, seed=1)
    path = model.flow(x, SNR)
    assert len(path) == 4
    assert torch.equal(path[0], x)
    torch.testing.assert_close(path.times[-1], model.speed(SNR))
