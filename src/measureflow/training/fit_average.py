"""Weigh the Gaussians' opinion against that of the shapes: ``python -m measureflow.training.fit_average FOLDER``.

Sets are drawn from the prior of shapes and, one in four, from that of round Gaussians, with seeds that no training and
no validation uses. Opinions of the Gaussians take the longest, so they are kept in a folder; those of the shapes are
asked for again whenever their weights changed.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy

from measureflow.attention.threads import one_thread
from measureflow.coclustering.average import EXPONENTS, FACTS, SUREST, Average, count_facts, facts, gaussian_misfit
from measureflow.coclustering.consensus import Agreement
from measureflow.coclustering.opinions import Opinion, of_gaussians, of_shapes
from measureflow.coclustering.partition import tree_cut
from measureflow.measures.priors import Between, MixturePrior, WholeBetween
from measureflow.measures.shapes import ShapePrior
from measureflow.mixtures.clusters import GaussianClusters
from measureflow.mixtures.rows import distinct_rows
from measureflow.mixtures.search import Search
from measureflow.models import AnyShapeFlow, load_pretrained
from measureflow.models.any_shape.flow import MOST_CLUSTERS
from measureflow.models.checkpoints import write_atomically
from measureflow.models.pretrained import load_model

SEED = 77
PAIRS = 500  # of each set
ROWS = (60, 900)  # between so many, evenly on a logarithmic scale
ROUND_EVERY = 4  # one set in so many is round
SHRINK = 0.02  # how much squared weights of standardised facts cost, so that few sets do not make them large


@dataclass(frozen=True)
class Judged:
    """A set and what the Gaussians say of it."""

    points: np.ndarray
    labels: np.ndarray
    r: np.ndarray  # responsibilities (n, K)
    numbers: np.ndarray  # numbers of clusters that were considered ...
    chances: np.ndarray  # ... and their probabilities
    misfit: float
    are_round: bool  # the clusters that the Gaussians found

    @classmethod
    def of(cls, number: int) -> Judged:
        """Set ``number`` and the opinion of the Gaussians."""
        points, labels = draw(number)
        rows = distinct_rows(points, np.ones(len(points)))
        with one_thread():
            model = load_pretrained("any-dimension")
            found = Search(model, rows, n_clusters=None, snr_db=None, n_layers=None).run(polish=True)
            clusters = GaussianClusters.of(found.frame, found.mixture)
            r, misfit = clusters.probabilities(points), gaussian_misfit(clusters, points)
        numbers, chances = (np.array(list(part)) for part in zip(*found.posterior.items(), strict=True))
        return cls(points, labels, r, numbers, chances, misfit, clusters.are_round)

    @property
    def opinion(self) -> Opinion:
        """The Gaussians' opinion."""
        return of_gaussians(self.r, dict(zip(self.numbers.tolist(), self.chances.tolist(), strict=True)))

    @property
    def n_clusters(self) -> int:
        """The true number of clusters."""
        return len(set(self.labels[self.labels >= 0].tolist()))

    def asked(self, shapes: Opinion, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The facts of this set; of some pairs what the shapes say, what the Gaussians say, and the truth; and what is
        said of each number of clusters, the true one first."""
        gaussians = self.opinion
        member, rng = np.flatnonzero(self.labels >= 0), np.random.default_rng([SEED, number, 1])
        i = rng.choice(member, PAIRS)
        j = rng.choice(member, PAIRS)
        j = np.where(i == j, np.roll(j, 1), j)
        pairs = [shapes.together[i, j], gaussians.together[i, j], self.labels[i] == self.labels[j]]
        cut = tree_cut(shapes)
        known = facts(shapes, gaussians, cut, self.r.argmax(1), float(self.misfit), self.points.shape[1])
        K = self.n_clusters
        numbers = [K, *(k for k in range(1, MOST_CLUSTERS + 1) if k != K)][:MOST_CLUSTERS]
        counts = count_facts(shapes, gaussians, cut.n_clusters, numbers, pi=0.0)[:, : len(EXPONENTS)]
        return known, np.stack(pairs).astype(float), counts


def draw(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and labels of set ``number``."""
    rng = np.random.default_rng([SEED, number])
    n = int(np.exp(rng.uniform(*np.log(ROWS))))
    if number % ROUND_EVERY:
        sets = ShapePrior().sample(1, n, rng)
        return sets.points[0].double().numpy(), sets.labels[0].numpy()
    d, most = int(rng.choice([1, 2, 2, 2, 3, 4, 6, 8, 12, 16])), int(rng.integers(1, 16))
    prior = MixturePrior(d, WholeBetween(1, max(1, min(most, n // 12))), Between(3.0, 18.0))
    mixtures = prior.sample(1, n, torch.Generator().manual_seed(int(rng.integers(2**31))))
    return mixtures.points[0].double().numpy(), mixtures.labels[0].numpy()


def judged_sets(folder: Path, n_sets: int) -> list[Judged]:
    """The first sets with the Gaussians' opinions, made where the folder does not hold them yet."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for number in range(n_sets):
        path = folder / f"{number}.npz"
        if not path.exists():
            judged = Judged.of(number)
            with (folder / "new").open("wb") as file:
                np.savez_compressed(file, **vars(judged))
            (folder / "new").rename(path)
        with np.load(path) as table:
            found.append(Judged(**{name: table[name] for name in table.files}))
        if number % 20 == 19:
            print(f"Gaussians: {number + 1} of {n_sets} sets", flush=True)
    return found


def fit(known: Tensor, shapes: Tensor, gaussians: Tensor, same: Tensor, counts: Tensor) -> dict:
    """The numbers of largest likelihood, for facts (S, F), pairs (S, PAIRS) and what is said of each number of clusters
    (S, 60, 3), the true one first."""
    mean, spread = known.mean(0), known.std(0).clamp_min(1e-6)
    z = (known - mean) / spread
    weights = torch.zeros(z.shape[1], dtype=z.dtype, requires_grad=True)
    scalars = torch.tensor([0.0, 1.0, 0.0, 0.5], dtype=z.dtype, requires_grad=True)  # bias, then those of the average
    optimiser = torch.optim.LBFGS([weights, scalars], max_iter=500, line_search_fn="strong_wolfe")
    shapes, gaussians = (torch.logit(p.clamp(SUREST, 1 - SUREST)) for p in (shapes, gaussians))

    def loss() -> Tensor:
        optimiser.zero_grad()
        bias, scale, shift, gaussian_scale = scalars
        pi = torch.sigmoid(z @ weights + bias)[:, None]
        P = pi * torch.sigmoid(gaussian_scale * gaussians) + (1 - pi) * torch.sigmoid(scale * shapes + shift)
        total = binary_cross_entropy(P.clamp(1e-7, 1 - 1e-7), same) + SHRINK * weights.square().mean()
        total.backward()
        return total

    optimiser.step(loss)
    exponents = _fit_counts(torch.sigmoid(z @ weights + scalars[0]).detach(), counts)
    own = weights.detach() / spread
    bias, scale, shift, gaussian_scale = scalars.detach().tolist()
    return {
        "facts": list(FACTS),
        "weights": [round(w, 6) for w in own.tolist()],
        "bias": round(bias - float(own @ mean), 6),
        "shape_scale": round(scale, 6),
        "shape_shift": round(shift, 6),
        "gaussian_scale": round(gaussian_scale, 6),
        "exponents": [round(e, 6) for e in exponents],
        "loss": round(loss().item(), 6),
    }


def _fit_counts(pi: Tensor, counts: Tensor) -> list[float]:
    """The exponents that give the true numbers of clusters, first of all in counts (S, 60, 3), most probability."""
    counts = torch.cat([counts, pi[:, None, None] * counts], -1)
    exponents = torch.zeros(counts.shape[-1], dtype=counts.dtype, requires_grad=True)
    optimiser = torch.optim.LBFGS([exponents], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        logits = counts @ exponents
        total = (logits.logsumexp(-1) - logits[:, 0]).mean() + SHRINK * exponents.square().mean()
        total.backward()
        return total

    optimiser.step(loss)
    return exponents.detach().tolist()


def fit_sets(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> dict:
    """The numbers of largest likelihood for what was `asked` of some sets."""
    known, pairs, counts = (torch.from_numpy(np.stack(part)) for part in zip(*parts, strict=True))
    shapes, gaussians, same = pairs.unbind(1)
    return fit(known, shapes, gaussians, same, counts)


def cross_validate(sets: list[Judged], opinions: list[Opinion], parts: list, folds: int = 5) -> dict[str, np.ndarray]:
    """How well each answer does on sets that its weights were not fitted to: (sets, 2), the adjusted Rand index and the
    error in the number of clusters, of the Gaussians, the shapes, and both together."""
    from sklearn.metrics import adjusted_rand_score

    scores = {name: np.empty((len(sets), 2)) for name in ("Gaussians", "shapes", "both")}
    for fold in range(folds):
        average = Average.from_table(fit_sets([part for number, part in enumerate(parts) if number % folds != fold]))
        for number in range(fold, len(sets), folds):
            judged, member = sets[number], sets[number].labels >= 0
            labels = judged.r.argmax(1)
            agreement = Agreement.of(
                average, opinions[number], judged.opinion, labels, float(judged.misfit), judged.points
            )
            answers = {"Gaussians": labels, "shapes": tree_cut(opinions[number]).labels}
            for name, found in (answers | {"both": agreement.partition.labels}).items():
                index = adjusted_rand_score(judged.labels[member], found[member])
                scores[name][number] = index, abs(len(set(found.tolist())) - judged.n_clusters)
    return scores


def validation_table(sets: list[Judged], scores: dict[str, np.ndarray]) -> str:
    """The means of `cross_validate` over all sets, over round ones, and over single clusters."""
    numbers, single = np.arange(len(sets)), np.array([judged.n_clusters == 1 for judged in sets])
    kinds = {"all": numbers >= 0, "round": numbers % ROUND_EVERY == 0, "single": single}
    lines = ["sets        answer      index   clusters off by"]
    for kind, chosen in kinds.items():
        for name, values in scores.items():
            index, error = values[chosen].mean(0)
            lines.append(f"{kind:6s}{chosen.sum():5d} {name:10s} {index:6.3f} {error:6.2f}")
    return "\n".join(lines)


def main() -> None:
    """Draw the sets, ask both flows, fit, and write average.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of an any-shape model; average.json is written into it")
    parser.add_argument("--sets", type=int, default=600)
    parser.add_argument("--folder", type=Path, default=Path("out/average"), help="keeps what the Gaussians say")
    parser.add_argument("--validate", action="store_true", help="cross-validate the answer, and write nothing")
    arguments = parser.parse_args()
    flow = cast(AnyShapeFlow, load_model(arguments.model))
    torch.set_num_threads(1)
    sets = judged_sets(arguments.folder, arguments.sets)
    opinions = [of_shapes(flow, judged.points) for judged in sets]
    parts = [judged.asked(shapes, number) for number, (judged, shapes) in enumerate(zip(sets, opinions, strict=True))]
    if arguments.validate:
        print(validation_table(sets, cross_validate(sets, opinions, parts)))
        return
    table = fit_sets(parts) | {"sets": arguments.sets, "seed": SEED}
    write_atomically(arguments.model / "average.json", (json.dumps(table, indent=2) + "\n").encode())
    print(json.dumps(table, indent=2))


if __name__ == "__main__":
    main()
