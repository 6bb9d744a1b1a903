"""Mixtures of ellipsoids: for data that round clusters of one size could only cover with many atoms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from measureflow.attention.threads import side_by_side
from measureflow.mixtures.frame import LEAST_SHARE
from measureflow.mixtures.lifted import Lift
from measureflow.mixtures.rows import Rows
from measureflow.mixtures.shared_noise import SharedNoise, normalised, responsibilities

BLOCK = 1 << 20  # entries of lifted rows at a time
STEPS = 15  # of EM after each merge: the next merge moves everything again


@dataclass(frozen=True)
class Shapes:
    """Covariances of clusters, any ellipsoids; subclasses restrict them."""

    own: bool  # each cluster has one, or all share one
    along_columns: ClassVar[bool] = False  # whether covariances are diagonal

    def n_free(self, d: int, K: int) -> int:
        """The number of free parameters of the covariances of K clusters in d columns."""
        return self.n_free_of_one(d) * (K if self.own else 1)

    def part(self, covariances: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Covariances (K, d, d) reduced to this kind."""
        if not self.own:
            covariances = np.broadcast_to(np.tensordot(weights / weights.sum(), covariances, 1), covariances.shape)
        return self.part_of_each(covariances)

    def n_free_of_one(self, d: int) -> int:
        """The number of free parameters of one covariance."""
        return d * (d + 1) // 2

    def part_of_each(self, covariances: np.ndarray) -> np.ndarray:
        """The same as `part` for each covariance alone."""
        return covariances


@dataclass(frozen=True)
class AlongColumns(Shapes):
    """Ellipsoids whose axes are the columns: diagonal covariances."""

    along_columns = True

    def n_free_of_one(self, d: int) -> int:
        return d

    def part_of_each(self, covariances: np.ndarray) -> np.ndarray:
        return np.diagonal(covariances, axis1=1, axis2=2)[:, None] * np.eye(covariances.shape[-1])


@dataclass(frozen=True)
class Balls(AlongColumns):
    """Balls: multiples of the identity."""

    def n_free_of_one(self, d: int) -> int:
        return 1

    def part_of_each(self, covariances: np.ndarray) -> np.ndarray:
        variances = np.diagonal(covariances, axis1=1, axis2=2).mean(1)
        return variances[:, None, None] * np.eye(covariances.shape[-1])


SHARED = Shapes(own=False)
OWN = (Balls(own=True), AlongColumns(own=True), Shapes(own=True))


@dataclass(frozen=True)
class Ellipsoids:
    r"""The density :math:`\sum_k p_k\, N(x; \mu_k, \Sigma_k)`, and the log-likelihood of the data it fits."""

    centers: np.ndarray  # (K, d)
    weights: np.ndarray  # (K,)
    covariances: np.ndarray  # (K, d, d)
    shapes: Shapes
    log_likelihood: float = float("nan")

    def __len__(self) -> int:
        return len(self.weights)

    @classmethod
    def of(cls, fit: SharedNoise, shapes: Shapes) -> Ellipsoids:
        """A mixture with one noise, seen as one of ellipsoids."""
        K, d = fit.centers.shape
        return cls(fit.centers, fit.weights, np.broadcast_to(fit.variance * np.eye(d), (K, d, d)), shapes)

    @property
    def variance(self) -> float:
        """The variance within clusters, over clusters and columns."""
        return float(self.weights @ np.trace(self.covariances, axis1=1, axis2=2) / self.covariances.shape[-1])

    def ordered(self, order: np.ndarray) -> Ellipsoids:
        """The same mixture, its clusters in another order."""
        return replace(
            self, centers=self.centers[order], weights=self.weights[order], covariances=self.covariances[order]
        )

    @property
    def log_volumes(self) -> np.ndarray:
        """Half the log-determinants of the covariances, (K,)."""
        return np.linalg.slogdet(self.covariances)[1] / 2

    def squared_distances(self, X: np.ndarray) -> np.ndarray:
        """Squared distances (n, K) of rows to the centres, each in units of its own covariance."""
        whiten = np.linalg.inv(np.linalg.cholesky(self.covariances)).transpose(0, 2, 1)
        if self.shapes.along_columns:
            whiten = np.diagonal(whiten, axis1=1, axis2=2)
        out = np.empty((len(X), len(self)))
        for k, center in enumerate(self.centers):
            Z = X - center
            Z = Z * whiten[k] if self.shapes.along_columns else Z @ whiten[k]
            out[:, k] = np.einsum("ij,ij->i", Z, Z)
        return out

    def bic(self, n: float) -> float:
        """Schwarz's criterion, smaller being better."""
        K, d = self.centers.shape
        return -2 * self.log_likelihood + (K * d + K - 1 + self.shapes.n_free(d, K)) * np.log(n)


def ellipsoids(rows: Rows, start: SharedNoise) -> Iterator[Ellipsoids]:
    """Mixtures of ever fewer clusters from a start's atoms, for every kind of shapes with enough rows.

    Clusters with a shape each need as many rows on average as each has parameters; with fewer, BIC, which holds for
    many rows, accepts too much.
    """
    n, d = rows.mass, rows.points.shape[1]
    for shapes in (SHARED, *OWN):
        needed = d + shapes.n_free(d, 1)
        if needed > n:
            continue
        for fit in _coarsenings(rows, Ellipsoids.of(start, shapes)):
            if not shapes.own or n / len(fit) >= needed:
                yield fit


def posterior(fits: list[Ellipsoids], n: float) -> dict[int, float]:
    """The probability of each number of clusters that have a shape each, with BIC in place of the evidence."""
    least: dict[int, float] = {}
    for fit in fits:
        if fit.shapes.own:
            least[len(fit)] = min(fit.bic(n), least.get(len(fit), np.inf))
    weights = np.exp((min(least.values()) - np.array(list(least.values()))) / 2)
    return dict(sorted(zip(least, (weights / weights.sum()).tolist(), strict=True)))


def bic_upper_bound(rows: Rows, fit: SharedNoise) -> float:
    r"""An upper bound on the least BIC with a shape for each cluster, from a mixture's clusters or unions of them.

    Responsibilities r are held fixed: :math:`\log p(X) \ge \sum_{ik} r_{ik} \log p_k N(x_i; \mu_k, \Sigma_k) + H(r)`.
    """
    n, d = rows.mass, rows.points.shape[1]
    r = responsibilities(rows.points, fit)[0]
    lift = Lift(rows.mean, along_columns=False)
    mass, centers, covariances = _moments(rows, lift, (r * rows.weights[:, None]).T @ lift.rows(rows.points), own=True)
    least = np.inf
    for shapes in OWN:
        part = Ellipsoids(centers, mass / n, shapes.part(covariances, mass), shapes)
        merged = r
        while True:
            doubt = -float(rows.weights @ np.sum(merged * np.log(np.maximum(merged, 1e-300)), 1))
            sure = n * float(part.weights @ (np.log(part.weights) - part.log_volumes)) - n * d / 2 * (
                1 + np.log(2 * np.pi)
            )
            least = min(least, replace(part, log_likelihood=sure + doubt).bic(n))
            if len(part) == 1:
                break
            a, b = _cheapest_pair(part)
            part = _merged(part, a, b)
            merged = np.column_stack([np.delete(merged, [a, b], 1), merged[:, a] + merged[:, b]])
    return least


def _moments(rows: Rows, lift: Lift, sums: np.ndarray, *, own: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mass of each cluster, its mean and its covariance, shrunk, from the sums (K, size) of lifted rows it holds."""
    mass, first, second = lift.moments(sums)
    mass = np.maximum(mass, 1e-12 * rows.mass)
    covariances = _shrunk(mass, first, second, LEAST_SHARE * rows.variance, own=own)
    return mass, lift.origin + first / mass[:, None], covariances


def _coarsenings(rows: Rows, start: Ellipsoids) -> Iterator[Ellipsoids]:
    """EM from a start, and again from each cheapest merge of two clusters, down to one."""
    fit = start
    while True:
        fit = fit_ellipsoids(rows, fit, steps=STEPS, tol=1e-4)
        yield fit
        if len(fit) == 1:
            return
        fit = _merged(fit, *_cheapest_pair(fit))


def fit_ellipsoids(rows: Rows, start: Ellipsoids, *, steps: int, tol: float) -> Ellipsoids:
    r"""EM with covariances that shrink toward a shared shape, as under a conjugate prior.

    .. math:: \Sigma_k = \frac{S_k + (d + 1) W}{n_k + d + 1}

    :math:`S_k` is the scatter of cluster k by responsibility, W has the shape of all scatter together and the geometric
    mean of the clusters' sizes. So even two rows have a shape, and the likelihood is bounded.
    """
    shapes, fit = start.shapes, start
    lift = Lift(rows.mean, shapes.along_columns)
    lifted = lift.rows(rows.points) if len(rows.weights) * lift.size <= BLOCK else None
    log_likelihood = last = -np.inf
    for step in range(steps + 1):
        log_likelihood, sums = _expectation(rows, fit, lift, lifted)
        if step == steps or log_likelihood - last < tol * rows.mass:
            break
        last = log_likelihood
        mass, centers, covariances = _moments(rows, lift, sums, own=shapes.own)
        fit = Ellipsoids(centers, mass / mass.sum(), shapes.part(covariances, mass), shapes)
    return replace(fit, log_likelihood=log_likelihood)


def _expectation(rows: Rows, fit: Ellipsoids, lift: Lift, lifted: np.ndarray | None) -> tuple[float, np.ndarray]:
    """Log-likelihood, and the sums (K, size) of the lifted rows that each cluster holds."""
    theta, size = lift.densities(fit.centers, fit.weights, fit.covariances), BLOCK // lift.size + 1

    def block(a: int) -> tuple[float, np.ndarray]:
        w = rows.weights[a : a + size]
        phi = lift.rows(rows.points[a : a + size]) if lifted is None else lifted
        r, density = normalised(phi @ theta)
        r *= w[:, None]
        return float(w @ density), r.T @ phi

    parts = side_by_side(block, range(0, len(rows.weights), size))
    log_likelihood, sums = (sum(column) for column in zip(*parts, strict=True))
    return log_likelihood, sums  # type: ignore[return-value]


def _shrunk(
    responsibility_mass: np.ndarray, sums: np.ndarray, scatter: np.ndarray, least: float, *, own: bool
) -> np.ndarray:
    """Covariances (K, d, d) of the clusters, shrunk toward one shape."""
    K, d = sums.shape
    scatter = scatter - sums[:, :, None] * sums[:, None, :] / np.maximum(responsibility_mass, 1e-300)[:, None, None]
    pooled = scatter.sum(0) / responsibility_mass.sum()
    pooled = pooled + (1e-6 * np.trace(pooled) / d + least) * np.eye(d)
    if not own:
        return np.broadcast_to(pooled, (K, d, d))
    sizes = np.maximum(
        np.trace(scatter, axis1=1, axis2=2) / np.maximum(responsibility_mass, 1e-300), 1e-6 * np.trace(pooled)
    )
    pooled *= np.exp(responsibility_mass @ np.log(sizes) / responsibility_mass.sum()) / np.trace(pooled)
    return (scatter + (d + 1) * pooled) / (responsibility_mass + d + 1)[:, None, None] + least * np.eye(d)


def _cheapest_pair(fit: Ellipsoids) -> tuple[int, int]:
    """The two clusters whose union, as one Gaussian, loses least likelihood of what they hold."""
    a, b = np.triu_indices(len(fit), 1)
    mass, _, union = _unions(fit, a, b)
    value = lambda mass, C: mass * (np.log(mass) - np.linalg.slogdet(C)[1] / 2)  # noqa: E731
    alone = value(fit.weights, fit.covariances)
    alike = replace(fit.shapes, own=True).part(union, mass)
    pair = int(np.argmin(alone[a] + alone[b] - value(mass, alike)))
    return int(a[pair]), int(b[pair])


def _merged(fit: Ellipsoids, a: int, b: int) -> Ellipsoids:
    """One cluster fewer: the union of two, which comes last."""
    mass, center, union = _unions(fit, np.array([a]), np.array([b]))
    weights = np.append(np.delete(fit.weights, [a, b]), mass)
    covariances = np.concatenate([np.delete(fit.covariances, [a, b], 0), union])
    centers = np.concatenate([np.delete(fit.centers, [a, b], 0), center])
    return replace(fit, centers=centers, weights=weights, covariances=fit.shapes.part(covariances, weights))


def _unions(fit: Ellipsoids, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masses, means and covariances of the unions of pairs of clusters."""
    mass = fit.weights[a] + fit.weights[b]
    p, q = fit.weights[a] / mass, fit.weights[b] / mass
    gap = fit.centers[a] - fit.centers[b]
    union = p[:, None, None] * fit.covariances[a] + q[:, None, None] * fit.covariances[b]
    union += (p * q)[:, None, None] * gap[:, :, None] * gap[:, None, :]
    return mass, p[:, None] * fit.centers[a] + q[:, None] * fit.centers[b], union
