"""What two flows say together: their average opinion of the rows, and which of their two partitions is the answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from measureflow.coclustering.average import Average
from measureflow.coclustering.clusters import SeenRows, ShapedClusters
from measureflow.coclustering.facts import facts
from measureflow.coclustering.opinions import (
    GaussianOpinion,
    Opinion,
    consistent,
    of_gaussians,
    of_shapes,
    with_copies,
)
from measureflow.coclustering.partition import Partition, inner_tree, judged, outliers, tree_cut
from measureflow.mixtures.clusters import GaussianClusters
from measureflow.mixtures.misfit import radial_misfit
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
    p_round: float  # the probability that the rows are Gaussians in one round noise
    gaussian_weight: float  # of the Gaussians' opinion in the average
    gaussians: Partition
    shapes: Partition  # the best cut of the tree of the opinion, or that of as many clusters as were asked for

    @classmethod
    def of(
        cls,
        average: Average,
        shapes: Opinion,
        gaussians: GaussianOpinion,
        points: np.ndarray,
        n_clusters: int | None = None,
    ) -> Agreement:
        """The agreement of shapes and Gaussians on points (n, d)."""
        cut = tree_cut(shapes)
        known = facts(shapes, gaussians, cut, points.shape[1])
        opinion, p_round, weight = average.of(shapes, gaussians, known, cut.n_clusters)
        opinion = with_copies(opinion, points)
        tree = inner_tree(opinion, n_clusters)
        opinion = consistent(opinion, tree[1]) if n_clusters is None else opinion.given(n_clusters)
        best = tree_cut(opinion, n_clusters, tree)
        return cls(opinion, p_round, weight, judged(opinion, gaussians.labels), best)

    @property
    def gaussians_win(self) -> bool:
        """Whether the rows are probably round, or the Gaussians' partition is worth as much as the other."""
        return self.p_round > 0.5 or self.gaussians.worth >= self.shapes.worth - ROUNDING

    @property
    def partition(self) -> Partition:
        """The Gaussians' or the cut."""
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
    r, misfit = clusters.probabilities(X), radial_misfit(clusters.frame.rows_inward(X), clusters.mixture)
    gaussians = of_gaussians(r, n_clusters_posterior, misfit, clusters.are_round)
    agreement = Agreement.of(average, of_shapes(flow, points), gaussians, points, n_clusters)
    return Consensus(**vars(agreement), seen=SeenRows(frame, points))
