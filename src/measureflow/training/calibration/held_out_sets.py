"""Sets with known clusters and what the Gaussians say of them, for fitting how far to believe whom.

Sets are drawn from the prior of shapes, one in five of them Gaussians in one round noise, with seeds that no training
and no validation uses. What the Gaussians say takes the longest to find, so it is kept in a folder, for as long as
the set would be drawn again.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from measureflow.attention.threads import one_thread
from measureflow.coclustering.average import count_facts
from measureflow.coclustering.consensus import n_seen
from measureflow.coclustering.facts import facts
from measureflow.coclustering.partition import tree_cut
from measureflow.coclustering.posteriors import GaussianPosterior, ShapePosterior, of_gaussians
from measureflow.measures.shapes import ShapePrior
from measureflow.measures.shapes.catalogue import pick
from measureflow.measures.shapes.prior import ROUND_SHARE
from measureflow.mixtures.clusters import GaussianClusters
from measureflow.mixtures.misfit import radial_misfit
from measureflow.mixtures.rows import distinct_rows
from measureflow.mixtures.search import Search
from measureflow.models import load_pretrained
from measureflow.models.any_shape.flow import MOST_CLUSTERS
from measureflow.models.checkpoints import write_atomically

SEED = 77
PAIRS = 500  # of each set
ROWS = (32, 5000)  # between so many, evenly on a logarithmic scale
ROUND_EVERY = round(1 / ROUND_SHARE)  # one set in so many is round, as in the prior


@dataclass(frozen=True)
class HeldOutSet:
    """Rows of a set, as many as the flow of shapes would look at, and what the Gaussians say of them."""

    points: np.ndarray
    labels: np.ndarray
    r: np.ndarray  # responsibilities (n, K)
    numbers: np.ndarray  # numbers of clusters that were considered ...
    chances: np.ndarray  # ... and their probabilities
    misfit: float
    n_fitted: int  # rows of the whole set
    are_round: bool  # the clusters that the Gaussians found

    @classmethod
    def of(cls, number: int) -> HeldOutSet:
        """Set ``number`` and the posterior of the Gaussians."""
        points, labels = draw(number)
        rows = distinct_rows(points, np.ones(len(points)))
        with one_thread():
            model = load_pretrained("any-dimension")
            found = Search(model, rows, sketch=True).run(polish=True)
            clusters = GaussianClusters.of(found.frame, found.mixture)
            misfit = radial_misfit(clusters.frame.rows_inward(points), clusters.mixture)
            seen = slice(n_seen(len(clusters.weights)))
            r = clusters.probabilities(points[seen])
        numbers, chances = (np.array(list(part)) for part in zip(*found.posterior.items(), strict=True))
        return cls(points[seen], labels[seen], r, numbers, chances, misfit, len(points), clusters.are_round)

    @property
    def posterior(self) -> GaussianPosterior:
        """The Gaussians' posterior."""
        n_clusters = dict(zip(self.numbers.tolist(), self.chances.tolist(), strict=True))
        return of_gaussians(self.r, n_clusters, float(self.misfit), int(self.n_fitted), bool(self.are_round))

    @property
    def n_clusters(self) -> int:
        """The true number of clusters."""
        return len(set(self.labels[self.labels >= 0].tolist()))

    def observations(self, shapes: ShapePosterior, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The facts of this set; of some pairs what the shapes say, what the Gaussians say, and the truth; and what the
        shapes say of each number of clusters, the true one first."""
        gaussians = self.posterior
        member, rng = np.flatnonzero(self.labels >= 0), np.random.default_rng([SEED, number, 1])
        i = rng.choice(member, PAIRS)
        j = rng.choice(member, PAIRS)
        j = np.where(i == j, np.roll(j, 1), j)
        pairs = [shapes.together[i, j], gaussians.together[i, j], self.labels[i] == self.labels[j]]
        cut = tree_cut(shapes)
        known = facts(shapes, gaussians, cut, self.points)
        K = self.n_clusters
        numbers = [K, *(k for k in range(1, MOST_CLUSTERS + 1) if k != K)][:MOST_CLUSTERS]
        return known, np.stack(pairs).astype(float), count_facts(shapes, cut.n_clusters, numbers)


def draw(number: int, seed: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Points and labels of set ``number``, of those that no training uses or of those with another seed."""
    rng = np.random.default_rng([SEED if seed is None else seed, number])
    n = int(np.exp(rng.uniform(*np.log(ROWS))))
    prior = ShapePrior(round_share=float(number % ROUND_EVERY == 0))
    points, labels, _ = prior.draw(n, pick(rng, prior.dimensions), rng)
    return points.astype(float), labels


def held_out_sets(folder: Path, n_sets: int) -> list[HeldOutSet]:
    """The first sets with the Gaussians' posteriors, made where the folder does not hold them yet."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for number in range(n_sets):
        found.append(_kept(folder / f"{number}.npz", number) or _made(folder / f"{number}.npz", number))
        if number % 20 == 19:
            print(f"Gaussians: {number + 1} of {n_sets} sets", flush=True)
    return found


def _kept(path: Path, number: int) -> HeldOutSet | None:
    """The set in a file, if it is there and is what would be drawn now."""
    if not path.exists():
        return None
    with np.load(path) as table:
        kept = HeldOutSet(**{name: table[name] for name in table.files})
    return kept if np.array_equal(kept.points, draw(number)[0][: len(kept.points)]) else None


def _made(path: Path, number: int) -> HeldOutSet:
    """The set with the Gaussians' posterior, written to a file whole or not at all."""
    made, content = HeldOutSet.of(number), io.BytesIO()
    np.savez_compressed(content, **vars(made))
    write_atomically(path, content.getvalue())
    return made
