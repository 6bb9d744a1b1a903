"""What each flow says of some rows: the probability that two belong together, and how many clusters there are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from measureflow.measures.partitions import PairTree
from measureflow.models import AnyShapeFlow

UNEVEN = 2.5  # columns whose standard deviations differ by more than this factor may have units of their own
LARGEST = 1e15  # float32 holds sums of squares of such points; the flow counts in units of their spread in any case


@dataclass(frozen=True)
class PairPosterior:
    """Probabilities for n rows: that two belong together, that there are K clusters, that a row belongs to none."""

    together: np.ndarray  # (n, n): probabilities that two rows belong together
    n_clusters: dict[int, float]  # the probability of each number of clusters
    outlying: np.ndarray  # (n,): probabilities that a row belongs to nothing

    @property
    def p_one(self) -> float:
        """The probability that all rows are one cluster."""
        return self.n_clusters.get(1, 0.0)

    def given(self, n_clusters: int) -> PairPosterior:
        """The same posterior of the pairs where the number of clusters is known."""
        return replace(self, n_clusters={n_clusters: 1.0})


@dataclass(frozen=True)
class ShapePosterior(PairPosterior):
    """What the flow of shapes says of n rows."""

    one_noise: float  # the logit of the probability that they are Gaussian in one round noise


@dataclass(frozen=True)
class GaussianPosterior(PairPosterior):
    """What a mixture of Gaussians says of n rows, and how well it fits them."""

    r: np.ndarray  # (n, K): the probability of each cluster for each row
    misfit: float  # how far distances of rows to their centres are from those of Gaussians ...
    n_fitted: int  # ... over so many rows
    are_round: bool  # whether one round noise was enough

    @property
    def labels(self) -> np.ndarray:
        """The most probable cluster (n,) of each row."""
        return self.r.argmax(1)


def views(points: np.ndarray) -> np.ndarray:
    """Points (n, d) as they are and, if columns may have units of their own, in units of their spread: (V, n, d)."""
    shrunk = points / max(np.abs(points).max(), 1e-300)  # the squares of huge numbers would overflow
    spread = shrunk.std(0)
    spread[spread == 0] = spread.max(initial=1e-300)  # columns in which these points are all alike
    return np.stack([points] if spread.max() <= UNEVEN * spread.min() else [points, shrunk / spread])


@torch.no_grad()
def of_shapes(flow: AnyShapeFlow, seen: np.ndarray) -> ShapePosterior:
    """The posterior of the flow that knows clusters of any shape, of views (V, n, d) of n points.

    Its logits are averaged over the views.
    """
    parameter, largest = next(flow.parameters()), np.abs(seen).max()
    if largest > LARGEST:
        seen = seen / largest
    said = flow.together(torch.as_tensor(seen).to(parameter))
    together, outlying = (torch.sigmoid(part.double().mean(0)).cpu().numpy() for part in (said.logits, said.noise))
    numbers = torch.softmax(torch.log_softmax(said.n_clusters.double(), -1).mean(0), -1).tolist()
    return ShapePosterior(together, dict(enumerate(numbers, 1)), outlying, float(said.one_noise.double().mean()))


def consistent(posterior: PairPosterior, tree: PairTree) -> PairPosterior:
    """The same posterior, whose probability of a single cluster does not contradict what it says of pairs.

    All rows of a single cluster belong together, so it cannot be likelier than that rows do which lie in different
    clusters of the best cut of the tree of pairs.
    """
    if len(tree.within) < 2:
        return posterior
    p_one, most = posterior.p_one, tree.between(2 + int(tree.indices()[1:].argmax()))
    if p_one <= most:
        return posterior
    others = {K: p * (1 - most) / max(1 - p_one, 1e-12) for K, p in posterior.n_clusters.items()}
    return replace(posterior, n_clusters=others | {1: most})


def with_copies(posterior: PairPosterior, points: np.ndarray) -> PairPosterior:
    """The same posterior of points (n, d), in which a row surely belongs with its copies."""
    first = np.unique(points, axis=0, return_inverse=True)[1].reshape(-1)
    return replace(posterior, together=np.where(first[:, None] == first, 1.0, posterior.together))


def of_gaussians(
    r: np.ndarray, n_clusters: dict[int, float], misfit: float, n_fitted: int, are_round: bool
) -> GaussianPosterior:
    r"""The posterior of a mixture, from its responsibilities r (n, K): two rows belong together with probability
    :math:`\sum_k r_{ik} r_{jk}`, and no row belongs to nothing."""
    return GaussianPosterior(r @ r.T, n_clusters, np.zeros(len(r)), r, misfit, n_fitted, are_round)
