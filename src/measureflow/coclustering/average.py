r"""How two opinions become one, weighed by how far facts about the rows speak for the Gaussians.

Of pairs of rows the average is taken, and of the number of clusters the product of powers:

.. math:: P = \pi\, P^{\text{Gaussian}} + (1 - \pi)\, P^{\text{shape}}, \qquad
    \operatorname{logit} \pi = b + \sum_f w_f f, \qquad
    p(K) \propto p^{\text{shape}}(K)^{\alpha}\, p^{\text{Gaussian}}(K)^{\beta}\, e^{\gamma\, 1[K = K_\text{cut}]}

Before they are averaged, both opinions of pairs are made as sure of themselves as they have reason to be: their logits
are scaled, and those of the shapes shifted. The cut is the shapes' own partition; the exponents are lines in pi. All
these numbers were fitted by likelihood to sets that the flows were not trained on (`training.fit_average`); only the
odds of a single cluster are then raised, because such sets are rarer there than tables without clusters are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import expit, logit, softmax
from scipy.stats import chi2

from measureflow.coclustering.opinions import Opinion
from measureflow.coclustering.partition import Partition
from measureflow.measures.partitions import expected_index
from measureflow.mixtures.clusters import GaussianClusters
from measureflow.models.checkpoints import read_json

SUREST = 1e-4  # no opinion of a pair is nearer to zero or one than this before its logit is scaled
FACTS = (
    "sure shapes",  # the expected index of the shapes' own partition, in their opinion
    "shapes of Gaussians",  # that of the Gaussians' partition, in the shapes' opinion
    "sure Gaussians",  # that of the Gaussians' partition, in their own opinion
    "misfit",  # how far the rows' distances to their centres are from those of Gaussians (Kolmogorov and Smirnov)
    "log rows",
    "log columns",
    "log clusters",  # that the Gaussians find
    "one cluster",  # its probability in the shapes' opinion
)

SCALARS = ("bias", "shape_scale", "shape_shift", "gaussian_scale")
EXPONENTS = ("shapes", "Gaussians", "cut")  # of the number of clusters: constants, then slopes in pi
SINGLE_ODDS = 4.0  # of the sets of the fit one in eight is a single cluster, of tables one in three is supposed to be
LEAST = 1e-4  # added to each probability of a number of clusters before its logarithm is taken


@dataclass(frozen=True)
class Average:
    """The numbers that weigh two opinions."""

    weights: tuple[float, ...]  # of the facts
    bias: float
    shape_scale: float
    shape_shift: float
    gaussian_scale: float
    exponents: tuple[float, ...]  # of the number of clusters, in the order of `EXPONENTS`

    @classmethod
    def read(cls, path: str | Path) -> Average:
        """The numbers in a file, which `training.fit_average` wrote."""
        return cls.from_table(read_json(path), Path(path).name)

    @classmethod
    def from_table(cls, table: dict, name: str = "the table") -> Average:
        """The numbers in a table; a ValueError says what is wrong with one that comes from a file of that name."""
        if table.get("facts") != list(FACTS):
            raise ValueError(f"{name} weighs other facts than {', '.join(FACTS)}")
        wanted = {"weights": len(FACTS), "exponents": 2 * len(EXPONENTS)} | dict.fromkeys(SCALARS, 1)
        found = {name: np.ravel(table.get(name, ())) for name in wanted}
        if not all(_are_numbers(found[name], n) for name, n in wanted.items()):
            raise ValueError(f"{name} must hold finite numbers: " + ", ".join(f"{n} {w}" for w, n in wanted.items()))
        weights, exponents = (tuple(found[name].tolist()) for name in ("weights", "exponents"))
        bias, shape_scale, shape_shift, gaussian_scale = (float(found[name][0]) for name in SCALARS)
        return cls(weights, bias, shape_scale, shape_shift, gaussian_scale, exponents)

    def of(self, shapes: Opinion, gaussians: Opinion, facts: np.ndarray, n_cut: int) -> tuple[Opinion, float]:
        """One opinion of two, and the weight of the Gaussians in it; ``n_cut`` clusters are in the shapes' own cut."""
        pi = float(expit(self.bias + np.dot(self.weights, facts)))
        P = pi * self.of_gaussian_pairs(gaussians.together) + (1 - pi) * self.of_shape_pairs(shapes.together)
        numbers = sorted({1, *shapes.n_clusters, *gaussians.n_clusters, n_cut})
        logits = count_facts(shapes, gaussians, n_cut, numbers, pi) @ np.array(self.exponents)
        logits[numbers.index(1)] += np.log(SINGLE_ODDS)
        n_clusters = dict(zip(numbers, softmax(logits).tolist(), strict=True))
        return Opinion(P, n_clusters, shapes.outlying), pi  # Gaussians have no word for rows that belong to nothing

    def of_shape_pairs(self, P):
        """Probabilities of pairs as the shapes should have said them."""
        return expit(self.shape_scale * _logit(P) + self.shape_shift)

    def of_gaussian_pairs(self, P):
        """Probabilities of pairs as the Gaussians should have said them."""
        return expit(self.gaussian_scale * _logit(P))


def count_facts(shapes: Opinion, gaussians: Opinion, n_cut: int, numbers: list[int], pi: float) -> np.ndarray:
    """What is said of each number of clusters, (len(numbers), 6), in the order of `EXPONENTS`, then times pi."""
    said = [
        [np.log(shapes.n_clusters.get(K, 0.0) + LEAST), np.log(gaussians.n_clusters.get(K, 0.0) + LEAST), n_cut == K]
        for K in numbers
    ]
    return np.concatenate([said, pi * np.array(said)], 1)


def facts(
    shapes: Opinion, gaussians: Opinion, cut: Partition, labels: np.ndarray, misfit: float, n_columns: int
) -> np.ndarray:
    """What speaks for the one opinion or the other, in the order of `FACTS`.

    The cut is the shapes' own partition, labels (n,) are those of the Gaussians.
    """
    n_clusters = int(labels.max()) + 1
    return np.array(
        [
            cut.expected_index,
            expected_index(shapes.together, labels, shapes.p_one),
            expected_index(gaussians.together, labels, float(n_clusters == 1)),
            misfit,
            np.log(len(labels) / 200),
            np.log(n_columns),
            np.log(n_clusters),
            shapes.p_one,
        ]
    )


def gaussian_misfit(clusters: GaussianClusters, X: np.ndarray) -> float:
    """The largest gap between the distribution of squared distances to the nearest centre and that of Gaussian rows."""
    points, mixture = clusters.frame.rows_inward(X), clusters.mixture
    if mixture.variance <= 0 or points.shape[1] == 0:
        return 1.0
    gaps = np.sort(chi2.cdf(mixture.squared_distances(points).min(1), points.shape[1]))
    return float(np.abs(gaps - (np.arange(len(gaps)) + 0.5) / len(gaps)).max())


def _are_numbers(values: np.ndarray, count: int) -> bool:
    return values.shape == (count,) and values.dtype.kind in "fi" and bool(np.isfinite(values).all())


def _logit(P):
    return logit(np.clip(P, SUREST, 1 - SUREST))
