"""Tokens that carry more than a position flow by the same loop."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from measureflow.attention import Attention, Field, NegativeSquaredDistance, Relative
from measureflow.flows import OnSphere, Tokens, Uniform, dopri5, euler, integrate, rk4
from measureflow.flows.sphere import normalised
from measureflow.flows.state import along
from members import METHODS
from problems import normal

PULL = Relative(Attention(NegativeSquaredDistance()))


class Counting(Field):
    """Positions are pulled together, and every layer adds one to the features."""

    def on_tokens(self, tokens: Tokens):
        return PULL(tokens.positions), torch.ones_like(tokens.features)


class Coloured(NamedTuple):
    """Positions, and colours that stay on the unit sphere."""

    positions: Tensor
    colours: Tensor

    def after(self, velocity, h):
        v, turn = velocity
        return Coloured(along(self.positions, v, h), normalised(along(self.colours, turn, h)))


class Mixing(Field):
    """Positions and colours are both pulled toward the mean."""

    def on_tokens(self, tokens: Coloured):
        return tuple(x.mean(-2, keepdim=True) - x for x in tokens)


def tokens(*batch: int) -> Tokens:
    return Tokens(normal(*batch, 5, 2, seed=1), normal(*batch, 5, 3, seed=2))


@pytest.mark.parametrize("method", METHODS)
def test_positions_flow_as_plain_tokens_do_and_features_count_layers(method):
    start = tokens()
    path = integrate(Counting(), start, [0.5, 0.25, 0.0], METHODS[method])
    plain = integrate(PULL, start.positions, [0.5, 0.25, 0.0], METHODS[method])
    assert torch.equal(path.points, plain.points)
    for layer, state in enumerate(path):
        assert isinstance(state, Tokens)
        torch.testing.assert_close(state.features, start.features + layer, rtol=0, atol=1e-14)  # weights sum to 1
    assert path.times == [0.0, 0.5, 0.75, 0.75]


def test_step_sizes_may_differ_over_the_batch():
    start, time = tokens(3), torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    together = integrate(Counting(), start, Uniform(time, 4))
    for i in range(3):
        alone = integrate(Counting(), Tokens(start.positions[i], start.features[i]), Uniform(time[i].item(), 4))
        torch.testing.assert_close(together[-1].positions[i], alone[-1].positions, rtol=1e-12, atol=1e-12)
    assert together.blow_up_time.shape == (3,)


def test_gradients_reach_positions_features_and_steps():
    x, f = normal(3, 2, seed=1).requires_grad_(), normal(3, 1, seed=2).requires_grad_()
    h = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)

    class Gated(Field):
        def on_tokens(self, tokens):
            return tokens.features * PULL(tokens.positions), tokens.positions.square().mean(-1, keepdim=True)

    assert torch.autograd.gradcheck(lambda x, f, h: integrate(Gated(), Tokens(x, f), [h, h])[-1], (x, f, h))


@pytest.mark.parametrize("method", METHODS)
def test_tokens_may_carry_anything_that_says_how_it_moves(method):
    start = Coloured(normal(2, 5, 2, seed=1), normalised(normal(2, 5, 3, seed=2)))
    path = integrate(Mixing(), start, Uniform(2.0, 8), METHODS[method])
    colours = torch.stack([state.colours for state in path])
    torch.testing.assert_close(colours.norm(dim=-1), torch.ones(9, 2, 5).double(), rtol=0, atol=1e-14)  # rounding
    assert (colours.var(-2).sum(-1).diff(dim=0) < 0).all()  # they gather


def test_a_trajectory_of_tokens_shows_their_positions():
    path = integrate(Counting(), tokens(), [0.5] * 3)
    assert path.points.shape == (4, 5, 2)
    table = path.to_pandas()
    assert table.x1.tolist()[-5:] == path[-1].positions[:, 1].tolist()
    assert repr(path) == "Trajectory(4 states of points (5, 2))"
    assert len(path.plot().collections) == 2


def test_what_cannot_move_tokens_says_so():
    with pytest.raises(ValueError, match=r"dopri5 cannot move Tokens.*use a fixed-step method"):
        integrate(Counting(), tokens(), [0.5], dopri5)
    with pytest.raises(ValueError, match=r"mu must be points.*got a Tokens"):
        integrate(Counting(), tokens(), [0.5], OnSphere(rk4))
    with pytest.raises(ValueError, match="got Tokens, which Attention does not move"):
        integrate(Attention(), tokens(), [0.5], euler)
    bad = tokens()
    bad.features[0, 0] = torch.nan
    with pytest.raises(ValueError, match="mu has 1 non-finite"):
        integrate(Counting(), bad, [0.5])

    class Partial(Field):
        def on_tokens(self, tokens):
            return (tokens.positions,)

    with pytest.raises(ValueError, match="field must return velocities"):
        integrate(Partial(), tokens(), [0.5])
