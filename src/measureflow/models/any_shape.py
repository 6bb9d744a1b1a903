"""Clusters of any shape: tokens with a position, a colour and features learn who belongs with whom."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from measureflow.attention.fused import softmax_means
from measureflow.measures import checks
from measureflow.models.shape_features import N_FACTS, first_colours, local_facts, on_sphere, squared_distances

MOST_CLUSTERS = 60  # numbers of clusters that the flow can tell apart
MOST_GRADIENT = 5.0  # largest gradient of a token, in units of the mean one
PAIR_CODES = 32  # numbers in which two rows are compared beyond position and colour


@dataclass(frozen=True)
class AnyShapeConfig:
    """The shape of an `AnyShapeFlow`."""

    n_near: int = 4  # heads that attend among the tokens
    n_em: int = 1  # heads in which tokens compete for the rows
    n_features: int = 64  # invariant numbers that each token carries
    n_colours: int = 16  # dimension of the space whose unit sphere the colours lie on
    n_messages: int = 8  # numbers that each head passes on
    n_keys: int = 8  # width of the learned part of the score
    hidden: int = 192
    n_layers: int = 6
    reshape_after: int = 2  # layers after which space is reshaped by the noise found so far; 0 never

    def __post_init__(self):
        for name in ("n_near", "n_em", "n_features", "n_colours", "hidden", "n_layers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


class Tokens(NamedTuple):
    """What flows: a row and, for each row, a token that carries a position, a colour and features."""

    rows: Tensor  # (B, n, d)
    position: Tensor  # (B, n, d)
    colour: Tensor  # (B, n, m) on the unit sphere, zero in the mean over the rows
    features: Tensor  # (B, n, f), all invariant under rotations and shifts
    log_scale: Tensor  # (B, n, 1): log of the distance to the nearest 8 % of the rows


class Together(NamedTuple):
    """What the flow says of a set."""

    logits: Tensor  # (B, n, n): of the probability that two rows belong together
    noise: Tensor  # (B, n): logits of the probability that a row belongs to nothing
    n_clusters: Tensor  # (B, 60): logits of the numbers of clusters from one on
    path: list[Tokens]  # the tokens at every layer


class HeadParameters(NamedTuple):
    """What each token reads from its features for each head, (B, heads, n, ...)."""

    precision: Tensor  # one over the squared width of its view
    bias: Tensor  # how attractive it is
    affinity: Tensor  # how much the agreement of colours counts
    messages: Tensor  # what it tells others
    queries: Tensor
    keys: Tensor

    def split(self, *heads: int) -> list[HeadParameters]:
        """The parameters of the first few heads, of the next few, and so on."""
        return [HeadParameters(*part) for part in zip(*(t.split(heads, 1) for t in self), strict=True)]


class _Limited(torch.autograd.Function):
    """The identity, whose gradient is cut to a largest norm for each token.

    Few tokens that sit between tight clusters are so sensitive that their gradients would grow a hundredfold with every
    layer, and drown those of all others.
    """

    @staticmethod
    def forward(ctx, state: Tensor, unit: Tensor) -> Tensor:
        ctx.save_for_backward(unit)
        return state.view_as(state)

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None]:
        (unit,), gradient = ctx.saved_tensors, gradients[0]
        most = MOST_GRADIENT / (gradient.shape[0] * gradient.shape[1])
        norm = torch.linalg.vector_norm(gradient, dim=-1, keepdim=True) * unit
        return gradient * (most / norm.clamp_min(most)), None


def _limited(state: Tensor, unit: Tensor) -> Tensor:
    """A state whose gradient is limited where there is one."""
    return _Limited.apply(state, unit) if torch.is_grad_enabled() else state  # type: ignore[return-value]


class ShapeLayer(nn.Module):
    r"""One layer: heads offer each token a mean position and a mean colour, and tell it what they saw.

    .. math::
        s_{ij} = -\frac{|y_i - y_j|^2}{2 w_i^2} + \beta_j + \alpha_i\, c_i \cdot c_j + q_i \cdot k_j, \qquad j \ne i

    No token attends to itself: in many columns all others are so far that it would see nothing else.
    """

    def __init__(self, c: AnyShapeConfig):
        super().__init__()
        self.config, self.heads = c, c.n_near + c.n_em
        self.sizes = [1, 1, 1, 1, 1, c.n_messages, c.n_keys, c.n_keys]
        self.reads = nn.Linear(c.n_features, self.heads * sum(self.sizes))
        self.log_width = nn.Parameter(torch.linspace(math.log(0.25), math.log(2.0), c.n_near).repeat(2)[: self.heads])
        with torch.no_grad():
            weight, bias = (t.unflatten(0, (self.heads, -1)) for t in (self.reads.weight, self.reads.bias))
            weight[:, :5] *= 0.1
            weight[:, -2 * c.n_keys :] *= 0.3
            bias.zero_()
            bias[:, 2], bias[:, 3], bias[:, 4] = 0.15, 0.75 / self.heads, 1.0
        seen = 2 * c.n_features + c.n_near * 5 + c.n_em * 6 + self.heads * c.n_messages + 2
        self.update = nn.Sequential(
            nn.LayerNorm(seen), nn.Linear(seen, c.hidden), nn.GELU(), nn.Linear(c.hidden, c.n_features)
        )

    def forward(self, tokens: Tokens, mask: Tensor) -> Tokens:
        """The tokens after this layer."""
        x, y, colour, f, log_scale = tokens
        length, one = log_scale.exp(), torch.ones_like(log_scale)
        y, colour, f = _limited(y, length), _limited(colour, one), _limited(f, one)
        read = _limited(self.reads(f), one).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, heads, n, ...)
        width, bias, gate, turn, affinity, messages, queries, keys = read.split(self.sizes, -1)
        strayed = (y - x).detach().square().sum(-1, keepdim=True)
        unit = 0.5 * torch.log(torch.exp(2 * log_scale) + strayed)  # who has strayed far from home needs a wider view
        log_width = self.log_width[:, None, None] + 1.5 * torch.tanh(width / 1.5) + unit[:, None]
        precision = torch.exp(-2 * log_width)
        parameters = HeadParameters(precision, bias, affinity, messages, queries, keys)
        near, em = parameters.split(self.config.n_near, self.config.n_em)
        offers, hues, seen, heard = _near(near, y, colour, mask)
        won = _compete(em, x, y, colour, mask)
        offers, hues = torch.cat([offers, won[0]], 1), torch.cat([hues, won[1]], 1)
        moved = y + ((0.5 * torch.tanh(2 * gate)) * (offers - y[:, None])).sum(1)
        turned = on_sphere(colour + (torch.tanh(turn) * (hues - colour[:, None])).sum(1))
        numbers = torch.cat([t.transpose(1, 2).flatten(2) for t in (seen, won[2], heard, won[3])], -1)
        pooled = f.mean(1, keepdim=True).expand_as(f)
        f = f + self.update(torch.cat([f, pooled, numbers, unit - log_scale, log_scale], -1))
        return Tokens(x, moved, turned, f, log_scale)


class AnyShapeFlow(nn.Module):
    r"""Tokens gather into clusters of any shape: positions flow in R^d, colours on a sphere, along the same attention.

    The answer is :math:`P_{ij}`, the probability that rows i and j belong together, read off where the tokens ended:

    .. math:: \operatorname{logit} P_{ij} = b + a_i + a_j - s \log(1 + |y_i - y_j|^2 / w_i w_j)
        + \gamma_{ij}\, c_i \cdot c_j + e_i \cdot e_j

    Everything but positions is invariant, so rotating, shifting, scaling or permuting the rows changes nothing in P.
    After ``reshape_after`` layers, what lies between rows and their tokens is what the flow takes for noise; space is
    reshaped so that this noise becomes rounder, as far as the flow judges it right.

    >>> model = AnyShapeFlow()
    >>> x = torch.randn(2, 30, 5, generator=torch.Generator().manual_seed(0))
    >>> model(x).shape
    torch.Size([2, 30, 30])
    """

    def __init__(self, config: AnyShapeConfig | None = None):
        super().__init__()
        self.config = c = config or AnyShapeConfig()
        self.start = nn.Sequential(nn.Linear(N_FACTS, c.n_features), nn.GELU(), nn.Linear(c.n_features, c.n_features))
        self.restart = nn.Sequential(nn.Linear(N_FACTS, c.n_features), nn.GELU(), nn.Linear(c.n_features, c.n_features))
        judge = nn.Linear(c.n_features, 1)
        nn.init.constant_(judge.bias, -2.0)  # space begins nearly as it is
        self.reshape = nn.Sequential(nn.LayerNorm(c.n_features), judge)
        self.layers = nn.ModuleList(ShapeLayer(c) for _ in range(c.n_layers))
        self.pair = nn.Sequential(nn.LayerNorm(c.n_features), nn.Linear(c.n_features, 3 + PAIR_CODES))
        self.bias = nn.Parameter(torch.tensor([0.0, 1.0, 1.0]))
        self.noise = nn.Sequential(nn.LayerNorm(c.n_features), nn.Linear(c.n_features, 1))
        self.count = nn.Sequential(nn.Linear(c.n_features + 3, c.hidden), nn.GELU(), nn.Linear(c.hidden, MOST_CLUSTERS))

    def forward(self, points: Tensor) -> Tensor:
        """Probabilities (B, n, n) that rows of points (B, n, d) belong together."""
        return torch.sigmoid(self.together(points).logits)

    def together(self, points: Tensor) -> Together:
        """Everything the flow says of points (B, n, d), with at least two rows."""
        if points.ndim != 3 or points.shape[1] < 2 or points.shape[2] < 1:
            raise ValueError(f"points must have shape (B, n, d) with at least two rows, got {tuple(points.shape)}")
        checks.finite("points", points)
        mask = points.new_zeros(points.shape[1], points.shape[1]).fill_diagonal_(-torch.inf)
        tokens = self._first(points)
        path = [tokens]
        for number, layer in enumerate(self.layers):
            if number and number == self.config.reshape_after:
                tokens = self._reshaped(tokens)
            tokens = layer(tokens, mask)
            path.append(tokens)
        logits = self._pair_logits(tokens)
        return Together(
            logits, self.noise(tokens.features).squeeze(-1), self._count_logits(tokens.features, logits), path
        )

    def _first(self, points: Tensor) -> Tokens:
        x = points - points.mean(1, keepdim=True)
        x = x / x.square().mean((1, 2), keepdim=True).sqrt().clamp_min(1e-12)
        facts, log_scale, gaps = local_facts(x)
        return Tokens(x, x, first_colours(gaps, log_scale, self.config.n_colours), self.start(facts), log_scale)

    def _reshaped(self, tokens: Tokens) -> Tokens:
        r"""Space in which noise of covariance W, that of rows minus tokens, looks rounder: :math:`x \to L^{-1} x` with
        :math:`L L^T = (1 - \alpha) I + \alpha W / \tau`, where tau is the mean of W's diagonal and the features say
        alpha."""
        x, y, colour, f, _ = tokens
        d = x.shape[-1]
        noise = (x - y).detach()  # gradients through a matrix root are wild, and teach little
        W = noise.mT @ noise / x.shape[1]
        mean = W.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None].clamp_min(1e-12)
        alpha = torch.sigmoid(self.reshape(f.mean(1, keepdim=True)))
        shape = (1 - alpha + 1e-3) * torch.eye(d, dtype=x.dtype, device=x.device) + alpha * W / mean
        root = torch.linalg.cholesky(shape)
        x, y = (torch.linalg.solve_triangular(root, t.mT, upper=False).mT for t in (x, y))
        size = x.square().mean((1, 2), keepdim=True).sqrt().clamp_min(1e-12)
        x, y = x / size, y / size
        facts, log_scale, _ = local_facts(x)
        return Tokens(x, y, colour, f + self.restart(facts), log_scale)

    def _pair_logits(self, tokens: Tokens) -> Tensor:
        _, y, colour, f, log_scale = tokens
        alone, width, affinity, codes = self.pair(f).split([1, 1, 1, PAIR_CODES], -1)
        width = width + log_scale
        gaps = squared_distances(y) * torch.exp(-(width + width.mT))
        base, far, hue = self.bias
        agreement = 4 * nn.functional.softplus(hue + affinity + affinity.mT) * (colour @ colour.mT)
        codes = codes @ codes.mT / math.sqrt(PAIR_CODES)
        return base + alone + alone.mT - 2 * nn.functional.softplus(far) * torch.log1p(gaps) + agreement + codes

    def _count_logits(self, f: Tensor, logits: Tensor) -> Tensor:
        """Logits of the number of clusters; rows whose cluster has s rows count 1/s each."""
        B, n, _ = logits.shape
        P = torch.sigmoid(logits.detach())
        sizes = 1 + P.sum(-1) - P.diagonal(dim1=1, dim2=2)
        facts = torch.stack([(1 / sizes).sum(-1).log(), (sizes.mean(-1) / n).log()], -1)
        rows = facts.new_full((B, 1), math.log(n / 100))
        return self.count(torch.cat([f.mean(1), facts, rows], -1))


def _near(head: HeadParameters, y: Tensor, colour: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Attention among the tokens: offered positions, offered colours, numbers seen, messages heard."""
    precision, bias, affinity, messages, queries, keys = head
    heads, d, m = precision.shape[1], y.shape[-1], colour.shape[-1]
    y, half, colour = (t[:, None].expand(-1, heads, -1, -1) for t in (y, y.square().sum(-1, keepdim=True) / 2, colour))
    at, size = y.detach(), half.detach()  # sharp views of moving positions have gradients that explode over the layers
    attended, log_density = softmax_means(
        (precision * at, precision, torch.ones_like(bias), affinity * colour, queries / math.sqrt(queries.shape[-1])),
        (at, -size, bias, colour, keys),
        (y, colour, half, messages),
        mask,
    )
    means, hues, halves, heard = attended.split([d, m, 1, messages.shape[-1]], -1)
    log_density = log_density[..., None] - precision * size - math.log(y.shape[-2])
    return means, hues, _seen([log_density], means, y, halves, precision, hues, colour), heard


def _compete(
    head: HeadParameters, x: Tensor, y: Tensor, colour: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tokens compete for each row but their own, and each is offered the mean of what it wins."""
    precision, bias, affinity, messages, _, _ = head
    heads, d, m = precision.shape[1], x.shape[-1], colour.shape[-1]
    x, size, y, half, colour = (
        t[:, None].expand(-1, heads, -1, -1)
        for t in (x, x.square().sum(-1, keepdim=True), y, y.square().sum(-1, keepdim=True) / 2, colour)
    )
    at, width, own = precision * y.detach(), -precision / 2, bias - precision * half.detach()
    hue = affinity * colour
    told, fit = softmax_means((x, size, torch.ones_like(size), colour), (at, width, own, hue), (colour, messages), mask)
    fit = fit[..., None]
    won, mass = softmax_means(
        (at, width, hue, torch.ones_like(own)), (x, size, colour, -fit), (x, told, size / 2), mask
    )
    means, hues, heard, halves = won.split([d, m, messages.shape[-1], 1], -1)
    seen = _seen([mass[..., None] + own, fit - math.log(x.shape[-2])], means, y, halves, precision, hues, colour)
    return means, hues, seen, heard


def _seen(log_densities, means, y, halves, precision, hues, colour) -> Tensor:
    """Invariant numbers: densities, scatter and shift in units of the width, and how far colours agree."""
    with torch.no_grad():  # in tight clusters their gradients would be differences of huge numbers, and all rounding
        scatter = (2 * halves - means.square().sum(-1, keepdim=True)).clamp_min(0) * precision
        shift = (means - y).square().sum(-1, keepdim=True) * precision
    coherence, agreement = hues.square().sum(-1, keepdim=True), (hues * colour).sum(-1, keepdim=True)
    return torch.cat(
        [*map(torch.asinh, log_densities), torch.log1p(scatter), torch.log1p(shift), coherence, agreement], -1
    )
