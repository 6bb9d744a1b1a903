"""One set of weights for every dimension: a learned flow that contains EM."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from measureflow.attention import Field
from measureflow.attention.normalisers import log_weights
from measureflow.flows import Tokens, Trajectory, integrate
from measureflow.measures import Empirical, checks
from measureflow.measures.decibels import LEAST_SNR_DB, from_decibels
from measureflow.models.any_dimension_heads import (
    SEEN_BY_EM,
    SEEN_NEAR,
    HeadParameters,
    compete,
    mean_shift,
    split_heads,
)
from measureflow.models.flow_speed import FlowSpeed
from measureflow.models.sets import as_sets

FEWEST, MOST = 100, 1000  # numbers of points outside this range count as its ends


@dataclass(frozen=True)
class AnyDimensionConfig:
    """The shape of an `AnyDimensionFlow`."""

    n_self: int = 3  # heads that attend among the tokens
    n_em: int = 2  # heads in which tokens compete for the data
    n_features: int = 48  # invariant numbers that each token carries
    n_messages: int = 8  # of them, how many each head passes on
    hidden: int = 192
    n_layers: int = 6
    max_flow: float = 8.0  # the flow F predicts lies between 0 and this
    snr_low: float = -4.0  # range of SNR in dB over which F varies
    snr_high: float = 22.0

    def __post_init__(self):
        for name in ("n_self", "n_em", "n_features", "hidden", "n_layers"):
            checks.whole(name, getattr(self, name))


class AnyDimensionFlow(nn.Module):
    r"""Tokens y, a copy of the data x, flow onto the mixing measure; positions move only along differences.

    .. math:: y_i \leftarrow y_i + h \sum_s g_s(f_i)\,(m^{(s)}_i - y_i), \qquad
        f_i \leftarrow f_i + \mathrm{MLP}(\text{invariants}_i)

    Each head s offers a mean m: of the tokens near y_i (mean shift), or of the data weighted by how responsible y_i is
    for them among all tokens (an EM step of n atoms). The gates g depend on features f made only of numbers that a
    rotation does not change, so one set of weights serves every dimension, and the output rotates, shifts, scales and
    permutes with the input. Lengths are in units of the noise that the SNR implies. The SNR may be a guess: at the end
    the pooled features estimate by how much it was wrong. With gates set by hand it is EM exactly (`em`). The data may
    have masses: mass 2 is a row twice.

    >>> model = AnyDimensionFlow()
    >>> x = torch.randn(2, 10, 5, generator=torch.Generator().manual_seed(0))
    >>> model(x, torch.tensor([5.0, 10.0])).shape
    torch.Size([2, 10, 5])
    """

    def __init__(self, config: AnyDimensionConfig | None = None):
        super().__init__()
        self.config = c = config or AnyDimensionConfig()
        self.heads = c.n_self + c.n_em
        self.log_width = nn.Parameter(torch.cat([_spaced(0.4, 2.0, c.n_self), _spaced(0.7, 1.4, c.n_em)]))
        self.reads = nn.Linear(c.n_features, self.heads * (3 + c.n_messages))  # each head's width, bias, gate, messages
        with torch.no_grad():
            for part in (self.reads.weight, self.reads.bias):
                part.unflatten(0, (self.heads, -1))[:, :3] = 0.0
            self.reads.bias.unflatten(0, (self.heads, -1))[:, 2] = 0.5 / self.heads
        self.speed = FlowSpeed(c.snr_low, c.snr_high, c.max_flow)
        seen = 2 * c.n_features + c.n_self * SEEN_NEAR + c.n_em * SEEN_BY_EM + self.heads * c.n_messages + 1
        self.start = nn.Sequential(nn.Linear(4, c.n_features), nn.GELU(), nn.Linear(c.n_features, c.n_features))
        self.update = nn.Sequential(
            nn.LayerNorm(seen), nn.Linear(seen, c.hidden), nn.GELU(), nn.Linear(c.hidden, c.n_features)
        )
        self.noise = nn.Sequential(
            nn.LayerNorm(c.n_features), nn.Linear(c.n_features, c.hidden), nn.GELU(), nn.Linear(c.hidden, 2)
        )

    def forward(self, points: Tensor | Empirical, snr_db: Tensor | float, **options):
        """Output tokens (B, n, d) for points (B, n, d) and their SNR in dB (B,); options as in `flow_and_noise`.

        Points may also be one set (n, d), an `Empirical` or an array, in any float dtype, and one SNR may serve all of
        them: `as_sets` says how. The answer has the form and the dtype of the points.
        """
        return self.flow_and_noise(points, snr_db, **options)[0][-1]

    def flow(self, points: Tensor | Empirical, snr_db: Tensor | float, **options) -> Trajectory:
        """The tokens at every layer."""
        return self.flow_and_noise(points, snr_db, **options)[0]

    def flow_and_noise(
        self,
        points: Tensor | Empirical,
        snr_db: Tensor | float,
        *,
        exact: bool | Tensor = True,
        weights: Tensor | None = None,
        n_layers: int | None = None,
        schedule: str = "uniform",
    ) -> tuple[Trajectory, Tensor]:
        """The tokens at every layer, and the noise they estimate, (B, 2): by how many dB its variance exceeds the one
        that ``snr_db`` implies, and the standard error of that.

        ``exact`` says that the SNR is known and not a guess, for all sets or for each. ``weights`` (B, n) say how often
        each point counts. The shipped weights were trained with the uniform schedule.
        """
        sets = as_sets(points, snr_db, self.log_width, weights)
        path, noise = self._run(sets.points, sets.snr_db, exact, sets.weights, n_layers, schedule)
        return sets.trajectory(path), sets.numbers(noise)

    def _run(self, points: Tensor, snr_db: Tensor, exact, weights, n_layers, schedule) -> tuple[Trajectory, Tensor]:
        checks.finite("points", points)
        checks.finite("snr_db", snr_db)
        snr_db = snr_db.clamp_min(LEAST_SNR_DB)
        p, center, unit = _units(points, snr_db, weights)
        steps = self.speed.steps(snr_db, schedule, n_layers or self.config.n_layers)
        x = (points - center) / unit
        counted = torch.full_like(snr_db, x.shape[1]) if weights is None else weights.sum(-1)
        exact = torch.as_tensor(exact, device=x.device).flatten().expand(len(x))
        f = self._first_features(x, snr_db, counted, exact)
        path = integrate(Layer(self, x, p), Tokens(x, f), steps)
        excess, log_error = self.noise((p[..., None] * path[-1].features).sum(1)).unbind(-1)
        noise = torch.stack([10 * excess, log_error.clamp(-5, 3).exp()], -1)
        return Trajectory([points, *(center + unit * tokens.positions for tokens in path[1:])], path.times), noise

    def read(self, f: Tensor) -> tuple[HeadParameters, Tensor]:
        """The parameters of every head for each token, and the gates, (B, heads, n, 1).

        Widths change by a factor of at most four and a half, so a wrong guess of the noise cannot move tokens far away.
        """
        read = self.reads(f).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        change, bias, gate, messages = read.split([1, 1, 1, self.config.n_messages], -1)
        precision = torch.exp(-2 * (self.log_width[:, None, None] + change.clamp(-1.5, 1.5)))
        return HeadParameters(precision, bias, messages), gate.clamp(-2, 2)

    def _first_features(self, x: Tensor, snr_db: Tensor, counted: Tensor, exact: Tensor) -> Tensor:
        """The first features, the same for all tokens: SNR, whether it is exact, dimension, and number of points."""
        B, n, d = x.shape
        points = counted.clamp(FEWEST, MOST).log() - math.log(FEWEST)
        facts = torch.stack([snr_db / 10, torch.full_like(snr_db, math.log(d)), exact.to(snr_db), points], -1)
        return self.start(facts)[:, None].expand(B, n, -1)

    @classmethod
    def em(cls, n_layers: int = 1) -> AnyDimensionFlow:
        r"""The weights that make each layer one EM step for n equally weighted atoms with known noise.

        Tokens compete at the width of the noise, :math:`r_{ij} \propto e^{-|x_j - y_i|^2/2\sigma^2}`, and each moves
        all the way to the mean of the data by responsibility: a particle form of the fixed point of the NPMLE.
        """
        low, high = 1000.0, 1001.0  # every SNR lies below this range, where F is flat
        shape = AnyDimensionConfig(n_em=1, n_layers=n_layers, max_flow=float(n_layers), snr_low=low, snr_high=high)
        model = cls(shape)
        with torch.no_grad():
            for parameter in model.reads.parameters():
                parameter.zero_()
            model.reads.bias.unflatten(0, (model.heads, -1))[-1, 2] = 1.0
            model.log_width.zero_()
        return model


class Layer(Field):
    """One layer as a field, for tokens that started at the data x of masses p: their velocity, and change of features.

    Lengths are in units of the noise.
    """

    def __init__(self, model: AnyDimensionFlow, x: Tensor, p: Tensor):
        super().__init__()
        self.model, self.x, self.p, self.log_p = model, x, p, log_weights(x, p)

    def on_tokens(self, tokens: Tokens) -> Tokens:
        (y, f), model = tokens, self.model
        head, gates = model.read(f)
        here, there = split_heads(head, model.config.n_self, model.config.n_em)
        near, seen_near, received_near = mean_shift(y, here, self.log_p)
        claimed, seen_claimed, received_claimed = compete(self.x, y, there, self.log_p)
        offers = torch.cat([near, claimed], 1)  # (B, heads, n, d)
        velocity = (gates * (offers - y[:, None])).sum(1)
        pooled = (self.p[..., None] * f).sum(1, keepdim=True).expand_as(f)
        strayed = torch.log1p((y - self.x).square().mean(-1, keepdim=True))
        numbers = torch.cat([*seen_near, *seen_claimed], 1).transpose(1, 2)
        received = torch.cat([received_near, received_claimed], 1).transpose(1, 2).flatten(2)
        return Tokens(velocity, model.update(torch.cat([f, pooled, numbers, received, strayed], -1)))


def _spaced(low: float, high: float, count: int) -> Tensor:
    """Logarithms of widths, evenly spaced; a single one is 1."""
    return torch.linspace(math.log(low), math.log(high), count) if count > 1 else torch.zeros(count)


def _units(points: Tensor, snr_db: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    r"""Masses (B, n), centre (B, 1, d), noise level (B, 1, 1): variance is :math:`\sigma^2(1 + \mathrm{SNR})`."""
    mu = Empirical.trusted(points, weights)
    center = mu.mean[:, None]
    variance = (mu.probabilities[..., None] * (points - center).square()).sum((1, 2)) / points.shape[-1]
    sigma = (variance / (1 + from_decibels(snr_db))).clamp_min(1e-30).sqrt()
    return mu.probabilities, center, sigma[:, None, None]
