"""One step down a loss: gradient, clip, update. Every training is made of these, whether or not a folder keeps it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler


class Descent:
    """An optimiser whose rate follows a schedule and whose gradient is cut to a length."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        optimiser: Optimizer,
        rates: LRScheduler,
        clip: float,
        backward: Callable[[Tensor], None] = Tensor.backward,
    ):
        self.parameters, self.optimiser, self.rates = list(parameters), optimiser, rates
        self.clip, self.backward = clip, backward

    def step(self, number: int, loss: Tensor) -> tuple[float, float]:
        """Go down the gradient of the loss; the rate, and the length of the gradient before it was cut."""
        rate = self.rates.get_last_lr()[0]
        self.optimiser.zero_grad()
        self.backward(loss)
        length = float(nn.utils.clip_grad_norm_(self.parameters, self.clip))
        if not math.isfinite(length):
            raise RuntimeError(
                f"the gradient is not finite at step {number}: lower the rate; the last checkpoint is whole"
            )
        self.optimiser.step()
        self.rates.step()
        return float(rate), length
