"""The two ways a token of `AnyDimensionFlow` looks around: at its neighbours, and at the data it can win.

Each head returns the means it offers, (B, heads, n, d), and the invariant numbers it has seen, (B, n, n_seen).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


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

    def _passed(self, weights: Tensor, f: Tensor) -> Tensor:
        """Messages of the attended, (B, n, heads * n_messages)."""
        values = self.messages(f).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        return (weights @ values).transpose(1, 2).flatten(2)


class MeanShiftHeads(_Heads):
    r"""Attention among the tokens by distance, a learned mean shift.

    .. math:: m_i = \sum_j a_{ij}\, y_j, \qquad a_{ij} \propto p_j\, e^{-|y_i - y_j|^2 / 2 b_i^2 + \beta_j}
    """

    n_numbers = 2

    def forward(self, y: Tensor, f: Tensor, log_p: Tensor) -> tuple[Tensor, Tensor]:
        precision = torch.exp(-2 * (self.log_width + self.width_change(f))).transpose(1, 2)  # (B, heads, n)
        bias = self.bias(f).transpose(1, 2) + log_p[:, None]
        logits = -0.5 * precision[..., None] * squared_distances(y, y)[:, None] + bias[:, :, None, :]
        log_density = torch.logsumexp(logits, -1)
        a = torch.exp(logits - log_density[..., None])
        means = a @ y[:, None]
        moved = torch.log1p((means - y[:, None]).square().mean(-1))
        numbers = torch.cat([log_density / 4, moved], 1).transpose(1, 2)
        return means, torch.cat([numbers, self._passed(a, f)], -1)


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
        precision = torch.exp(-2 * (self.log_width + self.width_change(f))).transpose(1, 2)  # (B, heads, n)
        bias = self.bias(f).transpose(1, 2)
        logits = -0.5 * precision[..., None] * squared_distances(y, x)[:, None] + bias[..., None]
        fit = torch.logsumexp(logits + log_p[:, None, :, None], -2)  # (B, heads, data): how well each is explained
        joint = logits - fit[:, :, None] + log_p[:, None, None]  # log(p_j r_ij / p_i), a number even for mass zero
        log_won = torch.logsumexp(joint, -1)
        z = torch.exp(joint - log_won[..., None])
        means = z @ x[:, None]
        moved = torch.log1p((means - y[:, None]).square().mean(-1))
        surprise = (fit + d / 2) / math.sqrt(1 + d / 2)  # a datum of a well-placed atom has fit about -d/2
        numbers = torch.cat([log_won, moved, surprise], 1).transpose(1, 2)
        return means, torch.cat([numbers, self._passed(z, f)], -1)


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    r"""All :math:`|a_i - b_j|^2`, (B, n, m), by one product; clouds are centred, so few digits cancel."""
    return ((a * a).sum(-1)[..., :, None] + (b * b).sum(-1)[..., None, :] - 2 * a @ b.mT).clamp_min(0)


def _zero_linear(n_in: int, n_out: int) -> nn.Linear:
    layer = nn.Linear(n_in, n_out)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
