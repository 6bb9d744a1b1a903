"""The training loop: one step is data, loss, gradient, update; all else is bookkeeping that survives a crash."""

from __future__ import annotations

import csv
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset

from measureflow.models.checkpoints import load_tensors, save_tensors, write_atomically
from measureflow.models.pretrained import KINDS, build, save_model, warm_start
from measureflow.training.config import TrainingConfig, seeded
from measureflow.training.descent import OPTIMISERS, Descent

STEP_FACTS = ("step", "n", "rate", "loss", "gradient", "seconds")  # what the log says of each step


class Training:
    """A run in a folder: ``checkpoint.safetensors`` to go on from, ``log.csv``, and ``model/`` at the end.

    Data, schedule and noise are functions of the seed and the step, so weights, optimiser state and the number of
    steps done are all there is to remember: a run resumed after any crash ends with the same bits.
    """

    def __init__(self, config: TrainingConfig, folder: str | Path, *, resume: bool = False, devices: int | None = None):
        if config.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {config.kind!r}")
        if config.optimiser not in OPTIMISERS:
            raise ValueError(f"optimiser must be one of {', '.join(OPTIMISERS)}, got {config.optimiser!r}")
        self.config, self.folder = config, Path(folder)
        self.checkpoint, self.log = self.folder / "checkpoint.safetensors", self.folder / "log.csv"
        if self.checkpoint.exists() and not resume:
            raise ValueError(f"{self.folder} holds a run already: resume it, or choose another folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.fabric = _fabric(devices)
        torch.manual_seed(config.seed)
        self.model = build(config.kind, config.model)
        if config.start:
            warm_start(self.model, config.start)
        self.average = {name: t.detach().clone() for name, t in self.model.named_parameters()}
        optimiser = OPTIMISERS[config.optimiser]
        self.optimiser = optimiser(_groups(self.model, config.weight_decay), lr=1.0, betas=(0.9, 0.99))
        self.done, self.stopping = 0, False
        if self.checkpoint.exists():
            self._load()
        first = self.done
        rates = LambdaLR(self.optimiser, lambda step: config.rate_at(first + step))
        self.worker, self.optimiser = self.fabric.setup(self.model, self.optimiser)
        self.descent = Descent(self.model.parameters(), self.optimiser, rates, config.clip, self.fabric.backward)
        if config.aim.method != "forward":
            self.worker.mark_forward_method(config.aim.method)

    def run(self, watch=None) -> nn.Module:
        """Train to the end (or until interrupted), calling ``watch(facts)`` after each step; returns the model."""
        self._catch_signals()
        self._trim_log()
        curves = _curves(self.folder) if self.fabric.is_global_zero else None
        saved = time.monotonic()
        for step, batches in zip(range(self.done, self.config.steps), self._batches(), strict=False):
            facts = self.take_step(step, batches)
            self.done = step + 1
            if self.fabric.is_global_zero:
                self._write_log(facts)
            due = self.config.evaluate_every and self.done % self.config.evaluate_every == 0
            if due or self.done == self.config.steps:
                facts |= self.evaluate()
            if curves is not None:
                for name in facts.keys() - {"step", "n"}:
                    curves.add_scalar(name, facts[name], self.done)
            if watch is not None:
                watch(facts)
            if self.stopping or time.monotonic() - saved > self.config.checkpoint_seconds:
                self.save()
                saved = time.monotonic()
            if self.stopping:
                break
        self.save()
        return self.finished()

    def take_step(self, step: int, batches: Sequence[Any]) -> dict:
        """Move the weights by the mean gradient on some batches; returns what the log says of the step."""
        started = time.monotonic()
        part = slice(self.fabric.global_rank, None, self.fabric.world_size)  # together the processes see what one would
        noise = seeded(self.config.seed, "told", step)  # the name of a stream: another one would change every run
        losses = (self.config.aim.loss(self.worker, batch, part, noise) for batch in batches)
        rate, gradient, loss = self.descent.step(step, losses, len(batches))
        self._update_average(step)
        seconds = time.monotonic() - started
        facts = (step, max(batch.points.shape[1] for batch in batches), rate, loss, gradient, seconds)
        return dict(zip(STEP_FACTS, facts, strict=True))

    @torch.no_grad()
    def _update_average(self, step: int) -> None:
        decay = min(self.config.average, (1 + step) / (10 + step))  # short memory at first
        for name, parameter in self.model.named_parameters():
            self.average[name].lerp_(parameter.detach(), 1 - decay)

    def finished(self) -> nn.Module:
        """A copy with the averaged weights, in evaluation mode."""
        model = build(self.config.kind, self.config.model)
        model.load_state_dict(self.model.state_dict() | self.average)
        return model.eval()

    def evaluate(self) -> dict[str, float]:
        """The objective's scores, on sets drawn from a seed that training never uses."""
        scores = self.config.aim.evaluate(self.finished(), self.config.evaluate_sets, self.config.evaluate_n)
        if self.fabric.is_global_zero:
            _append(self.folder / "evaluations.csv", {"step": self.done} | scores)
        return scores

    def export(self, folder: str | Path, facts: dict | None = None) -> Path:
        """Write the finished model where it can be loaded by `load_model`."""
        return save_model(self.finished(), folder, facts)

    def save(self) -> None:
        """Write the checkpoint, whole or not at all."""
        if not self.fabric.is_global_zero:
            return
        tensors = {f"model/{name}": t for name, t in self.model.state_dict().items()}
        tensors |= {f"average/{name}": t for name, t in self.average.items()}
        for i, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser/{i}/{name}": t for name, t in state.items()}
        save_tensors(self.checkpoint, tensors, {"done": self.done, "config": self.config.fingerprint(self.done)})

    def _load(self) -> None:
        tensors, facts = load_tensors(self.checkpoint)
        if facts.get("config") != self.config.fingerprint(int(facts["done"])):
            raise ValueError(f"{self.checkpoint.name} belongs to another config: choose another folder")
        part = lambda head: {n.removeprefix(head): t for n, t in tensors.items() if n.startswith(head)}  # noqa: E731
        self.model.load_state_dict(part("model/"))
        self.average = part("average/")
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in part("optimiser/").items():
            index, what = name.split("/")
            state.setdefault(int(index), {})[what] = tensor
        self.optimiser.load_state_dict(self.optimiser.state_dict() | {"state": state})
        self.done = int(facts["done"])

    def _batches(self) -> Iterator[list[Any]]:
        steps = range(self.done, self.config.steps)
        return iter(DataLoader(_Steps(self.config), sampler=steps, batch_size=None, num_workers=self.config.workers))

    def _catch_signals(self) -> None:
        def stop(*_):
            self.stopping = True

        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, stop)

    def _trim_log(self) -> None:
        """Drop log rows of steps that will be done again."""
        if not self.log.exists():
            return
        rows = list(csv.DictReader(self.log.read_text().splitlines()))
        kept = [row for row in rows if int(row["step"]) < self.done]
        lines = [",".join(rows[0])] + [",".join(row.values()) for row in kept] if rows else []
        write_atomically(self.log, ("\n".join(lines) + "\n").encode() if kept else b"")

    def _write_log(self, facts: dict) -> None:
        _append(self.log, {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in facts.items()})


def data_of(config: TrainingConfig, step: int, draw: int = 0) -> Any:
    """A batch of a step: a function of the seed, the step and its number, so nothing needs to be remembered."""
    stream = (step, draw) if draw else (step,)
    return config.aim.batch(config.stage_of(step)[0], seeded(config.seed, "train", *stream))


class _Steps(Dataset):
    """Step number -> its batches, made in a worker process."""

    def __init__(self, config: TrainingConfig):
        self.config = config

    def __getitem__(self, step: int) -> list[Any]:
        return [data_of(self.config, step, draw) for draw in range(self.config.stage_of(step)[0].draws)]


def _fabric(devices: int | None):
    from lightning_fabric import Fabric

    world = int(os.environ.get("WORLD_SIZE", "1"))
    strategy = "ddp" if world > 1 else "auto"
    fabric = Fabric(
        accelerator="auto", devices=devices or (int(os.environ.get("LOCAL_WORLD_SIZE", "1"))), strategy=strategy
    )
    fabric.launch()
    return fabric


def _curves(folder: Path):
    """A TensorBoard writer where TensorBoard is installed, else none: the CSV has the same numbers."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(folder / "tensorboard")


def _groups(model: nn.Module, decay: float) -> list[dict]:
    """Matrices are pulled toward zero, vectors are not."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]


def _append(path: Path, row: dict) -> None:
    new = not path.exists() or path.stat().st_size == 0
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, row.keys())
        if new:
            writer.writeheader()
        writer.writerow(row)
