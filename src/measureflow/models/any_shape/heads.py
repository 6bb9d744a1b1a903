"""The two kinds of heads of `AnyShapeFlow`: one attends to a token's neighbours, one to the rows it can win.

Each returns the mean positions (B, heads, n, d) and the mean colours (B, heads, n, m) that it offers, the invariant
numbers that it has seen, and the messages that it was sent. A mask (n, n) is added to the scores.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from measureflow.attention.fused import softmax_means
from measureflow.models.any_dimension_heads import in_every_head

SEEN_NEAR = 5  # numbers that `mean_shift` reports
SEEN_WON = 6  # numbers that `compete` reports


class HeadParameters(NamedTuple):
    """What each token reads from its features for each head, (B, heads, n, ...)."""

    precision: Tensor  # one over the squared width of its view
    bias: Tensor  # how attractive it is
    affinity: Tensor  # how much the agreement of colours counts
    messages: Tensor  # what it tells others
    queries: Tensor
    keys: Tensor


def mean_shift(head: HeadParameters, y: Tensor, colours: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Attention among the tokens: offered positions, offered colours, numbers seen, messages heard."""
    precision, bias, affinity, messages, queries, keys = head
    d, m = y.shape[-1], colours.shape[-1]
    y, half, colours = in_every_head(precision.shape[1], y, y.square().sum(-1, keepdim=True) / 2, colours)
    at, size = y.detach(), half.detach()  # sharp views of moving positions have gradients that explode over the layers
    attended, log_density = softmax_means(
        (precision * at, precision, torch.ones_like(bias), affinity * colours, queries / math.sqrt(queries.shape[-1])),
        (at, -size, bias, colours, keys),
        (y, colours, half, messages),
        mask,
    )
    means, hues, halves, heard = attended.split([d, m, 1, messages.shape[-1]], -1)
    log_density = log_density[..., None] - precision * size - math.log(y.shape[-2])
    return means, hues, _seen([log_density], means, y, halves, precision, hues, colours), heard


def compete(
    head: HeadParameters, x: Tensor, y: Tensor, colours: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tokens compete for each row but their own, and each is offered the mean of what it wins."""
    precision, bias, affinity, messages, _, _ = head
    d, m = x.shape[-1], colours.shape[-1]
    x, size, y, half, colours = in_every_head(
        precision.shape[1], x, x.square().sum(-1, keepdim=True), y, y.square().sum(-1, keepdim=True) / 2, colours
    )
    at, width, own = precision * y.detach(), -precision / 2, bias - precision * half.detach()
    hue = affinity * colours
    told, fit = softmax_means(
        (x, size, torch.ones_like(size), colours), (at, width, own, hue), (colours, messages), mask
    )
    fit = fit[..., None]
    won, mass = softmax_means(
        (at, width, hue, torch.ones_like(own)), (x, size, colours, -fit), (x, told, size / 2), mask
    )
    means, hues, heard, halves = won.split([d, m, messages.shape[-1], 1], -1)
    seen = _seen([mass[..., None] + own, fit - math.log(x.shape[-2])], means, y, halves, precision, hues, colours)
    return means, hues, seen, heard


def _seen(log_densities, means, y, halves, precision, hues, colours) -> Tensor:
    """Invariant numbers: densities, scatter and shift in units of the width, and how far colours agree."""
    with torch.no_grad():  # in tight clusters their gradients would be differences of huge numbers, and all rounding
        scatter = (2 * halves - means.square().sum(-1, keepdim=True)).clamp_min(0) * precision
        shift = (means - y).square().sum(-1, keepdim=True) * precision
    coherence, agreement = hues.square().sum(-1, keepdim=True), (hues * colours).sum(-1, keepdim=True)
    return torch.cat(
        [*map(torch.asinh, log_densities), torch.log1p(scatter), torch.log1p(shift), coherence, agreement], -1
    )
