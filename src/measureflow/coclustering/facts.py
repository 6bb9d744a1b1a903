"""Facts about a set that speak for the Gaussians or for the shapes, and for how far to believe either."""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from measureflow.coclustering.partition import Partition
from measureflow.coclustering.posteriors import GaussianPosterior, PairPosterior
from measureflow.measures.partitions import expected_index

FACTS = (
    "sure shapes",  # the expected index of the shapes' own partition, by their posterior
    "shapes of Gaussians",  # that of the Gaussians' partition, by the shapes' posterior
    "sure Gaussians",  # that of the Gaussians' partition, by their own posterior
    "misfit",  # how far the rows' distances to their centres are from those of Gaussians (Kolmogorov and Smirnov)
    "significance",  # the same times the root of the number of rows on which it was seen
    "round",  # whether one round noise was enough for the Gaussians
    "sure rows",  # the mean probability of a row's most probable cluster, by the Gaussians' posterior
    "unsure number",  # the entropy of the number of clusters, by the Gaussians' posterior
    "log rows",
    "log columns",
    "log clusters",  # that the Gaussians find
    "one cluster",  # its probability by the shapes' posterior
    "one Gaussian",  # whether the Gaussians find one cluster, of which all rows are sure
)


def facts(shapes: PairPosterior, gaussians: GaussianPosterior, cut: Partition, n_columns: int) -> np.ndarray:
    """The facts of a set in the order of `FACTS`; the cut is the shapes' own partition."""
    labels = gaussians.labels
    n, n_clusters = len(labels), int(labels.max()) + 1
    return np.array(
        [
            cut.expected_index,
            expected_index(shapes.together, labels, shapes.p_one),
            expected_index(gaussians.together, labels, float(n_clusters == 1)),
            gaussians.misfit,
            gaussians.misfit * np.sqrt(gaussians.n_fitted),
            float(gaussians.are_round),
            gaussians.r.max(1).mean(),
            entr(list(gaussians.n_clusters.values())).sum(),
            np.log(n / 200),
            np.log(n_columns),
            np.log(n_clusters),
            shapes.p_one,
            float(n_clusters == 1),
        ]
    )
