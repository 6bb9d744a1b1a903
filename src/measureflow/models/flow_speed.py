"""How long to flow: a learned decreasing function of the signal-to-noise ratio."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from measureflow.flows import NoFlow, Uniform, Unit

# The schedules by name, from the time to flow and the number of layers. Unit keeps a fraction of a step while a model
# trains: a floor has no gradient.
SCHEDULES: dict[str, Callable[[Tensor, int, bool], Iterable[float | Tensor]]] = {
    "uniform": lambda time, n_layers, training: Uniform(time, n_layers),
    "unit": lambda time, n_layers, training: Unit(time, n_layers, fractional=training),
    "no-flow": lambda time, n_layers, training: NoFlow(n_layers),
}


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

    def steps(self, snr_db: Tensor, schedule: str, n_layers: int) -> Iterable[float | Tensor]:
        """The step sizes of a schedule at these SNRs."""
        if not isinstance(schedule, str) or schedule not in SCHEDULES:
            raise ValueError(f"schedule must be one of {', '.join(SCHEDULES)}, got {schedule!r}")
        return SCHEDULES[schedule](self(snr_db), n_layers, self.training)
