"""Train one model for one setting and measure it, once: what is finished is kept, so that a stopped run goes on."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path

import pandas as pd
import torch

from measureflow.measures.he_mixtures import HeMixtures, LabelledSets
from measureflow.models.checkpoints import write_atomically
from measureflow.models.in_context import InContextClusterer
from measureflow.reproduce.he2025.baselines import lloyd_from_plus_plus, spectral
from measureflow.reproduce.he2025.scores import scores
from measureflow.reproduce.he2025.starts import best_lloyd
from measureflow.reproduce.progress import counted
from measureflow.training.assignment_loss import Start, assignment_cross_entropy
from measureflow.training.in_context import Recipe, train

TEST_SEED = 512
TURNS = 8  # of each test set, as many as Lloyd's algorithm then has starts
TURNED, STARTED = f"ARI of {TURNS} turns", f"Lloyd ARI of {TURNS} starts"


@dataclass(frozen=True)
class Setting:
    """Everything that decides a measurement; ``model`` holds further arguments of `InContextClusterer`."""

    mixtures: HeMixtures
    recipe: Recipe
    seed: int = 0
    n_test: int = 512
    model: dict = field(default_factory=dict)

    @property
    def name(self) -> str:
        """A file name that is the same for the same setting."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]


def shared(cache: Path) -> Path:
    """The folder that all artefacts of this paper keep trainings in: several figures show the same ones."""
    home = cache.parents[2] / "trainings" / cache.name if cache.parent.name == "cache" else cache
    home.mkdir(parents=True, exist_ok=True)
    return home


def measured(settings: Iterable[Setting], cache: Path, title: str) -> pd.DataFrame:
    """One row for each setting: ARI, NMI, loss of the trained model; ARI and NMI of Lloyd and the spectral start.

    Columns `TURNED` and `STARTED` have the ARI of the surest of several turns, and of the best of as many starts.
    """
    home, rows = shared(cache), []
    for setting in counted(list(settings), title):
        path = home / f"{setting.name}.json"
        if not path.exists():
            write_atomically(path, json.dumps(measure(setting)).encode())
        rows.append(json.loads(path.read_text(encoding="utf-8")))
    return pd.DataFrame(rows)


def measure(setting: Setting) -> dict[str, float]:
    """Train and test, from the setting's seed alone."""
    mixtures, k = setting.mixtures, setting.mixtures.n_classes
    generator = torch.Generator().manual_seed(setting.seed)
    model = InContextClusterer(k, mixtures.dimension, **setting.model, generator=generator)
    start = _spectral_start(generator) if setting.model.get("context") else None
    began = time.perf_counter()
    losses = train(model, mixtures, setting.recipe, generator=generator, start=start)
    seconds = time.perf_counter() - began
    test = mixtures.sample(setting.n_test, torch.Generator().manual_seed(TEST_SEED))
    row = {"seed": setting.seed, "seconds": seconds, **scored(model, test)}
    if setting.model.get("context"):
        misled = scored(model, test, _random_start(torch.Generator().manual_seed(TEST_SEED)))
        row |= {f"{score}, P at random": value for score, value in misled.items()}
    row |= {TURNED: turned(model, test), STARTED: started(test, k)}
    row |= {f"training loss {i}/4": part for i, part in enumerate(_quarters(losses), 1)}
    for name, labels in opponents(test, k).items():
        row |= {f"{name} {score}": value for score, value in scores(test.labels, labels, k).items()}
    return row


@torch.no_grad()
def scored(model: InContextClusterer, sets: LabelledSets, start: Start | None = None) -> dict[str, float]:
    """ARI, NMI and loss on labelled sets, in parts that fit the memory; ``start`` is spectral if not given."""
    start, logits = start or _spectral_start(torch.Generator().manual_seed(TEST_SEED)), []
    for part in sets.points.split(64):
        first = start(part, model.config["n_classes"]) if model.config["context"] else None
        logits.append(model(part, first))
    logits = torch.cat(logits)
    loss = float(assignment_cross_entropy(logits, sets.labels).mean())
    return scores(sets.labels, logits.argmax(-1), logits.shape[-1]) | {"loss": loss}


def turned(model: InContextClusterer, sets: LabelledSets) -> float:
    """ARI where each set is turned several times, and the surest answer of the model kept."""
    start, labels = _spectral_start(torch.Generator().manual_seed(TEST_SEED)), []
    for part in sets.points.split(64):
        first = start(part, model.config["n_classes"]) if model.config["context"] else None
        labels.append(model.labels(part, first, turns=TURNS))
    return scores(sets.labels, torch.cat(labels), model.config["n_classes"])["ARI"]


def started(sets: LabelledSets, k: int) -> float:
    """ARI of Lloyd's algorithm with as many starts."""
    labels = best_lloyd(sets.points.double(), k, torch.Generator().manual_seed(TEST_SEED), TURNS)
    return scores(sets.labels, labels, k)["ARI"]


def opponents(test: LabelledSets, k: int) -> dict[str, torch.Tensor]:
    """The labels of Lloyd's algorithm and of the spectral start."""
    generator = torch.Generator().manual_seed(TEST_SEED)
    points = test.points.double()
    return {"Lloyd": lloyd_from_plus_plus(points, k, generator), "spectral": spectral(points, k, generator)}


def _spectral_start(generator: torch.Generator) -> Start:
    return lambda points, k: spectral(points.double(), k, generator, n_iterations=5)


def _random_start(generator: torch.Generator) -> Start:
    """First labels that say nothing: P is there, and ablated."""
    return lambda points, k: torch.randint(k, points.shape[:-1], generator=generator)


def _quarters(losses: list[float]) -> list[float]:
    """The mean loss over each quarter of the training: how fast it converged."""
    cuts = [round(i * len(losses) / 4) for i in range(5)]
    parts = [losses[a:b] or losses[:1] for a, b in pairwise(cuts)]
    return [sum(part) / len(part) for part in parts]
