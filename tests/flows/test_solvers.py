"""What a solver is: one method. What it tells: callbacks, outcomes, and that it has no gradient when it has none."""

import math

import pytest
import torch

from measureflow.attention import (
    Attention,
    DotProduct,
    Field,
    Layers,
    NegativeSquaredDistance,
    Relative,
    Sum,
    TimeDependent,
)
from measureflow.flows import (
    Dopri5,
    FixedStep,
    OnSphere,
    Outcome,
    RungeKutta,
    Solver,
    Tangent,
    Trajectory,
    Uniform,
    dopri5,
    euler,
    integrate,
    rk4,
)
from measureflow.flows.state import moved
from measureflow.measures import Empirical, Gaussian
from members import METHODS
from problems import blind, meeting_on_the_circle, normal, starts

SOLVERS = {**METHODS, "dopri5": dopri5}
PULL = Relative(Attention(NegativeSquaredDistance()))


class Jumping:
    """The exact flow of a pull to the mean: a solver that needs no steps in between."""

    def solve(self, field, mu, steps, callback=None):
        times = [sum(steps[:i]) for i in range(len(steps) + 1)]
        return Trajectory([mu.mean(-2) + math.exp(-t) * (mu - mu.mean(-2)) for t in times], times)


class Midpoint(FixedStep):
    """A fixed-step method is its step."""

    order = 2

    def step(self, f, mu, t, h):
        return moved(mu, f(moved(mu, f(mu, t), h / 2), t + h / 2), h)


def test_a_solver_is_a_class_with_one_method():
    x = normal(5, 2, seed=1)
    path = integrate(blind(), x, [0.5, 0.25], Jumping())
    assert path.times == [0, 0.5, 0.75]
    torch.testing.assert_close(path.points, integrate(blind(), x, [0.5, 0.25], dopri5).points, rtol=0, atol=1e-7)
    assert path.outcome is Outcome.FINISHED
    assert isinstance(Jumping(), Solver)
    assert all(isinstance(solver, Solver) for solver in (*SOLVERS.values(), OnSphere(rk4)))


@pytest.mark.parametrize("kind", starts())
def test_a_fixed_step_solver_is_its_step(kind):
    tableau = RungeKutta("midpoint", 2, ((1 / 2,),), (0.0, 1.0))
    field = Attention() if kind == "gaussian" else PULL
    ours, theirs = (integrate(field, starts()[kind], [0.1] * 3, method) for method in (Midpoint(), tableau))
    torch.testing.assert_close(ours.points, theirs.points, rtol=0, atol=1e-14)  # rounding


def test_a_new_fixed_step_solver_goes_to_the_sphere_too():
    flow = meeting_on_the_circle()
    sphere = OnSphere(Midpoint())
    few, many = (flow.error(integrate(Tangent(flow.field), flow.start, Uniform(1.0, n), sphere)[-1]) for n in (16, 32))
    assert sphere.order == 2
    assert math.log2(few / many) > 1.9


def test_a_gaussian_does_not_lie_on_a_sphere():
    with pytest.raises(ValueError, match="mu must be points"):
        integrate(Attention(), starts()["gaussian"], [0.1], OnSphere(rk4))


# ---------------------------------------------------------------------------------------------------------- callbacks


@pytest.mark.parametrize("kind", starts())
def test_a_callback_sees_every_fixed_step(kind):
    seen = []
    field = Attention() if kind == "gaussian" else PULL
    path = integrate(field, starts()[kind], [0.1, 0.2], rk4, callback=lambda t, mu: seen.append((t, mu)))
    assert [t for t, _ in seen] == path.times
    assert all(mu is state for (_, mu), state in zip(seen, path, strict=True))


def test_a_callback_sees_every_adaptive_step():
    x, times, states = normal(2, 5, 2, seed=1), [], []

    def watch(t, mu):
        times.append(t.clone())
        states.append(mu)

    time = torch.tensor([1.0, 2.0], dtype=torch.float64)
    path = integrate(PULL, Empirical(x), Uniform(time, 2), dopri5, callback=watch)
    times = torch.stack(times)
    assert times[0].tolist() == [0.0, 0.0]
    assert times[-1].tolist() == [1.0, 2.0]
    assert (times.diff(dim=0) >= 0).all()
    assert len(times) > 10  # each trajectory has two times to reach, and chooses its steps
    assert torch.equal(states[0].points, x)
    assert torch.equal(states[-1].points, path[-1].points)


@pytest.mark.parametrize("method", SOLVERS)
def test_a_callback_changes_nothing_and_can_end_the_flow(method):
    x = normal(5, 2, seed=1)
    alone = integrate(PULL, x, [0.5] * 3, SOLVERS[method])
    watched = integrate(PULL, x, [0.5] * 3, SOLVERS[method], callback=lambda t, mu: None)
    assert torch.equal(alone.points, watched.points)

    class Enough(Exception):
        pass

    def stop(t, mu):
        if t > 0.4:
            raise Enough

    with pytest.raises(Enough):
        integrate(PULL, x, [0.5] * 3, SOLVERS[method], callback=stop)


# ----------------------------------------------------------------------------------------------------------- outcomes


def three_fates(*batch: int) -> tuple[Attention, Gaussian]:
    """On a line: a variance that blows up at 1/2, one that shrinks, and a mean that grows like e^t."""
    A = torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64).reshape(3, 1, 1)
    mean = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64).reshape(3, 1)
    return Attention(DotProduct(A.expand(*batch, 3, 1, 1))), Gaussian(
        mean.expand(*batch, 3, 1), torch.ones(*batch, 3, 1, 1, dtype=torch.float64)
    )


def test_each_trajectory_says_how_it_ended():
    field, mu = three_fates()
    path = integrate(field, mu, [15.0, 15.0], dopri5)
    assert path.outcome == [Outcome.BLEW_UP, Outcome.FINISHED, Outcome.LEFT_FOR_INFINITY]
    assert path.divergence == ["finite time", "none", "infinite time"]
    assert path.blow_up_time.tolist() == [pytest.approx(0.5, rel=1e-6), math.inf, math.inf]
    assert path.left.tolist() == [False, False, True]
    assert path[:2].outcome == path.outcome  # a part of the flow keeps its ending
    assert integrate(field, mu, [15.0], Dopri5(limit=1e15)).outcome[2] is Outcome.FINISHED  # e^15 is within the limit


def test_outcomes_of_any_batch():
    field, mu = three_fates(2)
    path = integrate(field, mu, [30.0], dopri5)
    assert path.blow_up_time.shape == (2, 3)
    assert path.outcome == [Outcome.BLEW_UP, Outcome.FINISHED, Outcome.LEFT_FOR_INFINITY] * 2
    assert integrate(field, mu, [0.1]).outcome == [Outcome.FINISHED] * 6


class Decay(Field):
    """x' = -x in the first element of the batch, and a thousand times as fast in the second."""

    def attend(self, x, y, w, u=None):
        return -x * torch.tensor([1.0, 1000.0], dtype=x.dtype).reshape(2, 1, 1)


def test_a_stiff_trajectory_runs_out_of_steps_and_the_others_of_the_batch_do_not():
    mu, field, times = normal(2, 3, 1, seed=1), Decay(), [0.5, 0.5, 9.0]
    path = integrate(field, mu, times, Dopri5(max_steps=400))
    assert path.outcome == [Outcome.FINISHED, Outcome.OUT_OF_STEPS]
    assert path.divergence == ["none", "unknown"]
    assert path.unfinished.tolist() == [False, True]
    assert path[1:].outcome == path.mapped(lambda x: 2 * x).outcome == path.outcome
    enough = integrate(field, mu, times, Dopri5(max_steps=40_000))
    assert enough.outcome == [Outcome.FINISHED] * 2
    assert torch.equal(path.points[:, 0], enough.points[:, 0])
    torch.testing.assert_close(enough[-1][0], math.exp(-10) * mu[0], rtol=1e-6, atol=1e-9)
    assert integrate(field, mu, times, Dopri5(max_steps=1)).outcome == [Outcome.OUT_OF_STEPS] * 2


def test_a_mapped_trajectory_keeps_its_times_and_its_ending():
    field, mu = three_fates()
    path = integrate(field, mu, [30.0], dopri5)
    means = path.mapped(lambda state: state.mean[:, None])
    assert torch.equal(means[-1], path[-1].mean[:, None])
    assert means.times is path.times
    assert means.outcome == path.outcome


# ---------------------------------------------------------------------------------------------------------- gradients


def learned() -> Attention:
    return Attention(DotProduct(normal(2, 2, seed=3), normal(2, 2, seed=4), learn=True))


class Wind(Field):
    """One velocity everywhere, so that the state alone carries a gradient."""

    def attend(self, x, y, w, u=None):
        return torch.ones_like(x)


@pytest.mark.parametrize("case", ["start", "start in a wind", "step", "field", "field of time"])
def test_dopri5_says_that_it_has_no_gradient(case):
    x, h, field = normal(4, 2, seed=1), torch.tensor(0.5, dtype=torch.float64), Attention()
    if "start" in case:
        x.requires_grad_()
        field = Wind() if "wind" in case else field
    if case == "step":
        h.requires_grad_()
    if case == "field":
        field = learned()
    if case == "field of time":
        hidden = learned()  # no parameter of the field, and not there at the start
        field = TimeDependent(lambda t: Sum(Attention(), hidden, coefficients=[1.0, float(t)]) if t else Attention())
    with pytest.raises(ValueError, match=r"dopri5 has no gradient.*use a fixed-step method"):
        integrate(field, x, [h], dopri5)
    assert integrate(field, x, [h], rk4)[-1].requires_grad
    with torch.no_grad():
        end = integrate(field, x, [h], dopri5)[-1]
        torch.testing.assert_close(end, integrate(field, x, Uniform(0.5, 40), rk4)[-1], rtol=0, atol=1e-6)


# ------------------------------------------------------------------------------------------------- layers of their own


def test_layers_take_a_field_for_each_step():
    fields = [Attention(value=normal(2, 2, seed=s)) for s in (1, 2, 3)]
    x = normal(2, 5, 2, seed=4)
    steps = [torch.tensor(h, dtype=torch.float64) for h in ([0.5, 0.0], [0.0, 1.0], [0.25, 0.0])]
    path = integrate(Layers(*fields), x, steps)
    for field, h in zip(fields, steps, strict=True):
        x = x + h[:, None, None] * field(x)
    assert torch.equal(path[-1], x)


def test_layers_may_depend_on_time():
    x = normal(4, 2, seed=1)
    growing = TimeDependent(lambda t: Attention(value=(1 + t) * torch.eye(2, dtype=torch.float64)))
    assert torch.equal(
        integrate(Layers(growing, growing), x, [0.5, 0.5], rk4)[-1], integrate(growing, x, [0.5, 0.5], rk4)[-1]
    )


def test_layers_ask_for_a_layer():
    x, two = normal(4, 2, seed=1), Layers(Attention(), Attention())
    with pytest.raises(ValueError, match="more steps than the 2 fields"):
        integrate(two, x, [0.1] * 3)
    with pytest.raises(ValueError, match="not for each time: use a fixed-step method"):
        integrate(two, x, [0.1] * 2, dopri5)
    for mu in (x, Gaussian(torch.zeros(2), torch.eye(2))):
        with pytest.raises(ValueError, match="without a layer"):
            two(mu)
    with pytest.raises(ValueError, match="at least one field"):
        Layers()
    assert torch.equal(integrate(two, x, [0.1], euler)[-1], x + 0.1 * Attention()(x))  # fewer steps than fields
