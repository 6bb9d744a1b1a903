"""The algorithms of `TransformerKMeans`: each holds two engines that give the same numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from typing import ClassVar

import numpy as np
import torch

from measureflow.attention import Normaliser, NormMax, Softmax, Sparsemax
from measureflow.circuits import kmeans_transformer
from measureflow.circuits.clarkson import rows
from measureflow.circuits.clarkson.geometry import Euclidean, Lifted, Spherical
from measureflow.circuits.clarkson.kmeans import Iteration
from measureflow.circuits.clarkson.selections import PercentileCut, TopKSoftmax
from measureflow.lloyd import empty_clusters
from measureflow.lloyd.points import Points
from measureflow.lloyd.steps import lloyd_step, medoid_step, soft_step, weighed_step

Step = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # from centres to labels and new centres

ATTENTIONS = {"l2": Euclidean, "dot": Lifted}
EMPTY = {"relocate": empty_clusters.relocate, "keep": empty_clusters.keep, "mean": empty_clusters.to_mean}
WEIGHTINGS = ("softmax", "sparsemax", "topk")


@dataclass(frozen=True)
class Algorithm(ABC):
    """One algorithm as two engines with the same centres: a layer of a transformer, and compiled passes over the rows.

    Fields without a default are the parameters of the estimator that the algorithm reads.
    """

    gamma: float
    attention: str

    spherical: ClassVar[bool] = False
    converges: ClassVar[bool] = True  # False where layers draw at random, so that the best of them is kept

    @classmethod
    def of(cls, model) -> Algorithm:
        """The algorithm with the parameters of an estimator."""
        return cls(**{field.name: getattr(model, field.name) for field in fields(cls) if field.default is MISSING})

    @abstractmethod
    def row(self, points: Points, C: np.ndarray) -> rows.Configuration:
        """The row of Table 1, with a gap large enough for the points and the first centres."""

    @abstractmethod
    def compiled(self, points: Points, C: np.ndarray) -> Step:
        """The compiled engine, for given points and first centres."""

    def circuit(self, points: Points, C: np.ndarray) -> Step:
        """The other engine: one layer of the transformer itself."""
        dtype = torch.float32 if points.X.dtype == np.float32 else torch.float64
        net = kmeans_transformer(points.shape[1], len(C), self.row(points, C), n_layers=1, dtype=dtype)
        X, w = torch.from_numpy(points.X), torch.from_numpy(points.w) if len(points.w) else None

        def step(C):
            layer = net.trace(X, torch.from_numpy(C), w)[0]
            return layer.labels.numpy().astype(np.int32), self.after(layer, points, C)

        return step

    def after(self, layer: Iteration, points: Points, C: np.ndarray) -> np.ndarray:
        """The centres after a layer; a subclass may move those of empty clusters."""
        return layer.centers.numpy()

    def prepared(self, points: Points, C: np.ndarray, rng: np.random.RandomState) -> Algorithm:
        """The algorithm with the settings that depend on the points, the first centres and the random state."""
        return self

    @property
    def in_blocks(self) -> bool:
        """Whether the compiled engine can work on blocks of rows, without the rows themselves."""
        return False

    @property
    def geometry(self) -> Euclidean:
        """Where the transformer's points and centres live."""
        return Spherical() if self.spherical else ATTENTIONS[self.attention]()


@dataclass(frozen=True)
class Lloyd(Algorithm):
    """Lloyd's algorithm; at finite gamma every hard-max is a softmax, for which there is no compiled form."""

    empty_cluster: str

    def row(self, points, C):
        return rows.lloyd(float(self.gamma), self.geometry)

    def compiled(self, points, C):
        if math.isfinite(self.gamma):
            return self.circuit(points, C)
        return lambda C: lloyd_step(points, C, EMPTY[self.empty_cluster])

    def after(self, layer, points, C):
        new = layer.centers.numpy()
        empty = np.flatnonzero(layer.assignment.numpy()[points.weights > 0].max(0) == 0)
        if len(empty) and self.empty_cluster != "mean":  # which is what the circuit does by itself
            new[empty] = EMPTY[self.empty_cluster](points, C, layer.labels.numpy().astype(np.int32), empty)
        return new

    @property
    def in_blocks(self):
        return math.isinf(self.gamma)


@dataclass(frozen=True)
class SphericalLloyd(Lloyd):
    """Spherical k-means: rows and centres of length one."""

    spherical = True


@dataclass(frozen=True)
class Soft(Algorithm):
    """Soft k-means: every row shares its mass between the centres by softmax."""

    def prepared(self, points, C, rng):
        return replace(self, gamma=finite_gamma(self.gamma, points, C))

    def row(self, points, C):
        return rows.soft(self.gamma, self.geometry)

    def compiled(self, points, C):
        return lambda C: soft_step(points, C, self.gamma)


@dataclass(frozen=True)
class Trimmed(Algorithm):
    """Trimmed k-means: the norm-max at a finite gamma, a percentile of the distances at infinity."""

    percentile: float

    def row(self, points, C):
        delta = 64 * reach(points, C)
        if math.isinf(self.gamma):
            return rows.trimmed_by_percentile(self.percentile, self.geometry, delta=delta)
        return rows.trimmed(self.gamma, self.geometry, delta=delta + 64 / self.gamma)

    def compiled(self, points, C):
        percentile = math.isinf(self.gamma)
        weigh = PercentileCut(self.percentile, 2 * reach(points, C)) if percentile else NormMax(math.inf, self.gamma)
        return lambda C: weighed_step(points, C, weigh)


@dataclass(frozen=True)
class Robust(Algorithm):
    """Robust k-means: the members of a cluster weigh less the farther they are."""

    weighting: str
    n_nearest: float

    def prepared(self, points, C, rng):
        return replace(self, gamma=finite_gamma(self.gamma, points, C))

    def row(self, points, C):
        return rows.robust(self.weigh, self.geometry, delta=2 * reach(points, C) + 200 / self.gamma)

    def compiled(self, points, C):
        return lambda C: weighed_step(points, C, self.weigh)

    @property
    def weigh(self) -> Normaliser:
        """How a cluster weighs its members."""
        if self.weighting == "topk":
            return TopKSoftmax(self.n_nearest, self.gamma)
        return Softmax(self.gamma) if self.weighting == "softmax" else Sparsemax(self.gamma)


@dataclass(frozen=True)
class Medoids(Algorithm):
    """Randomised k-medoids: every centre is a row, drawn by Gumbel numbers."""

    gap: float
    seed: int = 0

    converges = False

    def prepared(self, points, C, rng):
        return replace(self, seed=int(rng.randint(2**31 - 1)))

    def row(self, points, C):
        return rows.medoids(self.generator(), self.geometry, delta=float(self.gap))

    def compiled(self, points, C):
        generator = self.generator()
        return lambda C: medoid_step(points, C, float(self.gap), generator)

    def generator(self) -> torch.Generator:
        """The Gumbel numbers of a run, from their beginning."""
        return torch.Generator().manual_seed(self.seed)


ALGORITHMS: dict[str, type[Algorithm]] = {
    "lloyd": Lloyd,
    "soft": Soft,
    "spherical": SphericalLloyd,
    "trimmed": Trimmed,
    "robust": Robust,
    "medoids": Medoids,
}


def finite_gamma(gamma: float, points: Points, C: np.ndarray) -> float:
    """A finite gamma, or 1 / (2 s^2): s^2 is the mean squared distance to the nearest first centre, per coordinate."""
    if math.isfinite(gamma):
        return float(gamma)
    r = -points.similarity_to_own(C, points.assign(C).labels)
    variance = float(points.weights @ r / points.weights.sum() / points.shape[1])
    return 1 / (2 * variance) if variance > 0 else 1.0


def reach(points: Points, C: np.ndarray) -> float:
    """A bound on the squared distances between the data, the first centres, and the means of the data."""
    low, high = points.extremes()
    low, high = np.minimum(low, C.min(0)), np.maximum(high, C.max(0))
    return float(((high - low) ** 2).sum()) + np.finfo(np.float64).tiny
