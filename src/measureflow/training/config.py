"""A training as plain data: what to train, toward what, on what sizes, for how long; read from TOML."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch

from measureflow.models.pretrained import digest
from measureflow.training.objectives import OBJECTIVES, Objective

USUAL = {"any-shape": "together", "in-context": "named-clusters"}  # the objective of a kind, where it is another


@dataclass(frozen=True)
class Stage:
    """A stretch of training at one size; the rate falls from ``rate`` to ``rate_end`` by half a cosine."""

    steps: int
    n: int  # points in each set, or the most of them
    batch: int  # sets of n points in each step, over all processes together; of smaller ones as many more
    rate: float
    rate_end: float = 0.0
    warmup: int = 0  # steps of linear rise at the start
    d: list[int] = field(default_factory=list)  # dimensions of this stage, where they are not those of the objective
    n_least: int = 0  # sizes are drawn from here to n, evenly in their logarithm; 0 is n
    draws: int = 1  # batches in each step, each of a size and dimension of its own; their gradients are averaged

    def __post_init__(self):
        if self.draws < 1:
            raise ValueError(f"draws must be at least 1, got {self.draws}")
        if not 0 <= self.n_least <= self.n:
            raise ValueError(f"n_least must lie between 0 and n={self.n}, got {self.n_least}")

    def rate_at(self, step: int) -> float:
        """The learning rate at a step of this stage."""
        if step < self.warmup:
            return self.rate * (step + 1) / self.warmup
        fraction = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.rate_end + (self.rate - self.rate_end) * (1 + math.cos(math.pi * fraction)) / 2

    def size(self, generator: torch.Generator) -> tuple[int, int]:
        """How many sets a step has, and of how many points."""
        n = self.n
        if self.n_least:
            n = round(n * (self.n_least / n) ** float(torch.rand((), generator=generator)))
        return self.batch * self.n // n, n


@dataclass(frozen=True)
class TrainingConfig:
    """Everything that decides a run: two runs of the same config end with the same bits."""

    kind: str
    stages: list[Stage]
    objective: Objective | None = None  # None takes the usual one of the kind
    model: dict = field(default_factory=dict)
    start: str = ""  # a shipped model, or the folder of one, whose weights are the first ones where they fit
    seed: int = 0
    optimiser: str = "adamw"  # or "muon"
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of the gradient
    average: float = 0.0  # decay of the running average of the weights that is shipped; 0 ships the last weights
    workers: int = 0  # processes that make data ahead of time; 0 makes it in line
    checkpoint_seconds: float = 120.0
    evaluate_every: int = 0  # steps between evaluations on test sets; 0 evaluates at the end only
    evaluate_sets: int = 32
    evaluate_n: int = 1000

    @cached_property
    def aim(self) -> Objective:
        """The objective that was given, or the usual one of the kind."""
        return self.objective or OBJECTIVES[USUAL.get(self.kind, "mixing-measure")]()

    @property
    def steps(self) -> int:
        """All steps of all stages."""
        return sum(stage.steps for stage in self.stages)

    def stage_of(self, step: int) -> tuple[Stage, int]:
        """The stage a step belongs to, and its number within it."""
        for stage in self.stages:
            if step < stage.steps:
                return stage, step
            step -= stage.steps
        raise ValueError(f"step lies beyond the last of {self.steps}")

    def rate_at(self, step: int) -> float:
        """The learning rate at a step; beyond the last one, that of the last."""
        stage, within = self.stage_of(min(step, self.steps - 1))
        return stage.rate_at(within)

    def fingerprint(self, steps: int) -> str:
        """A digest of all that decides the first ``steps`` steps; a checkpoint that another config made is refused.

        Stages that come later do not count, so a run can be lengthened by adding stages to its config.
        """
        decisive = dataclasses.asdict(dataclasses.replace(self, objective=self.aim))
        for name in ("checkpoint_seconds", "evaluate_every", "evaluate_sets", "evaluate_n", "workers"):
            decisive.pop(name)
        begun, start = [], 0
        for stage in self.stages:
            if start >= max(steps, 1):
                break
            begun.append(dataclasses.asdict(stage))
            if stage.draws == 1:
                begun[-1].pop("draws")  # as before there could be more, so that older checkpoints go on
            start += stage.steps
        decisive["stages"], decisive["aim"] = begun, type(self.aim).__name__
        if self.optimiser == "adamw":
            decisive.pop("optimiser")  # as before there was a choice, so that older checkpoints go on
        decisive["start"] = digest(self.start) if self.start else ""  # the weights decide, not where they lie
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]


def seeded(*names) -> torch.Generator:
    """A generator whose seed is made from names and numbers, so that streams never meet.

    >>> int(torch.randint(100, (), generator=seeded(0, "train", 5)))
    28
    """
    code = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(code[:7], "big"))


def read_config(path: str | Path) -> TrainingConfig:
    """A config from a TOML file; an error names the wrong entry."""
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is not TOML: {error}") from None
    stages = [_fill(Stage, stage, f"stages[{i}]") for i, stage in enumerate(table.pop("stages", []))]
    if not stages:
        raise ValueError(f"{path.name} must have at least one [[stages]]")
    if "objective" in table:
        settings = table.pop("objective")
        if not isinstance(settings, dict) or settings.get("name") not in OBJECTIVES:
            raise ValueError(f"[objective] must have a name, one of {', '.join(OBJECTIVES)}, got {settings!r}")
        table["objective"] = _fill(OBJECTIVES[settings.pop("name")], settings, "objective")
    return _fill(TrainingConfig, table | {"stages": stages}, path.name)


def _fill(cls, table: dict, where: str):
    known = {f.name for f in dataclasses.fields(cls)}
    wrong = table.keys() - known
    if wrong:
        raise ValueError(f"{where} has no entry {sorted(wrong)[0]!r}; it has {', '.join(sorted(known))}")
    needed = {f.name for f in dataclasses.fields(cls) if f.default is f.default_factory is dataclasses.MISSING}
    if needed - table.keys():
        raise ValueError(f"{where} lacks {', '.join(sorted(needed - table.keys()))}")
    return cls(**table)
