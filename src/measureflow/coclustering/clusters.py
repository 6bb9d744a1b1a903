"""Clusters that are known by their rows: a new row joins that of the row nearest to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from measureflow.coclustering.partition import Partition, memberships
from measureflow.mixtures.clusters import BLOCK, by_weight, signal_to_noise_db
from measureflow.mixtures.frame import Frame
from measureflow.mixtures.rows import Rows

FEW = 8192  # rows among which the nearest are found without the compiled engine


class SeenRows:
    """Rows (m, d) that a flow saw, found again by nearness in the frame in which it saw them."""

    def __init__(self, frame: Frame, points: np.ndarray):
        self.frame, self.points = frame, np.ascontiguousarray(points)

    def nearest(self, X: np.ndarray) -> np.ndarray:
        """The index (n,) of the row seen that is nearest to each row of X, the first of those that are equally near."""
        blocks = (self.frame.rows_inward(X[a : a + BLOCK]) for a in range(0, max(len(X), 1), BLOCK))
        if len(X) <= FEW:
            return np.concatenate([cdist(block, self.points, "sqeuclidean").argmin(1) for block in blocks])
        from measureflow.lloyd.points import Points  # compiled when first used, which takes seconds

        return np.concatenate([Points(block).assign(self.points).labels for block in blocks])


@dataclass(frozen=True)
class ShapedClusters:
    """Clusters of any shape, ordered by weight and then by position."""

    seen: SeenRows
    labels: np.ndarray  # (m,) of the rows seen
    memberships: np.ndarray  # (m, K) of the rows seen
    centers: np.ndarray  # (K, d): means of their rows
    weights: np.ndarray  # (K,)
    covariances: np.ndarray  # (K, d, d) of their rows

    @classmethod
    def of(cls, seen: SeenRows, partition: Partition, P: np.ndarray, rows: Rows) -> ShapedClusters:
        """The clusters of a partition of the rows seen, their moments taken over all rows."""
        labels, q = partition.labels, memberships(P, partition.labels)
        q = _most_at(q, labels)
        of_rows = labels[seen.nearest(rows.points)]
        weights = np.bincount(of_rows, rows.weights, minlength=partition.n_clusters)
        centers = np.stack([_mean(rows, of_rows == k) for k in range(partition.n_clusters)])
        covariances = np.stack([_covariance(rows, of_rows == k, c) for k, c in enumerate(centers)])
        order = by_weight(weights / rows.mass, centers)
        rank = np.argsort(order)
        return cls(seen, rank[labels], q[:, order], centers[order], weights[order] / rows.mass, covariances[order])

    @property
    def snr_db(self) -> float:
        """Variance of the centres over that of the rows around them, in decibels."""
        noise = float(self.weights @ np.trace(self.covariances, axis1=1, axis2=2)) / self.centers.shape[1]
        return signal_to_noise_db(self.weights, self.centers, noise)

    def probabilities(self, X: np.ndarray) -> np.ndarray:
        """The probability of each cluster for each row, (n, K)."""
        return self.memberships[self.seen.nearest(X)]


def _most_at(q: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Memberships whose largest is that of the label: where another was larger the two are exchanged."""
    rows, top = np.arange(len(q)), q.argmax(1)
    q = q.copy()
    q[rows, labels], q[rows, top] = q[rows, top], q[rows, labels]
    q[rows, labels] += 1e-9  # ties are the label's
    return q / q.sum(1, keepdims=True)


def _mean(rows: Rows, mine: np.ndarray) -> np.ndarray:
    return rows.weights[mine] @ rows.points[mine] / rows.weights[mine].sum()


def _covariance(rows: Rows, mine: np.ndarray, center: np.ndarray) -> np.ndarray:
    gaps = rows.points[mine] - center
    return (gaps * rows.weights[mine, None]).T @ gaps / rows.weights[mine].sum()
