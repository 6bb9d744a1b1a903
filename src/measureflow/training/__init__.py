"""How learned models are trained: one loop, an objective for each kind of model, configs that decide everything."""

from measureflow.training.config import Stage, TrainingConfig, read_config, seeded
from measureflow.training.loop import Training

__all__ = ["Stage", "Training", "TrainingConfig", "read_config", "seeded"]
