"""The partition a posterior asks for: outliers are set aside, and a tree is cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from measureflow.coclustering.posteriors import PairPosterior
from measureflow.measures.partitions import PairTree, expected_index

NEARLY = 0.01  # cuts whose expected index is less by no more are as good as the best: crumbs change it by less


@dataclass(frozen=True)
class Partition:
    """Labels of n rows from zero on, and how good they are expected to be."""

    labels: np.ndarray
    expected_index: float  # adjusted Rand index over the rows that are not outliers

    @property
    def n_clusters(self) -> int:
        """How many clusters there are."""
        return int(self.labels.max()) + 1


def outliers(posterior: PairPosterior) -> np.ndarray:
    """Rows (n,) that more likely belong to nothing than to something; none where that would be half of them."""
    out = posterior.outlying > 0.5
    return out if 2 * out.sum() < len(out) else np.zeros_like(out)


def inner_tree(posterior: PairPosterior, n_clusters: int | None = None) -> tuple[np.ndarray, PairTree]:
    """Outliers (n,), which have no say, and the tree of all other rows; of all rows if so many clusters need them."""
    out = outliers(posterior)
    if n_clusters is not None and n_clusters > len(out) - out.sum():
        out = np.zeros_like(out)
    return out, PairTree.of(posterior.together[np.ix_(~out, ~out)] if out.any() else posterior.together)


def tree_cut(
    posterior: PairPosterior, n_clusters: int | None = None, tree: tuple[np.ndarray, PairTree] | None = None
) -> Partition:
    """The cut of the average-linkage tree into as few clusters as are nearly as good as the best, or into so many.

    Good is the expected adjusted Rand index, which a cluster of two or three rows hardly changes. Outliers have no say;
    then each gets the label of the cluster whose rows it most likely belongs with. The tree is that of `inner_tree`,
    which is found where it is not given.
    """
    out, pairs = inner_tree(posterior, n_clusters) if tree is None else tree
    indices = pairs.indices(posterior.p_one)
    if n_clusters is None:
        n_clusters = 1 + int(np.flatnonzero(indices >= indices.max() - NEARLY)[0])
    chosen = pairs.labels(n_clusters)
    labels = np.empty(len(out), dtype=np.int64)
    labels[~out] = chosen
    if out.any():
        labels[out] = memberships(posterior.together[np.ix_(out, ~out)], chosen).argmax(1)
    return Partition(labels, float(indices[n_clusters - 1]))


def scored(posterior: PairPosterior, labels: np.ndarray) -> Partition:
    """A partition from elsewhere with its expected index under a posterior."""
    inside = ~outliers(posterior)
    index = expected_index(posterior.together[np.ix_(inside, inside)], labels[inside], posterior.p_one)
    return Partition(labels, index)


def memberships(P: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The mean probability (m, K) with which m rows belong with the rows of each cluster, from P (m, n)."""
    member = np.zeros((P.shape[1], int(labels.max()) + 1))
    member[np.arange(len(labels)), labels] = 1.0
    return P @ member / np.maximum(member.sum(0), 1.0)
