"""One step of gradient descent: gradient, clip, update. Every training takes such steps, in a folder or in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from torch import Tensor, nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LRScheduler

from measureflow.training.muon import Muon

OPTIMISERS: dict[str, type[AdamW] | type[Muon]] = {"adamw": AdamW, "muon": Muon}


class Descent:
    """An optimiser whose rate follows a schedule and whose gradient is clipped."""

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

    def step(self, number: int, losses: Iterable[Tensor], count: int = 1) -> tuple[float, float, float]:
        """Take one step down the mean of so many losses; return the rate, the norm of the gradient before clipping, and
        the mean loss.

        Losses may be made one by one: the graph of each is freed before the next is asked for.
        """
        rate, total = self.rates.get_last_lr()[0], 0.0
        self.optimiser.zero_grad()
        for loss in losses:
            self.backward(loss / count)
            total += loss.item() / count
        length = float(nn.utils.clip_grad_norm_(self.parameters, self.clip))
        if not math.isfinite(length):
            raise RuntimeError(
                f"the gradient is not finite at step {number}: lower the rate; the last checkpoint is whole"
            )
        self.optimiser.step()
        self.rates.step()
        return float(rate), length, total
