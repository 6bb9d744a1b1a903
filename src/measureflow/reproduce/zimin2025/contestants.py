"""What stands in the columns: each contestant turns sets into mixing measures, and is judged by exact W2 squared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from torch import Tensor

from measureflow.measures import Empirical
from measureflow.measures.decibels import from_decibels, to_decibels
from measureflow.measures.priors import Mixtures
from measureflow.measures.transport import wasserstein2
from measureflow.models import load_pretrained
from measureflow.models.pretrained import digest
from measureflow.reproduce.opponents import Found, em_with_bic, kmeans, shared_variance_em


@dataclass(frozen=True)
class Classical:
    """An opponent that sees one set at a time; ``fit(points, true K, seed)``."""

    name: str
    fit: Callable[[np.ndarray, int, int], Found]
    slow: bool = False  # judged on fewer sets

    def answers(self, mixtures: Mixtures, seed: int) -> list[Empirical]:
        """The mixing measure found for each set."""
        points = mixtures.points.double().numpy()
        counts = mixtures.n_components.tolist()
        found = [self.fit(x, K, seed + i) for i, (x, K) in enumerate(zip(points, counts, strict=True))]
        return [Empirical(torch.as_tensor(f.atoms), torch.as_tensor(f.masses)) for f in found]

    def all_answers(self, mixtures: Mixtures, seed: int) -> dict[str, list[Empirical]]:
        """What one pass over the sets gives, by the key of whose answers they are."""
        return {self.key: self.answers(mixtures, seed)}

    weights = None

    @property
    def available(self) -> bool:
        """Opponents need no training."""
        return True

    @property
    def key(self) -> str:
        """What its scores are kept under."""
        return self.name


@dataclass(frozen=True)
class Learned:
    """A shipped model, run with a schedule and a depth of one's choice; its tokens are the answer."""

    name: str
    weights: str
    schedule: str | None = None  # the one of its training
    snr_given: bool = True
    then_kmeans: bool = False  # its answers are not the tokens but K atoms, by one start of k-means on them

    @property
    def available(self) -> bool:
        """Whether the weights ship."""
        return self.weights in load_pretrained.available()

    @property
    def key(self) -> str:
        """What its scores are kept under: other weights have other scores, another name for the same has not."""
        told, kind = "given" if self.snr_given else "estimated", "kmeans" if self.then_kmeans else "tokens"
        return f"{digest(self.weights)[:16]} {self.schedule or 'own'} {told} {kind}"

    @property
    def slow(self) -> bool:
        """Whether it is judged on fewer sets: EM has to estimate the SNR."""
        return not self.snr_given

    @torch.no_grad()
    def all_answers(self, mixtures: Mixtures, seed: int) -> dict[str, list[Empirical]]:
        """What one flow of the sets gives: its tokens, 1/n each, and the atoms that k-means makes of them [E.5]."""
        snr = mixtures.snr_db if self.snr_given else estimated_snr_db(mixtures.points, seed)
        tokens = _model(self.weights)(mixtures.points, snr, schedule=self.schedule)
        rounded = PAPER_KMEANS.answers(_with_points(mixtures, tokens), seed)
        both = {False: [Empirical(t) for t in tokens], True: rounded}
        return {replace(self, then_kmeans=then).key: answers for then, answers in both.items()}


@cache
def _model(name: str):
    return load_pretrained(name)


def _with_points(mixtures: Mixtures, points: Tensor) -> Mixtures:
    others = (getattr(mixtures, name) for name in list(mixtures.__dataclass_fields__)[1:])
    return Mixtures(points, *others)


def estimated_snr_db(points: Tensor, seed: int) -> Tensor:
    r"""SNR from the noise that EM with K by BIC finds, :math:`v/\sigma^2 - 1` for the variance v, kept to 0..25 dB."""
    values = []
    for i, x in enumerate(points.double().numpy()):
        snr = x.var(0).mean() / em_with_bic(x, seed + i, starts=5, patience=2).variance - 1
        values.append(to_decibels(np.clip(snr, 1.0, from_decibels(25.0))))
    return torch.tensor(values, dtype=points.dtype)


def squared_errors(answers: Sequence[Empirical], mixtures: Mixtures) -> list[float]:
    """Exact W2 squared of the answer to each set to the empirical mixing measure of it."""
    truth = mixtures.mixing
    return [
        float(wasserstein2(answer, atoms.to(answer.points), atom_weights=w.to(answer.points)).cost)
        for answer, atoms, w in zip(answers, truth.points, truth.weights, strict=True)
    ]


def score_all(contestant: Classical | Learned, mixtures: Mixtures, seed: int) -> dict[str, list[float]]:
    """W2 squared of each set, for all that one pass of a contestant over the sets gives, by key."""
    return {key: squared_errors(answers, mixtures) for key, answers in contestant.all_answers(mixtures, seed).items()}


PAPER_KMEANS = Classical("K-means", lambda x, K, seed: kmeans(x, K, seed))
STRONG = (
    Classical("K-means++ x10", lambda x, K, seed: kmeans(x, K, seed, starts=10, init="k-means++")),
    Classical("EM x20, true K", lambda x, K, seed: shared_variance_em(x, K, seed)),
    Classical("EM, K by BIC", lambda x, K, seed: em_with_bic(x, seed, patience=2), slow=True),
)
BASE = "flow-transformer"
# Sets seen in training, and those that the 16-layer weights it began from had seen, 0 for a random start; a test
# compares with the configs. The paper: 2.6 million each.
BUDGETS = {
    BASE: (92_200, 0),
    f"{BASE}-32": (5_600, 72_400),
    f"{BASE}-unit": (14_720, 72_400),
    f"{BASE}-no-flow": (14_720, 72_400),
}


def budget_of(contestant: Classical | Learned) -> str:
    """What a contestant was trained on, in words; empty for those that need no training or have no weights."""
    if isinstance(contestant, Classical) or contestant.weights not in BUDGETS:
        return ""
    sets, before = BUDGETS[contestant.weights]
    return f"{sets:,} sets" + (f" after {before:,} with 16 layers" if before else "")


ESTIMATED = Learned("16 layers, SNR estimated", BASE, snr_given=False)
