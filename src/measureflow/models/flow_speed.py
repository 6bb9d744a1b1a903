"""How long to flow: a learned decreasing function of the signal-to-noise ratio."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from measureflow.flows import NoFlow, Uniform, Unit

SCHEDULES = ("uniform", "unit", "no-flow")


class FlowSpeed(nn.Module):
    r"""The total flow :math:`F(s) = T_{max}\,(1 - f_\theta(x))` for :math:`x = (s - s_{low})/(s_{high} - s_{low})`.

    .. math:: f_\theta(x) = \sum_{i=1}^N w_i\, \sigma(N (x - x_i)), \quad w = \mathrm{softmax}(a), \quad
        x_i = (1 + 10/N)\,\sigma(b_i) - 5/N

    increases from about 0 to about 1 whatever the parameters a and b [Zimin 2025, C.4]; the clearer the clusters,
    the shorter the flow.

    >>> speed = FlowSpeed(3.0, 15.0, 16.0)
    >>> speed(torch.tensor([3.0, 9.0, 15.0])).detach().diff() < 0
    tensor([True, True])
    """

    def __init__(self, low: float, high: float, max_flow: float, n_steps: int = 20):
        super().__init__()
        if not low < high:
            raise ValueError(f"low must be less than high, got low={low} and high={high}")
        self.low, self.high, self.max_flow = float(low), float(high), float(max_flow)
        self.weights = nn.Parameter(torch.zeros(n_steps))
        start = torch.linspace(-5 / n_steps, 1 + 5 / n_steps, n_steps + 2)[1:-1]
        self.positions = nn.Parameter(torch.logit((start + 5 / n_steps) / (1 + 10 / n_steps)))

    def forward(self, snr_db: Tensor) -> Tensor:
        N = len(self.weights)
        x = (snr_db - self.low) / (self.high - self.low)
        at = (1 + 10 / N) * torch.sigmoid(self.positions) - 5 / N
        f = (torch.softmax(self.weights, 0) * torch.sigmoid(N * (x[..., None] - at))).sum(-1)
        return self.max_flow * (1 - f)

    def steps(self, snr_db: Tensor, schedule: str, n_layers: int):
        """The step sizes of a schedule at these SNRs; Unit keeps a fraction while training: a floor has no gradient."""
        if schedule not in SCHEDULES:
            raise ValueError(f"schedule must be one of {', '.join(SCHEDULES)}, got {schedule!r}")
        if schedule == "no-flow":
            return NoFlow(n_layers)
        T = self(snr_db)
        return Uniform(T, n_layers) if schedule == "uniform" else Unit(T, n_layers, fractional=self.training)
