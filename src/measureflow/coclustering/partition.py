"""The partition that an opinion asks for: outliers set aside, a tree cut where that is worth most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from measureflow.coclustering.opinions import Opinion
from measureflow.measures.partitions import PairTree, cut_indices, expected_index, given_several

COUNT_SHARE = 0.1  # what the probability of the number of clusters counts for beside the expected index


@dataclass(frozen=True)
class Partition:
    """Labels of n rows from zero on, and how good they are expected to be."""

    labels: np.ndarray
    expected_index: float  # adjusted Rand index over the rows that are not outliers
    p_count: float  # the probability of its number of clusters

    @property
    def n_clusters(self) -> int:
        """How many clusters there are."""
        return int(self.labels.max()) + 1

    @property
    def worth(self) -> float:
        """What partitions are chosen by: the expected index, and a little for the right number of clusters.

        A cluster of two or three rows hardly changes the index; whether it is one is for the number to say.
        """
        return self.expected_index + COUNT_SHARE * self.p_count


def outliers(opinion: Opinion) -> np.ndarray:
    """Rows (n,) that more likely belong to nothing than to something; none where that would be half of them."""
    out = opinion.outlying > 0.5
    return out if 2 * out.sum() < len(out) else np.zeros_like(out)


def tree_cut(opinion: Opinion, n_clusters: int | None = None) -> Partition:
    """The cut of the average-linkage tree that is worth most, or that of so many clusters.

    Outliers have no say in it; then each gets the label of the cluster whose rows it most likely belongs with.
    """
    out = outliers(opinion)
    if n_clusters is not None and n_clusters > len(out) - out.sum():
        out = np.zeros_like(out)
    P, p_one = opinion.together, opinion.p_one
    inner = P[np.ix_(~out, ~out)]
    tree = PairTree.of(given_several(inner, p_one))
    if n_clusters is None:
        chances = np.array([opinion.n_clusters.get(K, 0.0) for K in range(1, len(inner) + 1)])
        n_clusters = 1 + int((cut_indices(inner, p_one, tree) + COUNT_SHARE * chances).argmax())
    chosen = tree.labels(n_clusters)
    labels = np.empty(len(P), dtype=np.int64)
    labels[~out] = chosen
    if out.any():
        labels[out] = memberships(P[np.ix_(out, ~out)], chosen).argmax(1)
    return Partition(labels, expected_index(inner, chosen, p_one), opinion.n_clusters.get(n_clusters, 0.0))


def judged(opinion: Opinion, labels: np.ndarray) -> Partition:
    """A partition from elsewhere, judged by an opinion."""
    inside = ~outliers(opinion)
    index = expected_index(opinion.together[np.ix_(inside, inside)], labels[inside], opinion.p_one)
    return Partition(labels, index, opinion.n_clusters.get(int(labels.max()) + 1, 0.0))


def memberships(P: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The mean probability (m, K) with which m rows belong with the rows of each cluster, from P (m, n)."""
    member = np.zeros((P.shape[1], int(labels.max()) + 1))
    member[np.arange(len(labels)), labels] = 1.0
    return P @ member / np.maximum(member.sum(0), 1.0)
