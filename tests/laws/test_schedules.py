"""Step sizes of each schedule."""

import pytest
import torch

from measureflow.flows import NoFlow, Uniform, Unit


@pytest.mark.parametrize("T", [0.0, 0.5, 2.6, 7.0])
def test_uniform_shares_its_time(T):
    steps = list(Uniform(T, 5))
    assert len(Uniform(T, 5)) == len(steps) == 5
    assert steps == [T / 5] * 5


@pytest.mark.parametrize(
    ("T", "floor", "fractional"),
    [
        (0.0, [0, 0, 0], [0, 0, 0]),
        (0.6, [0, 0, 0], [0.6, 0, 0]),
        (1.0, [1, 0, 0], [1, 0, 0]),
        (2.25, [1, 1, 0], [1, 1, 0.25]),
        (9.0, [1, 1, 1], [1, 1, 1]),
        (-1.0, [0, 0, 0], [0, 0, 0]),
    ],
)
def test_unit_steps_until_time_runs_out(T, floor, fractional):
    assert list(Unit(T, 3)) == floor
    assert list(Unit(T, 3, fractional=True)) == pytest.approx(fractional)  # T - l rounds
    assert len(Unit(T, 3)) == 3


def test_no_flow_is_full_steps():
    assert list(NoFlow(3)) == [1.0, 1.0, 1.0]
    assert len(NoFlow(3)) == 3


def test_times_may_differ_over_the_batch():
    T = torch.tensor([0.5, 2.0, 3.5], dtype=torch.float64)
    assert torch.stack(list(Uniform(T, 2))).tolist() == [[0.25, 1.0, 1.75]] * 2
    assert torch.stack(list(Unit(T, 3))).tolist() == [[0, 1, 1], [0, 1, 1], [0, 0, 1]]
    assert torch.stack(list(Unit(T, 4, fractional=True))).tolist() == [
        [0.5, 1, 1],
        [0, 1, 1],
        [0, 0, 1],
        [0, 0, 0.5],
    ]


def test_the_fractional_layer_has_a_gradient_and_the_floor_has_none():
    T = torch.tensor(1.4, requires_grad=True)
    sum(Unit(T, 3, fractional=True)).backward()
    assert T.grad == 1.0
    T = torch.tensor(1.4, requires_grad=True)
    sum(Unit(T, 3)).backward()
    assert T.grad == 0.0


def test_a_schedule_can_be_read_twice():
    schedule = Uniform(1.0, 3)
    assert list(schedule) == list(schedule)
