"""AnyDimensionFlow is equivariant by construction, and contains EM."""

import pytest
import torch

from measureflow.measures.priors import MixturePrior
from measureflow.models.any_dimension import AnyDimensionConfig, AnyDimensionFlow


def random_model() -> AnyDimensionFlow:
    """Weights far from their start, so that every path carries something."""
    torch.manual_seed(0)
    model = AnyDimensionFlow(AnyDimensionConfig(n_layers=3, max_flow=3.0)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def problem(d: int, n: int = 25):
    batch = MixturePrior(d=d).sample(2, n, torch.Generator().manual_seed(d))
    return batch.points.double(), batch.snr_db.double()


@pytest.mark.parametrize("d", [1, 2, 5, 16])
def test_hand_set_gates_make_it_em(d):
    x, snr = problem(d)
    variance = x.var(1, unbiased=False).mean(-1) / (1 + 10 ** (snr / 10))
    y = x
    for _ in range(4):
        r = torch.softmax(-torch.cdist(y, x).square() / (2 * variance[:, None, None]), 1)  # tokens compete for data
        y = (r @ x) / r.sum(-1, keepdim=True)
    torch.testing.assert_close(AnyDimensionFlow.em(4).double()(x, snr), y, rtol=0, atol=1e-11)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_output_turns_shifts_scales_and_permutes_with_the_input(d):
    x, snr = problem(d)
    model = random_model()
    y = model(x, snr)
    assert (y - x).abs().max() > 0.1
    turn, _ = torch.linalg.qr(torch.randn(d, d, dtype=x.dtype, generator=torch.Generator().manual_seed(3)))
    order = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(4))
    torch.testing.assert_close(model(x @ turn.mT, snr), y @ turn.mT, rtol=0, atol=1e-9)
    torch.testing.assert_close(model(2.5 * x - 4.0, snr), 2.5 * y - 4.0, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(model(x[:, order], snr), y[:, order], rtol=0, atol=1e-9)


def test_mass_two_is_a_row_twice_and_mass_zero_is_no_row():
    x, snr = problem(2, n=12)
    model = random_model()
    counts = torch.tensor([2, 1, 3, 1, 0, 1, 1, 2, 1, 0, 1, 1])
    repeated = model(x.repeat_interleave(counts, 1), snr)
    weighed = model(x, snr, weights=counts.double().expand(2, -1))
    torch.testing.assert_close(weighed.repeat_interleave(counts, 1), repeated, rtol=0, atol=1e-9)


def test_the_number_of_points_is_seen_not_the_size_of_the_weights():
    """A hundred points are less certain than a thousand at the same places; beyond those numbers nothing changes."""
    x, snr = problem(2, n=50)
    model = random_model()
    one, ten, hundred, more = (model(x, snr, weights=torch.full((2, 50), w).double()) for w in (2.0, 8.0, 100.0, 1e6))
    assert (one - ten).abs().max() > 1e-3
    torch.testing.assert_close(hundred, more, rtol=0, atol=1e-9)


def test_unused_dimensions_would_not_break_it():
    """A model built once runs in any dimension, one row or many."""
    model = random_model()
    for d, n in ((1, 1), (3, 2), (64, 5)):
        assert model(torch.randn(1, n, d, dtype=torch.float64), torch.tensor([10.0]).double()).shape == (1, n, d)


def test_every_parameter_gets_a_gradient():
    x, snr = problem(3)
    model = random_model()
    path, noise = model.flow_and_noise(x, snr)
    (path[-1].square().sum() + noise.sum()).backward()
    silent = [name for name, p in model.named_parameters() if p.grad is None or p.grad.abs().max() == 0]
    assert not silent
