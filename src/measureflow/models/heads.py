"""The two ways a token of `AnyDimensionFlow` looks around: at its neighbours, and at the data it can win.

Each head returns the means it offers, (B, heads, n, d), and the invariant numbers it has seen, (B, n, n_seen). A
squared distance is a dot product of lifted vectors, -|a - b|^2/2 = (a, 1) . (b, -|b|^2/2) - |a|^2/2, so the ordinary
fused attention kernel computes all of it and no matrix is held; clouds are centred, so few digits cancel.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from measureflow.attention.fused import softmax_means


class _Heads(nn.Module):
    """Widths of the heads in units of the noise, and the messages they pass."""

    n_numbers: int  # invariants that each head reports beside its messages

    def __init__(self, n_heads: int, n_features: int, n_messages: int, widths: tuple[float, float]):
        super().__init__()
        low, high = (math.log(width) for width in widths)
        self.log_width = nn.Parameter(torch.linspace(low, high, n_heads) if n_heads > 1 else torch.zeros(1))
        self.width_change = _zero_linear(n_features, n_heads)  # each token may look nearer or farther
        self.bias = _zero_linear(n_features, n_heads)  # each token may be more or less attractive
        self.messages = nn.Linear(n_features, n_heads * n_messages)
        self.n_heads = n_heads
        self.n_seen = n_heads * (self.n_numbers + n_messages)

    def _looks(self, f: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Precision and bias of each head at each token, (B, heads, n, 1), and its messages (B, heads, n, m).

        Widths change by a factor of four at most: a wrong guess of the noise may mislead tokens, not hurl them.
        """
        precision = torch.exp(-2 * (self.log_width + self.width_change(f).clamp(-1.5, 1.5)))
        messages = self.messages(f).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        return _by_head(precision), _by_head(self.bias(f)), messages

    def _report(self, numbers: list[Tensor], messages: Tensor) -> Tensor:
        """Everything seen, side by side for each token."""
        return torch.cat([torch.cat(numbers, 1).transpose(1, 2), messages.transpose(1, 2).flatten(2)], -1)


class MeanShiftHeads(_Heads):
    r"""Attention among the tokens by distance, a learned mean shift.

    .. math:: m_i = \sum_j a_{ij}\, y_j, \qquad a_{ij} \propto p_j\, e^{-|y_i - y_j|^2 / 2 b_i^2 + \beta_j}
    """

    n_numbers = 2

    def forward(self, y: Tensor, f: Tensor, log_p: Tensor) -> tuple[Tensor, Tensor]:
        d = y.shape[-1]
        precision, bias, messages = self._looks(f)
        y = y[:, None].expand(-1, self.n_heads, -1, -1)
        half = y.square().sum(-1, keepdim=True) / 2
        queries = torch.cat([precision * y, precision, torch.ones_like(precision)], -1)
        keys = torch.cat([y, -half, bias + log_p[:, None, :, None]], -1)
        attended, log_density = softmax_means(queries, keys, torch.cat([y, messages], -1))
        log_density = log_density - (precision * half).squeeze(-1)
        means, messages = attended.split([d, messages.shape[-1]], -1)
        return means, self._report([log_density / 4, _moved(means, y)], messages)


class CompetingHeads(_Heads):
    r"""Tokens compete for each datum, and each moves toward the mean of what it wins: the E and M steps.

    .. math::
        r_{ij} = \frac{p_i\, e^{-|x_j - y_i|^2/2 b_i^2 + \beta_i}}{\sum_l p_l\, e^{-|x_j - y_l|^2/2 b_l^2 + \beta_l}},
        \qquad m_i = \frac{\sum_j p_j r_{ij}\, x_j}{\sum_j p_j r_{ij}}

    Soft k-means with the tokens as centres [Clarkson 2025, A.2]; one EM step for known noise when b = 1 and
    beta = 0 [He 2025, Algorithm 1].
    """

    n_numbers = 3

    def forward(self, x: Tensor, y: Tensor, f: Tensor, p: Tensor, log_p: Tensor) -> tuple[Tensor, Tensor]:
        d = x.shape[-1]
        precision, bias, messages = self._looks(f)
        x, y = (t[:, None].expand(-1, self.n_heads, -1, -1) for t in (x, y))
        log_p = log_p[:, None, :, None]
        size = x.square().sum(-1, keepdim=True)
        own = bias - precision * y.square().sum(-1, keepdim=True) / 2
        data = torch.cat([x, size, torch.ones_like(size)], -1)
        tokens = torch.cat([precision * y, -precision / 2, own + log_p], -1)
        _, fit = softmax_means(data, tokens, tokens)  # (B, heads, data): how well each is explained
        data = torch.cat([x, size, log_p - fit[..., None]], -1)
        tokens = torch.cat([precision * y, -precision / 2, torch.ones_like(own)], -1)
        won, log_won = softmax_means(tokens, data, torch.cat([x, messages], -1))
        log_won = log_won + own.squeeze(-1)  # log of the mass won over the mass held, a number even for mass zero
        means, messages = won.split([d, messages.shape[-1]], -1)
        surprise = (fit + d / 2) / math.sqrt(1 + d / 2)  # a datum of a well-placed atom has fit about -d/2
        return means, self._report([log_won, _moved(means, y), surprise], messages)


def _moved(means: Tensor, y: Tensor) -> Tensor:
    return torch.log1p((means - y).square().mean(-1))


def _by_head(t: Tensor) -> Tensor:
    return t.transpose(1, 2)[..., None]


def _zero_linear(n_in: int, n_out: int) -> nn.Linear:
    layer = nn.Linear(n_in, n_out)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
