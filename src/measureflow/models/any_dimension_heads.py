"""The two kinds of heads of `AnyDimensionFlow`: one attends to a token's neighbours, one to the data.

Each returns the means it offers, (B, heads, n, d), the invariant numbers it has seen, a list of (B, heads, n), and the
messages it was sent, (B, heads, n, m). A squared distance is a dot product of lifted vectors,
-|a - b|^2/2 = (a, 1) . (b, -|b|^2/2) - |a|^2/2, so the ordinary fused attention kernel computes all of it and no matrix
is held; clouds are centred, so few digits cancel.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from measureflow.attention.fused import softmax_means


class HeadParameters(NamedTuple):
    """The parameters of each head for every token, all read from the token's features."""

    precision: Tensor  # (B, heads, n, 1): one over the squared width
    bias: Tensor  # (B, heads, n, 1): how attractive a token is
    messages: Tensor  # (B, heads, n, m): what it sends to others


T = TypeVar("T", bound=tuple)


def split_heads(parameters: T, *heads: int) -> list[T]:
    """A named tuple of what the heads read, (B, heads, ...), for the first few heads, for the next few, and so on."""
    return [type(parameters)(*part) for part in zip(*(t.split(heads, 1) for t in parameters), strict=True)]


def in_every_head(heads: int, *columns: Tensor) -> list[Tensor]:
    """The same columns (B, n, ...) in every head, (B, heads, n, ...)."""
    return [t[:, None].expand(-1, heads, -1, -1) for t in columns]


SEEN_NEAR = 3  # numbers that `mean_shift` reports
SEEN_BY_EM = 5  # numbers that `compete` reports


def mean_shift(y: Tensor, head: HeadParameters, log_p: Tensor) -> tuple[Tensor, list[Tensor], Tensor]:
    r"""Attention among the tokens by distance, a learned mean shift.

    .. math:: m_i = \sum_j a_{ij}\, y_j, \qquad a_{ij} \propto p_j\, e^{-|y_i - y_j|^2 / 2 b_i^2 + \beta_j}
    """
    precision, d = head.precision, y.shape[-1]
    y, half = in_every_head(precision.shape[1], y, y.square().sum(-1, keepdim=True) / 2)
    attended, log_density = softmax_means(
        (precision * y, precision, torch.ones_like(precision)),
        (y, -half, head.bias + log_p[:, None, :, None]),
        (y, half, head.messages),
    )
    means, halves, messages = attended.split([d, 1, head.messages.shape[-1]], -1)
    log_density = log_density - (precision * half).squeeze(-1)
    return means, [log_density / 4, _moved(means, y), _spread(means, halves)], messages


def compete(x: Tensor, y: Tensor, head: HeadParameters, log_p: Tensor) -> tuple[Tensor, list[Tensor], Tensor]:
    r"""Tokens compete for each datum, and each is offered the mean of the data by responsibility: the E and M steps.

    .. math::
        r_{ij} = \frac{p_i\, e^{-|x_j - y_i|^2/2 b_i^2 + \beta_i}}{\sum_l p_l\, e^{-|x_j - y_l|^2/2 b_l^2 + \beta_l}},
        \qquad m_i = \frac{\sum_j p_j r_{ij}\, x_j}{\sum_j p_j r_{ij}}

    Soft k-means with the tokens as centres [Clarkson 2025, A.2]; one EM step for known noise when b = 1 and
    beta = 0 [He 2025, Algorithm 1]. A message goes to the data that a token competes for, and from them to all tokens
    that compete for the same.
    """
    precision, d, m = head.precision, x.shape[-1], head.messages.shape[-1]
    log_p = log_p[:, None, :, None]
    x, size = in_every_head(precision.shape[1], x, x.square().sum(-1, keepdim=True))
    y, half = in_every_head(precision.shape[1], y, y.square().sum(-1, keepdim=True) / 2)
    own = head.bias - precision * half
    at, width = precision * y, -precision / 2
    at_data, fit = softmax_means(
        (x, size, torch.ones_like(size)), (at, width, own + log_p), (y, half, head.messages)
    )  # (B, heads, data, ...): the messages to each datum, and its log-density
    center, halves, received = at_data.split([d, 1, m], -1)
    doubt = _spread(center, halves)  # how far apart the tokens are that compete for it
    attended, log_mass = softmax_means(
        (at, width, torch.ones_like(own)), (x, size, log_p - fit[..., None]), (x, size / 2, doubt[..., None], received)
    )
    means, halves, doubts, messages = attended.split([d, 1, 1, m], -1)
    log_mass = log_mass + own.squeeze(-1)  # log of the mass claimed over the token's own, a number even for mass zero
    surprise = (fit + d / 2) / math.sqrt(1 + d / 2)  # a datum of a well-placed atom has fit about -d/2
    return means, [log_mass, _moved(means, y), _spread(means, halves), doubts.squeeze(-1), surprise], messages


def _moved(means: Tensor, y: Tensor) -> Tensor:
    return torch.log1p((means - y).square().mean(-1))


def _spread(means: Tensor, halves: Tensor) -> Tensor:
    """How far the attended points scatter around their mean: beyond the noise, there is more than one cluster."""
    variance = (2 * halves.squeeze(-1) - means.square().sum(-1)) / means.shape[-1]
    return torch.log1p(variance.clamp_min(0.0))
