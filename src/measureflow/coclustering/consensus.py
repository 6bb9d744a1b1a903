"""What two flows say together: their average opinion of the rows, and the better of their two partitions under it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from measureflow.coclustering.average import Average, facts, gaussian_misfit
from measureflow.coclustering.clusters import SeenRows, ShapedClusters
from measureflow.coclustering.opinions import Opinion, consistent, of_gaussians, of_shapes, with_copies
from measureflow.coclustering.partition import Partition, inner_tree, judged, outliers, tree_cut
from measureflow.mixtures.clusters import GaussianClusters
from measureflow.mixtures.rows import Rows
from measureflow.models import AnyShapeFlow

ROWS = (640, 1024)  # that the flow of shapes looks at: its time grows with their square; more for many clusters
ROWS_PER_CLUSTER = 32  # of those that the Gaussians found
ROUNDING = 1e-9  # the worth of one partition, added up in two orders, differs by less
FEWEST_ROWS = 32  # fewer are left to the Gaussians: the flow has seen no such sets


@dataclass(frozen=True)
class Agreement:
    """What two opinions of the same rows come to."""

    opinion: Opinion  # their average
    gaussian_weight: float  # of the Gaussians' opinion in it
    gaussians: Partition
    shapes: Partition  # the best cut of the tree of the opinion, or that of as many clusters as were asked for

    @classmethod
    def of(
        cls,
        average: Average,
        shapes: Opinion,
        gaussians: Opinion,
        labels: np.ndarray,
        misfit: float,
        points: np.ndarray,
        n_clusters: int | None = None,
    ) -> Agreement:
        """The agreement of shapes and Gaussians, the latter with a partition of points (n, d) and their misfit."""
        cut = tree_cut(shapes)
        known = facts(shapes, gaussians, cut, labels, misfit, points.shape[1])
        opinion, weight = average.of(shapes, gaussians, known, cut.n_clusters)
        opinion = with_copies(opinion, points)
        tree = inner_tree(opinion, n_clusters)
        opinion = consistent(opinion, tree[1]) if n_clusters is None else opinion.given(n_clusters)
        return cls(opinion, weight, judged(opinion, labels), tree_cut(opinion, n_clusters, tree))

    @property
    def gaussians_win(self) -> bool:
        """Whether the Gaussians' partition is worth at least as much as the other, but for rounding."""
        return self.gaussians.worth >= self.shapes.worth - ROUNDING

    @property
    def partition(self) -> Partition:
        """The better of the two."""
        return self.gaussians if self.gaussians_win else self.shapes

    @property
    def outliers(self) -> np.ndarray:
        """Which of the rows belong to nothing."""
        return outliers(self.opinion)


@dataclass(frozen=True)
class Consensus(Agreement):
    """What two flows say of the rows seen."""

    seen: SeenRows

    def clusters(self, gaussians: GaussianClusters, rows: Rows) -> GaussianClusters | ShapedClusters:
        """The clusters of the better partition, over all rows."""
        if self.gaussians_win:
            return gaussians
        return ShapedClusters.of(self.seen, self.shapes, self.opinion.together, rows)


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
    X = rows.repeated(int(np.clip(ROWS_PER_CLUSTER * len(clusters.weights), *ROWS)))
    if len(X) < FEWEST_ROWS or not frame.used.any() or clusters.mixture.variance <= 0:
        return None
    points = frame.rows_inward(X)
    r = clusters.probabilities(X)
    shapes, gaussians = of_shapes(flow, points), of_gaussians(r, n_clusters_posterior)
    misfit = gaussian_misfit(clusters, X)
    agreement = Agreement.of(average, shapes, gaussians, r.argmax(1), misfit, points, n_clusters)
    return Consensus(**vars(agreement), seen=SeenRows(frame, points))
