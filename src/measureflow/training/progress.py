"""What a person sees while a model trains: sets per second, loss, time left."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from measureflow.training.config import TrainingConfig, read_config
from measureflow.training.loop import STEP_FACTS, Training


def run_with_progress(config: Path, folder: Path, *, resume: bool, devices: int | None) -> Path:
    """Train from a TOML file with a progress bar; the finished model is in ``folder/model``."""
    settings = read_config(config)
    training = Training(settings, folder, resume=resume, devices=devices)
    if not training.fabric.is_global_zero:
        training.run()
        return folder / "model"
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=settings.steps, completed=training.done)
        training.run(_Watch(bar, task, settings))
    if training.done < settings.steps:
        raise ValueError(f"interrupted after {training.done} of {settings.steps} steps; go on with --resume")
    return training.export(folder / "model", {"config": config.name, "steps": settings.steps})


class _Watch:
    """Shows a step; averages the loss, which is noisy, over about fifty of them."""

    def __init__(self, bar: Progress, task, settings: TrainingConfig):
        self.bar, self.task, self.settings = bar, task, settings
        self.loss, self.said = None, time.monotonic()

    def __call__(self, facts: dict) -> None:
        self.loss = facts["loss"] if self.loss is None else 0.98 * self.loss + 0.02 * facts["loss"]
        stage, _ = self.settings.stage_of(facts["step"])
        rate = stage.batch / facts["seconds"]
        words = f"n={stage.n}  loss {self.loss:.4f}  {rate:.1f} sets/s"
        self.bar.update(self.task, completed=facts["step"] + 1, description=words)
        tests = {name: value for name, value in facts.items() if name not in STEP_FACTS}
        if tests:
            scores = "  ".join(f"{name} {value:.4f}" for name, value in tests.items())
            self.bar.console.print(f"step {facts['step'] + 1}: on the test sets  {scores}")
        elif not self.bar.console.is_terminal and time.monotonic() - self.said > 30:
            self.said = time.monotonic()
            self.bar.console.print(f"step {facts['step'] + 1} of {self.settings.steps}: {words}")
