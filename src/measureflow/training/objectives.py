"""What a model is trained toward: the sets it learns from, the loss on them, and how it is tested.

An objective is plain data. The one loop in `training.loop` gets from it the data of a step and the loss on them, and
needs nothing else of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor, nn

from measureflow.measures.decibels import LEAST_SNR_DB
from measureflow.measures.he_mixtures import HeMixtures, LabelledSets
from measureflow.measures.partitions import PairTree, best_cut
from measureflow.measures.priors import Between, MixturePrior, Mixtures, WholeBetween, paper_test_prior
from measureflow.measures.shapes import LabelledShapes, ShapePrior
from measureflow.training.assignment_loss import naming_loss
from measureflow.training.losses import guessed_snr_loss, mixing_w2, snr_scaled_w2, together_loss

if TYPE_CHECKING:
    from measureflow.training.config import Stage

TEST_SNRS = (15.0, 10.0, 5.0)
MOST_WEIGHT = 3.0  # of sets of many clusters, whose pairs would hardly count otherwise


class Objective(Protocol):
    """The data, the loss and the scores of a training."""

    method: str  # the method of the model that the loss calls

    def batch(self, stage: Stage, generator: torch.Generator) -> Any:
        """The data of a step: a dataclass of tensors whose first axis is the batch."""
        ...

    def loss(self, model: nn.Module, batch: Any, part: slice, generator: torch.Generator) -> Tensor:
        """The loss on a part of the batch, the whole of it for a single process."""
        ...

    def evaluate(self, model: nn.Module, sets: int, n: int) -> dict[str, float]:
        """Scores on sets that training never sees."""
        ...


@dataclass(frozen=True)
class MixingMeasure:
    """Tokens flow onto the mixing measure of a Gaussian mixture of known SNR [Zimin 2025, D]."""

    d: list[int] = field(default_factory=lambda: [2])  # one of these for each step
    components: list[int] = field(default_factory=lambda: [2, 20])  # uniform between these
    snr_db: list[float] = field(default_factory=lambda: [3.0, 15.0])
    method = "forward"

    def batch(self, stage: Stage, generator: torch.Generator) -> Mixtures:
        dimensions = stage.d or self.d
        d = dimensions[int(torch.randint(len(dimensions), (), generator=generator))]
        prior = MixturePrior(d, WholeBetween(*self.components), Between(*self.snr_db))
        return prior.sample(*stage.size(generator), generator)

    def loss(self, model: nn.Module, batch: Mixtures, part: slice, generator: torch.Generator) -> Tensor:
        mine = part_of(batch, part)
        return snr_scaled_w2(model(mine.points, mine.snr_db), mine)

    def evaluate(self, model: nn.Module, sets: int, n: int) -> dict[str, float]:
        return evaluate_mixing(model, sets, n)


@dataclass(frozen=True)
class MixingMeasureAndNoise(MixingMeasure):
    """The same, where the model is given a guess of the SNR and learns to estimate the error of the guess."""

    snr_error_db: list[float] = field(default_factory=lambda: [0.0])  # guesses err by up to one of these; 0 is exact
    method = "flow_and_noise"

    def loss(self, model: nn.Module, batch: Mixtures, part: slice, generator: torch.Generator) -> Tensor:
        guess, exact = (t[part] for t in self.guesses(batch.snr_db, generator))
        mine = part_of(batch, part)
        path, noise = _method(model, self.method)(mine.points, guess, exact=exact)
        return guessed_snr_loss(path[-1], noise, guess, mine)

    def guesses(self, snr_db: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """The SNRs in dB that the model is given, and whether each is exact."""
        widths = torch.tensor(self.snr_error_db)
        width = widths[torch.randint(len(widths), snr_db.shape, generator=generator)]
        error = width * (2 * torch.rand(snr_db.shape, generator=generator) - 1)
        return (snr_db.clamp_min(LEAST_SNR_DB) + error).clamp_min(LEAST_SNR_DB), width == 0


@dataclass(frozen=True)
class WhoBelongsTogether:
    """The probability that two rows belong together, in sets whose clusters have many shapes."""

    rows_per_cluster: int = 12  # so many at least on average
    method = "together"

    def batch(self, stage: Stage, generator: torch.Generator) -> LabelledShapes:
        rng = np.random.default_rng(generator.initial_seed())
        prior = ShapePrior(rows_per_cluster=self.rows_per_cluster)
        if stage.d:
            prior = ShapePrior(dict.fromkeys(stage.d, 1.0), self.rows_per_cluster)
        return prior.sample(*stage.size(generator), rng)

    def loss(self, model: nn.Module, batch: LabelledShapes, part: slice, generator: torch.Generator) -> Tensor:
        mine = part_of(batch, part)
        return together_loss(_method(model, self.method)(mine.points), mine, most_weight=MOST_WEIGHT)

    def evaluate(self, model: nn.Module, sets: int, n: int) -> dict[str, float]:
        return evaluate_together(model, sets, n)


@dataclass(frozen=True)
class NamedClusters:
    """The cluster of every point, up to a permutation of the labels [He 2025, 4]."""

    n_classes: int = 4
    dimension: int = 10
    minimum_distance: float = 30.0
    variance: list[float] = field(default_factory=lambda: [10.0, 40.0])
    method = "forward"

    def mixtures(self, n: int) -> HeMixtures:
        """Sets of n points, as many in each class."""
        low, high = self.variance
        return HeMixtures(self.n_classes, self.dimension, n // self.n_classes, self.minimum_distance, (low, high))

    def batch(self, stage: Stage, generator: torch.Generator) -> LabelledSets:
        sets, n = stage.size(generator)
        return self.mixtures(n).sample(sets, generator)

    def loss(self, model: nn.Module, batch: LabelledSets, part: slice, generator: torch.Generator) -> Tensor:
        return naming_loss(model, LabelledSets(*(tensor[part] for tensor in batch)))

    @torch.no_grad()
    def evaluate(self, model: nn.Module, sets: int, n: int) -> dict[str, float]:
        from measureflow.training.config import seeded

        return {"naming": naming_loss(model, self.mixtures(n).sample(sets, seeded(1, "test", n))).item()}


OBJECTIVES: dict[str, type] = {
    "mixing-measure": MixingMeasure,
    "mixing-measure-and-noise": MixingMeasureAndNoise,
    "together": WhoBelongsTogether,
    "named-clusters": NamedClusters,
}


def _method(model: nn.Module, name: str) -> Callable:
    """A method of a model by name; torch's types know attributes of modules as tensors only."""
    return cast(Callable, getattr(model, name))


def part_of(batch: Any, part: slice) -> Any:
    """Some sets of a batch that is a dataclass of tensors."""
    return type(batch)(*(getattr(batch, name)[part] for name in batch.__dataclass_fields__))


@torch.no_grad()
def evaluate_mixing(model: nn.Module, sets: int, n: int, seed: int = 1) -> dict[str, float]:
    """Mean W2 squared on the test sets of [Zimin 2025, E.1] at 15, 10 and 5 dB, SNR given."""
    from measureflow.training.config import seeded

    scores = {}
    for snr_db in TEST_SNRS:
        generator, total = seeded(seed, "test", snr_db, n), 0.0
        for start in range(0, sets, 8):
            mixtures = paper_test_prior(snr_db).sample(min(8, sets - start), n, generator)
            total += mixing_w2(model(mixtures.points, mixtures.snr_db), mixtures).sum().item()
        scores[f"w2_{snr_db:g}db"] = total / sets
    return scores


@torch.no_grad()
def evaluate_together(model: nn.Module, sets: int, n: int, seed: int = 1) -> dict[str, float]:
    """Mean loss, adjusted Rand index and error in the number of clusters on validation sets of the prior."""
    from sklearn.metrics import adjusted_rand_score

    losses, scores, errors = [], [], []
    for number in range(sets):
        rng = np.random.default_rng([seed, number, n])
        batch = ShapePrior().sample(1, n, rng)
        said, truth = _method(model, "together")(batch.points), batch.labels[0].numpy()
        losses.append(together_loss(said, batch).item())
        P = torch.sigmoid(said.logits[0]).double().numpy()
        p_one = float(torch.softmax(said.n_clusters[0], -1)[0])
        K, member = best_cut(P, p_one), truth >= 0
        scores.append(adjusted_rand_score(truth[member], PairTree.of(P).labels(K)[member]))
        errors.append(abs(K - int(batch.n_clusters[0])))
    return {"pairs": float(np.mean(losses)), "ari": float(np.mean(scores)), "k_error": float(np.mean(errors))}
