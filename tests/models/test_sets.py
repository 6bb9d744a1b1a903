"""A model takes points in whatever form they come, and answers in that form."""

import numpy as np
import pytest
import torch

from measureflow.measures import Empirical, checks
from measureflow.models import load_pretrained
from measureflow.models.sets import as_sets

NAMES = ("flow-transformer", "any-dimension")


@pytest.fixture(params=NAMES)
def model(request):
    return load_pretrained(request.param).requires_grad_(False)


@pytest.fixture
def x():
    return torch.randn(3, 40, 2, generator=torch.Generator().manual_seed(0))


def test_the_form_of_the_model_is_left_alone(x):
    snr = torch.zeros(3)
    sets = as_sets(x, snr, torch.zeros(1))
    assert sets.points is x
    assert sets.snr_db is snr
    assert sets.given is None


@pytest.mark.parametrize(
    "snr", [8, 8.0, np.float64(8), torch.tensor(8), [8.0, 8.0, 8.0], torch.full((3,), 8.0).double()]
)
def test_one_number_or_one_for_each_set_in_any_type(model, x, snr):
    assert torch.equal(model(x, snr), model(x, torch.full((3,), 8.0)))


def test_one_set_and_sets_of_sets(model, x):
    y = model(x, torch.tensor([2.0, 8.0, 14.0]))
    one = model(x[1], 8.0)
    assert one.shape == (40, 2)
    assert torch.equal(one, model(x[1:2], torch.tensor([8.0]))[0])
    many = model(x.expand(2, 3, 40, 2), torch.tensor([2.0, 8.0, 14.0]).expand(2, 3))
    assert many.shape == (2, 3, 40, 2)
    torch.testing.assert_close(many[1], y, rtol=1e-4, atol=1e-4)  # batches of three and six round differently
    path = model.flow(x[0], 8.0)
    assert path.points.shape == (len(path), 40, 2)
    assert path.to_pandas().batch.max() == 0
    assert path.divergence == "none"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_dtypes_are_answered_in_kind(model, x, dtype):
    given = x.to(dtype)
    y = model(given, 8.0)
    assert y.dtype == dtype
    # the same numbers in float32, which the model computes in; the answer is rounded to the dtype asked
    digits = max(torch.finfo(dtype).eps, 2**-13)
    torch.testing.assert_close(y.float(), model(given.float(), 8.0), rtol=4 * digits, atol=4 * digits)
    assert {state.dtype for state in model.flow(given, 8.0)} == {dtype}


def test_float64_keeps_the_digits_of_points_far_from_the_origin(model, x):
    y = model(x.double(), 8.0)
    far = 1e9 + 1e-3 * x.double()
    torch.testing.assert_close((model(far, 8.0) - 1e9) / 1e-3, y, rtol=0, atol=1e-3)  # 1e9 has digits down to 1e-7


def test_integers_and_arrays(model, x):
    whole = (10 * x[0]).round()
    expected = model(whole, 8.0)
    assert torch.equal(model(whole.long(), 8), expected)
    assert torch.equal(model(whole.tolist(), 8), expected)
    assert model(whole.numpy().astype(np.float64), 8).dtype == torch.float64


def test_an_empirical_is_answered_by_one(model, x):
    mu = model(Empirical(x[0].double()), 8.0)
    assert isinstance(mu, Empirical)
    assert mu.uniform
    assert torch.equal(mu.points, model(x[0].double(), 8.0))
    assert all(isinstance(state, Empirical) for state in model.flow(Empirical(x), 8.0))


def test_masses_of_an_empirical_count_points(x):
    model = load_pretrained("any-dimension").double().requires_grad_(False)
    x, counts = x[0].double(), torch.arange(40) % 3
    repeated = model(x.repeat_interleave(counts, 0), 8.0)
    weighed = model(Empirical(x, counts), 8.0)
    torch.testing.assert_close(weighed.points.repeat_interleave(counts, 0), repeated, rtol=0, atol=1e-9)
    assert torch.equal(weighed.weights, counts.double())


def test_a_probability_counts_the_points_that_have_mass(x):
    model = load_pretrained("any-dimension").double().requires_grad_(False)
    big = torch.randn(400, 2, generator=torch.Generator().manual_seed(1)).double()
    plain = model(big, 8.0)
    given = model(Empirical(big, torch.full((400,), 1 / 400, dtype=torch.float64)), 8.0).points
    torch.testing.assert_close(given, plain, rtol=0, atol=1e-9)
    padded = model(Empirical.ragged([big, x[0].double()]), 8.0).points
    torch.testing.assert_close(padded[0], plain, rtol=0, atol=1e-9)
    torch.testing.assert_close(padded[1, :40], model(x[0].double(), 8.0), rtol=0, atol=1e-9)


def test_the_flow_stays_on_its_device(monkeypatch, x):
    """No tensor of the model is made elsewhere: the meta device, which holds no numbers, refuses to mix with others."""
    monkeypatch.setattr(checks, "finite", lambda name, tensor: tensor)
    for name in NAMES:
        model = load_pretrained(name).to("meta")
        assert model(x.to("meta"), torch.zeros(3, device="meta")).device.type == "meta"


@pytest.mark.parametrize("schedule", ["uniform", "unit", "no-flow"])
def test_schedules_of_the_flow_in_any_dimension(x, schedule):
    model = load_pretrained("any-dimension")
    path = model.flow(x, torch.tensor([0.0, 8.0, 16.0]), schedule=schedule, n_layers=10)
    steps = torch.stack([torch.as_tensor(t).expand(3) for t in path.times]).diff(dim=0)
    T = model.speed(torch.tensor([0.0, 8.0, 16.0]))
    wanted = {"uniform": T, "unit": T.floor(), "no-flow": torch.full((3,), 10.0)}[schedule]
    torch.testing.assert_close(steps.sum(0), wanted)
    assert schedule == "uniform" or set(steps.unique().tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize(
    ("points", "snr", "word"),
    [
        (torch.zeros(4), 1.0, "points must have shape"),
        (torch.zeros(2, 0, 2), 1.0, "points must hold at least one"),
        (torch.zeros(2, 4, 2), torch.zeros(3), "snr_db must be one number"),
        (torch.zeros(4, 2), torch.zeros(3), "snr_db must be one number"),
        (torch.zeros(4, 2), None, "snr_db must be an array of numbers"),
        (torch.zeros(4, 2), "8", "snr_db must be an array of numbers"),
        (torch.zeros(4, 2), float("nan"), "snr_db has 1 non-finite"),
        (torch.zeros(4, 2).double() / 0, 1.0, "points has 8 non-finite"),
        (torch.zeros(4, 2) + 1j, 1.0, "points must be real"),
        ("points", 1.0, "points must be an array"),
    ],
)
def test_bad_input_is_named(model, points, snr, word):
    with pytest.raises(ValueError, match=word):
        model(points, snr)


def test_masses_that_make_no_sense_are_named():
    with pytest.raises(ValueError, match="equal masses"):
        load_pretrained("flow-transformer")(Empirical(torch.zeros(2, 2), [1, 2]), 5.0)
    flow = load_pretrained("any-dimension")
    with pytest.raises(ValueError, match="weights must be left out"):
        flow(Empirical(torch.zeros(2, 2)), 5.0, weights=[1, 2])
    with pytest.raises(ValueError, match="weights must have shape"):
        flow(torch.zeros(2, 2), 5.0, weights=[1, 2, 3])
    with pytest.raises(ValueError, match="schedule must be one of"):
        flow(torch.zeros(2, 2), 5.0, schedule="cosine")
