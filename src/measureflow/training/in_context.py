"""The in-context clusterer trained in memory, in a minute: recipes as plain data, and the loop that follows one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch.optim.lr_scheduler import LambdaLR

from measureflow.measures import checks
from measureflow.measures.he_mixtures import HeMixtures
from measureflow.models.in_context import InContextClusterer
from measureflow.training.assignment_loss import Start, naming_loss
from measureflow.training.descent import Descent


@dataclass(frozen=True)
class Recipe:
    """Adam, its step size decaying by ``decay`` each step, or along a cosine after ``warm_up`` steps if that is None.

    ``n_per_class`` trains on smaller sets than those asked for: attention takes any number of points, and sets of 8
    points a class cost a tenth of sets of 50. ``clip`` bounds the norm of the gradient.
    """

    n_steps: int = 300
    batch: int = 32
    learning_rate: float = 5e-4
    decay: float | None = 0.995
    warm_up: int = 0
    n_per_class: int | None = None
    clip: float = math.inf

    def __post_init__(self):
        checks.whole("n_steps", self.n_steps)
        checks.whole("batch", self.batch)

    def step_size(self, step: int) -> float:
        """The learning rate at a step, counted from zero."""
        if self.decay is not None:
            return self.learning_rate * self.decay**step
        rise = min(1.0, (step + 1) / (self.warm_up + 1))
        return self.learning_rate * rise * (1 + math.cos(math.pi * step / self.n_steps)) / 2


PRINTED = Recipe()  # section 4: Adam 5e-4, decay 0.995 a step, 300 steps; the batch is not printed
FOUND = Recipe(n_steps=2500, batch=64, learning_rate=1e-2, decay=None, warm_up=50, n_per_class=8, clip=1.0)


def train(
    model: InContextClusterer,
    mixtures: HeMixtures,
    recipe: Recipe = FOUND,
    *,
    generator: torch.Generator,
    start: Start | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> list[float]:
    """Train ``model`` on fresh sets at every step, and return the loss of each step.

    ``start`` makes the first labels of a model with context; ``progress`` is called with step and loss.
    """
    if recipe.n_per_class is not None:
        mixtures = replace(mixtures, n_per_class=min(recipe.n_per_class, mixtures.n_per_class))
    if (mixtures.n_classes, mixtures.dimension) != (model.config.n_classes, model.config.dimension):
        raise ValueError("mixtures and model must agree on the number of classes and the dimension")
    optimiser = torch.optim.Adam(model.parameters(), lr=1.0)
    descent = Descent(model.parameters(), optimiser, LambdaLR(optimiser, recipe.step_size), recipe.clip)
    losses = []
    for step in range(recipe.n_steps):
        batch = mixtures.sample(recipe.batch, generator)
        losses.append(descent.step(step, [naming_loss(model, batch, start)])[-1])
        if progress is not None:
            progress(step + 1, losses[-1])
    return losses
