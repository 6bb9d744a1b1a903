"""Each learned model is a field and a schedule, moved by the one loop: a layer is a step of Euler's method."""

import pytest
import torch

from measureflow.flows import Tokens, euler, integrate
from measureflow.measures import Empirical
from measureflow.models import AnyDimensionFlow, AnyShapeConfig, FlowTransformer, FlowTransformerConfig
from measureflow.models.any_dimension import AnyDimensionConfig, Layer
from measureflow.models.any_shape.layer import ShapeLayer
from measureflow.models.any_shape.tokens import ColouredTokens, LimitedGradient, all_but_own, on_sphere
from measureflow.models.flow_transformer import Block
from measureflow.models.in_context import InContextClusterer, standardised
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


def test_a_layer_of_any_shape_flow_is_the_velocity_of_its_tokens():
    torch.manual_seed(0)
    layer = ShapeLayer(AnyShapeConfig(n_features=8, n_colours=2)).double()
    rows, y, c, f = (normal(2, 9, width, seed=seed) for seed, width in enumerate((3, 3, 4, 8)))
    tokens = ColouredTokens(rows, y, on_sphere(c), f, torch.zeros(2, 9, 1, dtype=torch.float64), all_but_own(y))
    v, turn, change = layer(tokens)
    half = integrate(layer, tokens, [0.5], LimitedGradient(euler))[-1]
    assert torch.equal(half.positions, y + 0.5 * v)
    assert torch.equal(half.colours, on_sphere(tokens.colours + 0.5 * turn))
    assert torch.equal(half.features, f + change)
    assert torch.equal(half.rows, rows)
    assert min(part.abs().max() for part in (v, turn, change)) > 0.01


def test_a_limited_gradient_changes_no_state_and_cuts_the_gradient_of_each_token():
    x = normal(2, 9, 3, seed=1).requires_grad_()
    unit = torch.tensor([1.0, 4.0]).double()[:, None, None].expand(2, 9, 1)
    still = ColouredTokens(x, x, on_sphere(x), x, unit.log(), all_but_own(x))
    same = still.with_limited_gradients()
    assert all(torch.equal(a, b) for a, b in zip(still, same, strict=True))
    (gradient,) = torch.autograd.grad((1e3 * same.positions).sum(), x)
    torch.testing.assert_close(gradient.norm(dim=-1) * unit[..., 0], torch.full((2, 9), 5 / 18).double())
    (small,) = torch.autograd.grad((1e-3 * same.features).sum(), x)
    assert torch.equal(small, torch.full_like(small, 1e-3))


@pytest.mark.parametrize("layer_norm", [False, True])
def test_a_layer_of_the_in_context_clusterer_is_two_steps(layer_norm):
    model = InContextClusterer(3, 2, n_layers=2, width=8, layer_norm=layer_norm).double()
    x = standardised(normal(2, 9, 2, seed=1))
    h = model.embed(x)
    for layer in model.layers:
        z = layer.norms[0](h)
        h = h + layer.attention.attend(z, z, None)
        h = h + layer.connected(layer.norms[1](h))
    torch.testing.assert_close(model(x), model.name(h), rtol=0, atol=1e-12)  # rounding of the second scaling
