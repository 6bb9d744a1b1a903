"""One layer of an `AnyShapeFlow`: the velocity of its tokens."""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import nn

from measureflow.attention import Field
from measureflow.flows.state import Parts
from measureflow.models.any_dimension_heads import split_heads
from measureflow.models.any_shape.config import AnyShapeConfig
from measureflow.models.any_shape.heads import SEEN_NEAR, SEEN_WON, HeadParameters, compete, mean_shift
from measureflow.models.any_shape.tokens import ColouredTokens, limited


class ShapeLayer(Field):
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
        seen = 2 * c.n_features + c.n_near * SEEN_NEAR + c.n_em * SEEN_WON + self.heads * c.n_messages + 2
        self.update = nn.Sequential(
            nn.LayerNorm(seen), nn.Linear(seen, c.hidden), nn.GELU(), nn.Linear(c.hidden, c.n_features)
        )

    @torch.no_grad()
    def rest(self) -> None:
        """Move nothing and say nothing from now on, until training moves the weights again."""
        for tensor in (self.reads.weight, self.reads.bias):
            tensor.unflatten(0, (self.heads, -1))[:, 2:4] = 0.0  # gates of positions and of colours
        change = cast(nn.Linear, self.update[-1])
        for tensor in (change.weight, change.bias):
            tensor.zero_()

    def on_tokens(self, tokens: ColouredTokens) -> Parts:
        """The velocity of the positions, that of the colours, and what is added to the features."""
        x, y, colours, f, log_scale, mask = tokens
        read = limited(self.reads(f), torch.ones_like(log_scale))
        read = read.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, heads, n, ...)
        width, bias, gate, turn, affinity, messages, queries, keys = read.split(self.sizes, -1)
        strayed = (y - x).detach().square().sum(-1, keepdim=True)
        unit = 0.5 * torch.log(torch.exp(2 * log_scale) + strayed)  # who has strayed far from home needs a wider view
        log_width = self.log_width[:, None, None] + 1.5 * torch.tanh(width / 1.5) + unit[:, None]
        parameters = HeadParameters(torch.exp(-2 * log_width), bias, affinity, messages, queries, keys)
        near, em = split_heads(parameters, self.config.n_near, self.config.n_em)
        offers, hues, seen, heard = mean_shift(near, y, colours, mask)
        won = compete(em, x, y, colours, mask)
        offers, hues = torch.cat([offers, won[0]], 1), torch.cat([hues, won[1]], 1)
        velocity = ((0.5 * torch.tanh(2 * gate)) * (offers - y[:, None])).sum(1)
        rotation = (torch.tanh(turn) * (hues - colours[:, None])).sum(1)
        numbers = torch.cat([t.transpose(1, 2).flatten(2) for t in (seen, won[2], heard, won[3])], -1)
        pooled = f.mean(1, keepdim=True).expand_as(f)
        change = self.update(torch.cat([f, pooled, numbers, unit - log_scale, log_scale], -1))
        return velocity, rotation, change
