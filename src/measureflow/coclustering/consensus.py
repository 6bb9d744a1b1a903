"""What two flows say together: how far to believe each, and which of their two partitions is the answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from measureflow.coclustering.average import Average, total
from measureflow.coclustering.clusters import SeenRows, ShapedClusters
from measureflow.coclustering.facts import facts
from measureflow.coclustering.partition import Partition, inner_tree, outliers, scored, tree_cut
from measureflow.coclustering.posteriors import (
    GaussianPosterior,
    PairPosterior,
    ShapePosterior,
    consistent,
    of_gaussians,
    of_shapes,
    views,
    with_copies,
)
from measureflow.mixtures.clusters import GaussianClusters
from measureflow.mixtures.misfit import radial_misfit
from measureflow.mixtures.rows import Rows
from measureflow.models import AnyShapeFlow

ROWS = (384, 1024)  # that the flow of shapes looks at: its time grows with their square; more for many clusters
ROWS_PER_CLUSTER = 32  # of those that the Gaussians found
MISFIT_ROWS = 4096  # on which it is seen how well the Gaussians fit
ALIKE = 1e-6  # indices that differ by less are those of the same partition, but for rounding
LIKELY_ROUND = 0.5  # a weight of the Gaussians beyond which a sketch of them will not do
FEWEST_ROWS = 32  # fewer are left to the Gaussians: the flow has seen no such sets
LEAST_MASS = 2.0  # rows that weigh less in all, as weights that sum to one do, tell the Gaussians nothing: they count


@dataclass(frozen=True)
class Agreement:
    """What two posteriors of the same rows come to."""

    posterior: PairPosterior  # both, by total probability
    gaussian_weight: float  # the probability that the Gaussians describe the rows
    gaussians: Partition
    shapes: Partition  # the best cut of the tree of the shapes, or that of as many clusters as were asked for

    @classmethod
    def of(
        cls,
        average: Average,
        said: ShapePosterior,
        gaussians: GaussianPosterior,
        points: np.ndarray,
        n_clusters: int | None = None,
    ) -> Agreement:
        """The agreement of what was said of shapes and of Gaussians, for points (n, d)."""
        cut = tree_cut(said)
        weight = average.gaussian_weight(facts(said, gaussians, cut, points))
        shapes = with_copies(average.of_shapes(said, cut.n_clusters), points)
        tree = inner_tree(shapes, n_clusters)
        shapes = consistent(shapes, tree[1]) if n_clusters is None else shapes.given(n_clusters)
        best = tree_cut(shapes, n_clusters, tree)
        posterior = with_copies(total(weight, gaussians, shapes), points)
        return cls(posterior, weight, scored(posterior, gaussians.labels), scored(posterior, best.labels))

    @property
    def gaussians_win(self) -> bool:
        """Whether the Gaussians' partition has the larger expected index, or as large a one: it says more."""
        return self.gaussians.expected_index > self.shapes.expected_index - ALIKE

    @property
    def needs_gaussians(self) -> bool:
        """Whether the Gaussians are likely right, or their partition is better than the other and not just as good."""
        better = self.gaussians.expected_index > self.shapes.expected_index + ALIKE
        return better or self.gaussian_weight > LIKELY_ROUND

    @property
    def partition(self) -> Partition:
        """The Gaussians' or the cut."""
        return self.gaussians if self.gaussians_win else self.shapes

    @property
    def outliers(self) -> np.ndarray:
        """Which of the rows belong to nothing."""
        return outliers(self.posterior)


@dataclass(frozen=True)
class Consensus(Agreement):
    """What two flows say of the rows seen."""

    seen: SeenRows

    def clusters(self, gaussians: GaussianClusters, rows: Rows) -> GaussianClusters | ShapedClusters:
        """The clusters of the better partition, over all rows."""
        if self.gaussians_win:
            return gaussians
        return ShapedClusters.of(self.seen, self.shapes, self.posterior.together, rows)


def n_seen(n_clusters: int) -> int:
    """How many rows the flow of shapes looks at where the Gaussians found so many clusters."""
    return int(np.clip(ROWS_PER_CLUSTER * n_clusters, *ROWS))


def consult(
    flow: AnyShapeFlow,
    average: Average,
    rows: Rows,
    clusters: GaussianClusters,
    n_clusters_posterior: dict[int, float],
    n_clusters: int | None = None,
) -> Consensus | None:
    """What a flow of shapes and a mixture found by a flow of Gaussians say together; None of too few or equal rows."""
    frame = clusters.frame.unshaped
    X = rows.repeated(n_seen(len(clusters.weights)))
    if len(X) < FEWEST_ROWS or not frame.used.any() or clusters.mixture.variance <= 0:
        return None
    points = frame.rows_inward(X)
    fitted = clusters.frame.rows_inward(rows.repeated(MISFIT_ROWS))
    misfit = radial_misfit(fitted, clusters.mixture)
    gaussians = of_gaussians(clusters.probabilities(X), n_clusters_posterior, misfit, len(fitted), clusters.are_round)
    seen = views(points) if frame.axes is None else points[None]  # axes of a signal have no units of their own
    if rows.mass < LEAST_MASS:
        average = replace(average, bias=-np.inf)  # the shapes know ratios of weights alone
    agreement = Agreement.of(average, of_shapes(flow, seen), gaussians, points, n_clusters)
    return Consensus(**vars(agreement), seen=SeenRows(frame, points))
