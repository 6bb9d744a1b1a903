"""One training for all settings of the sweeps that share classes and dimension: at small sizes, in place of one each.

A model trained on a family sees at every step sets of one of its settings, drawn at random, and is tested on each of
them. Figures that show the same settings read the same tests.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import cast

import torch

from measureflow.measures.he_mixtures import HeMixtures, LabelledSets
from measureflow.models.checkpoints import write_atomically
from measureflow.models.in_context import InContextClusterer
from measureflow.reproduce.he2025.learned.sizes import QUICK
from measureflow.reproduce.he2025.learned.trained import (
    STARTED,
    TEST_SEED,
    TURNED,
    opponents,
    scored,
    shared,
    started,
    turned,
)
from measureflow.reproduce.he2025.scores import scores
from measureflow.training.in_context import Recipe, train

RECIPES = {"tiny": replace(QUICK, n_steps=2, batch=4), "small": replace(QUICK, n_steps=400)}  # not at size paper
TESTS = {"tiny": 8, "small": 64}


@dataclass(frozen=True)
class Blend:
    """Settings of which every batch is one: all that training asks of mixtures."""

    kinds: tuple[HeMixtures, ...]

    @property
    def n_classes(self) -> int:
        """Of every set."""
        return self.kinds[0].n_classes

    @property
    def dimension(self) -> int:
        """Of every point."""
        return self.kinds[0].dimension

    def sample(self, n_sets: int, generator: torch.Generator) -> LabelledSets:
        """Sets of one kind, drawn at random."""
        kind = int(torch.randint(len(self.kinds), (), generator=generator))
        return self.kinds[kind].sample(n_sets, generator)


@dataclass(frozen=True)
class Family:
    """Everything that decides a training and its tests; ``model`` holds further arguments of `InContextClusterer`."""

    members: tuple[HeMixtures, ...]
    recipe: Recipe
    seed: int = 0
    n_test: int = 64
    model: dict = field(default_factory=dict)

    @property
    def name(self) -> str:
        """A file name that is the same for the same family."""
        text = json.dumps(asdict(self), sort_keys=True)
        return f"family-{hashlib.sha256(text.encode()).hexdigest()[:20]}"

    @property
    def blend(self) -> Blend:
        """What it is trained on: each setting once, with as many points as the recipe says."""
        n = self.recipe.n_per_class
        kinds = [m if n is None else replace(m, n_per_class=min(n, m.n_per_class)) for m in self.members]
        return Blend(tuple(dict.fromkeys(kinds)))


def tests(family: Family, folder: Path) -> dict[HeMixtures, dict[str, float]]:
    """A row of scores for each member; a family that was trained before is read back."""
    path = shared(folder) / f"{family.name}.json"
    if not path.exists():
        write_atomically(path, json.dumps(measure(family)).encode())
    return dict(zip(family.members, json.loads(path.read_text(encoding="utf-8")), strict=True))


def measure(family: Family) -> list[dict[str, float]]:
    """Train on all members and test on each, from the family's seed alone."""
    generator, blend = torch.Generator().manual_seed(family.seed), family.blend
    model = InContextClusterer(blend.n_classes, blend.dimension, **family.model, generator=generator)
    began = time.process_time()
    train(model, cast(HeMixtures, blend), replace(family.recipe, n_per_class=None), generator=generator)
    facts = {"seed": family.seed, "seconds": time.process_time() - began}
    return [facts | _tested(model, member, family.n_test) for member in family.members]


def _tested(model: InContextClusterer, mixtures: HeMixtures, n_test: int) -> dict[str, float]:
    test = mixtures.sample(n_test, torch.Generator().manual_seed(TEST_SEED))
    return scored(model, test) | {TURNED: turned(model, test)} | _opponents(mixtures, n_test)


@cache
def _opponents(mixtures: HeMixtures, n_test: int) -> dict[str, float]:
    """Scores of Lloyd's algorithm and of the spectral start: the same for all models that are tested on these sets."""
    test, k = mixtures.sample(n_test, torch.Generator().manual_seed(TEST_SEED)), mixtures.n_classes
    row = {STARTED: started(test, k)}
    for name, labels in opponents(test, k).items():
        row |= {f"{name} {score}": value for score, value in scores(test.labels, labels, k).items()}
    return row
