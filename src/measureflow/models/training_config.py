"""A training as plain data: what to train, on what, for how long; read from TOML."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from measureflow.measures.priors import Between, MixturePrior, Mixtures, WholeBetween
from measureflow.models.losses import LEAST_SNR_DB
from measureflow.models.pretrained import digest


@dataclass(frozen=True)
class Stage:
    """A stretch of training at one size; the rate falls from ``rate`` to ``rate_end`` by half a cosine."""

    steps: int
    n: int  # points in each set, or the most of them
    batch: int  # sets of n points in each step, over all processes together; of smaller ones as many more
    rate: float
    rate_end: float = 0.0
    warmup: int = 0  # steps of linear rise at the start
    d: list[int] = field(default_factory=list)  # dimensions of this stage, where they are not those of the data
    n_least: int = 0  # sizes are drawn from here to n, evenly in their logarithm; 0 is n

    def __post_init__(self):
        if not 0 <= self.n_least <= self.n:
            raise ValueError(f"n_least must lie between 0 and n={self.n}, got {self.n_least}")

    def rate_at(self, step: int) -> float:
        """The learning rate at a step of this stage."""
        if step < self.warmup:
            return self.rate * (step + 1) / self.warmup
        fraction = (step - self.warmup) / max(1, self.steps - self.warmup)
        cosine = 0.5 * (1 + torch.cos(torch.tensor(torch.pi * fraction, dtype=torch.float64)).item())
        return self.rate_end + (self.rate - self.rate_end) * cosine


@dataclass(frozen=True)
class Data:
    """The random mixtures a model learns from."""

    d: list[int] = field(default_factory=lambda: [2])  # one of these for each step
    components: list[int] = field(default_factory=lambda: [2, 20])  # uniform between these
    snr_db: list[float] = field(default_factory=lambda: [3.0, 15.0])
    snr_error_db: list[float] = field(default_factory=list)  # told SNRs are off by up to one of these; 0 says exact
    workers: int = 1  # processes that make data ahead of time; 0 makes it in line


@dataclass(frozen=True)
class TrainingConfig:
    """Everything that decides a run: two runs of the same config end with the same bits."""

    kind: str
    stages: list[Stage]
    model: dict = field(default_factory=dict)
    data: Data = field(default_factory=Data)
    start: str = ""  # a shipped model, or the folder of one, whose weights are the first ones where they fit
    seed: int = 0
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of the gradient
    average: float = 0.0  # decay of the running average of the weights that is shipped; 0 ships the last weights
    checkpoint_seconds: float = 120.0
    evaluate_every: int = 0  # steps between evaluations on the three test sets; 0 evaluates at the end only
    evaluate_sets: int = 32
    evaluate_n: int = 1000

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

    def batch(self, step: int) -> Mixtures:
        """The data of a step: a function of the seed and the step alone, so nothing needs to be remembered."""
        stage, _ = self.stage_of(step)
        generator = seeded(self.seed, "train", step)
        dimensions = stage.d or self.data.d
        d = dimensions[int(torch.randint(len(dimensions), (), generator=generator))]
        prior = MixturePrior(d, WholeBetween(*self.data.components), Between(*self.data.snr_db))
        n = stage.n
        if stage.n_least:
            n = round(n * (stage.n_least / n) ** float(torch.rand((), generator=generator)))
        return prior.sample(stage.batch * stage.n // n, n, generator)

    def told(self, step: int, snr_db: Tensor) -> tuple[Tensor, Tensor]:
        """The SNR in dB that the model is told at a step, and whether it is told that this is exact."""
        generator, widths = seeded(self.seed, "told", step), torch.tensor(self.data.snr_error_db)
        width = widths[torch.randint(len(widths), snr_db.shape, generator=generator)]
        error = width * (2 * torch.rand(snr_db.shape, generator=generator) - 1)
        return (snr_db.clamp_min(LEAST_SNR_DB) + error).clamp_min(LEAST_SNR_DB), width == 0

    def fingerprint(self) -> str:
        """A digest of all that decides the result; a checkpoint of another config is refused."""
        decisive = dataclasses.asdict(self)
        for name in ("checkpoint_seconds", "evaluate_every", "evaluate_sets", "evaluate_n"):
            decisive.pop(name)
        decisive["data"].pop("workers")
        for stage in decisive["stages"]:
            for name in ("d", "n_least"):
                if not stage[name]:
                    stage.pop(name)
        decisive.pop("start")
        if self.start:  # the weights themselves decide, not where they lie
            decisive["start"] = digest(self.start)
        if not self.data.snr_error_db:
            decisive["data"].pop("snr_error_db")
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]


def seeded(*names) -> torch.Generator:
    """A generator whose seed is made from names and numbers, so that streams never meet.

    >>> int(torch.randint(100, (), generator=seeded(0, "train", 5)))
    28
    """
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


def read_config(path: str | Path) -> TrainingConfig:
    """A config from a TOML file, each wrong word named."""
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is not TOML: {error}") from None
    stages = [_fill(Stage, stage, f"stages[{i}]") for i, stage in enumerate(table.pop("stages", []))]
    if not stages:
        raise ValueError(f"{path.name} must have at least one [[stages]]")
    data = _fill(Data, table.pop("data", {}), "data")
    return _fill(TrainingConfig, table | {"stages": stages, "data": data}, path.name)


def _fill(cls, table: dict, where: str):
    known = {f.name for f in dataclasses.fields(cls)}
    wrong = table.keys() - known
    if wrong:
        raise ValueError(f"{where} has no entry {sorted(wrong)[0]!r}; it has {', '.join(sorted(known))}")
    needed = {f.name for f in dataclasses.fields(cls) if f.default is f.default_factory is dataclasses.MISSING}
    if needed - table.keys():
        raise ValueError(f"{where} lacks {', '.join(sorted(needed - table.keys()))}")
    return cls(**table)
