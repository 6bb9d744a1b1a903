"""The k-means transformers without their tokens: the same numbers, no n x n attention and no (d + k) embedding."""

from __future__ import annotations

import numpy as np
import torch

from measureflow.attention import Normaliser
from measureflow.lloyd import empty_clusters
from measureflow.lloyd.points import STRIPES, Assignment, Points


def on_sphere(C: np.ndarray) -> np.ndarray:
    """Rows divided by their length; a mean too short to have a direction becomes zero, as in `RMSNorm`."""
    length = np.linalg.norm(C, axis=1, keepdims=True)
    return np.where(length > np.finfo(np.float64).eps ** 0.5, C / np.maximum(length, 1e-30), 0.0)


def shares_of(points: Points, C: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The shares (rows, k) of some rows: 1/m for each of the m nearest centres."""
    S = Points(points.rows(rows), spherical=points.spherical).similarity_to_all(C)
    best = S.max(1, keepdims=True) == S
    return best / best.sum(1, keepdims=True)


def lloyd_step(
    points: Points, C: np.ndarray, place: empty_clusters.Policy = empty_clusters.to_mean
) -> tuple[np.ndarray, np.ndarray]:
    """One layer of the Lloyd transformer: labels and new centres; ``place`` moves the centres of empty clusters."""
    found = points.assign(C)
    mass, sums = found.mass.copy(), found.sums.copy()
    if (mass == 0).any():
        _add_tied(points, C, found, sums, mass)
    filled, empty = mass > 0, np.flatnonzero(mass == 0)
    new = np.array(C, dtype=np.float64)
    new[filled] = points.rescaling.shift + sums[filled] / mass[filled, None]
    if len(empty):
        new[empty] = place(points, C, found.labels, empty)
    return found.labels, (on_sphere(new) if points.spherical else new).astype(C.dtype)


def _add_tied(points: Points, C, found: Assignment, sums, mass) -> None:
    """Give clusters without a row of their own the tied rows of the largest share."""
    rows = np.flatnonzero(found.tied & (points.weights > 0))
    if len(rows) == 0:
        return
    Y, w, x = shares_of(points, C, rows), points.weights[rows], points.rows(rows) - points.rescaling.shift
    for j in np.flatnonzero(mass == 0):
        chosen = (Y[:, j] == Y[:, j].max()) & (Y[:, j] > 0)
        sums[j], mass[j] = w[chosen] @ x[chosen], w[chosen].sum()


def weighed_step(points: Points, C: np.ndarray, weigh: Normaliser) -> tuple[np.ndarray, np.ndarray]:
    """One layer of a row whose decoder sees distances: each centre the mean of its members, weighed by ``weigh``."""
    found = points.assign(C)
    groups = Members(points, C, found)
    new = np.empty((len(C), points.shape[1]))
    for j in range(len(C)):
        rows = groups.of(j)
        x = points.rows(rows)
        s = Points(x, spherical=points.spherical, threads=1).similarity_to_all(C[j : j + 1])[:, 0]
        z = weigh(torch.from_numpy(s)[None], torch.from_numpy(points.weights[rows])[None])[0].numpy()
        new[j] = z @ x
    return found.labels, (on_sphere(new) if points.spherical else new).astype(C.dtype)


class Members:
    """The rows of each cluster: those of the largest share; if no row has a share, those that the circuit takes."""

    def __init__(self, points: Points, C: np.ndarray, found: Assignment):
        heavy, self.spherical = points.weights > 0, points.spherical
        own = np.flatnonzero(heavy & ~found.tied)
        order = own[np.argsort(found.labels[own], kind="stable")]
        edges = np.searchsorted(found.labels[order], np.arange(len(C) + 1))
        self.groups = [order[edges[j] : edges[j + 1]] for j in range(len(C))]
        self.tied = np.flatnonzero(heavy & found.tied)
        self.Y = shares_of(points, C, self.tied) if len(self.tied) else np.zeros((0, len(C)))
        self.all = np.flatnonzero(heavy)

    def of(self, j: int) -> np.ndarray:
        """The rows of cluster j."""
        if len(self.groups[j]):
            return self.groups[j]
        if len(self.tied) and self.Y[:, j].max() > 0:
            return self.tied[self.Y[:, j] == self.Y[:, j].max()]
        if len(self.tied) and not self.spherical:  # no row has a share: L2 attention is closest to the most tied
            most = self.Y.max(1)
            return self.tied[most == most.min()]
        return self.all


def soft_step(points: Points, C: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """One layer of the soft transformer: softmax shares in blocks of rows, then the means by share."""
    shift, k = points.rescaling.shift, len(C)
    c = np.asarray(C, dtype=np.float64) - shift
    lift = np.zeros(k) if points.spherical else (c * c).sum(1)
    sums, mass = np.zeros((STRIPES, k, points.shape[1])), np.zeros((STRIPES, k))
    factor = 1.0 if points.spherical else 2.0
    labels = np.empty(points.shape[0], np.int32)

    def stripe(s, start, stop):
        for a in range(start, stop, 4096):
            b = min(a + 4096, stop)
            x = points.X[a:b] - shift
            scores = gamma * (factor * x @ c.T - lift)
            scores -= scores.max(1, keepdims=True)
            labels[a:b] = scores.argmax(1)
            Y = np.exp(scores, out=scores)
            Y /= Y.sum(1, keepdims=True)
            if len(points.w):
                Y *= points.w[a:b, None]
            sums[s] += Y.T @ x
            mass[s] += Y.sum(0)

    points.each(stripe)
    total = mass.sum(0)[:, None]
    new = np.where(total > 0, shift + sums.sum(0) / np.where(total > 0, total, 1.0), points.mean())
    return labels, (on_sphere(new) if points.spherical else new).astype(C.dtype)


def medoid_step(
    points: Points, C: np.ndarray, delta: float, generator: torch.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """One layer of randomised k-medoids: each centre a row drawn by Gumbel numbers, cluster by cluster."""
    found = points.assign(C)
    tied = np.flatnonzero(found.tied)
    Y = shares_of(points, C, tied) if len(tied) else np.zeros((0, len(C)))
    weights = points.weights
    log_w = np.where(weights > 0, np.log(np.where(weights > 0, weights, 1.0)), -np.inf)
    drawn = []
    for j in range(len(C)):
        gap = 2 * delta * (found.labels != j)
        full = 2 * delta if points.spherical else delta
        gap[tied] = np.where(Y[:, j] > 0, full * (1 - Y[:, j]), full * (1 + Y.max(1) * (not points.spherical)))
        s = points.similarity_to_own(C, np.full(points.shape[0], j, np.int32)) - gap + log_w
        u = torch.rand(points.shape[0], generator=generator, dtype=torch.float64).numpy()
        tiny = np.finfo(np.float64).tiny
        drawn.append(int(np.argmax(s - np.log(np.maximum(-np.log(np.maximum(u, tiny)), tiny)))))
    return found.labels, points.rows(drawn).astype(C.dtype)
