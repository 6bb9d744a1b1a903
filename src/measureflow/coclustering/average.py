r"""How two posteriors become one: the Gaussians' with the probability that they describe the rows, else the shapes'.

Either the rows are a mixture of Gaussians in one round noise, with probability :math:`\rho`, and then the Gaussians are
right; or they are not, and then the flow of shapes knows more. By the law of total probability,

.. math:: P = \rho\, P^{\text{Gaussian}} + (1 - \rho)\, \sigma(a\, \operatorname{logit} P^{\text{shape}} + b), \qquad
    p(K) = \rho\, p^{\text{Gaussian}}(K) + (1 - \rho)\, q(K), \qquad
    q(K) \propto p^{\text{shape}}(K)^{\alpha}\, e^{\gamma\, 1[K = K_\text{cut}]}

where the cut is the shapes' own partition. :math:`\rho` is a logistic function of facts about the rows and of the
products of any two, :math:`\operatorname{logit} \rho = \beta + w \cdot z + z \cdot Q z`, where z are the facts in
units of their spread over many sets, cut off at three. All numbers were fitted by likelihood to sets that the flows
were not trained on (`training.calibration.fit_average`), :math:`\rho` as if half of all sets were round.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, softmax

from measureflow.coclustering.facts import FACTS
from measureflow.coclustering.posteriors import PairPosterior
from measureflow.models.checkpoints import read_json

SUREST = 1e-4  # no posterior of a pair is nearer to zero or one than this before its logit is scaled
SCALARS = ("bias", "shape_scale", "shape_shift", "count_exponent", "cut_bonus")
BEYOND = 3.0  # spreads from the mean: facts that are farther off say no more than those there
LEAST = 1e-4  # added to each probability of a number of clusters before its logarithm is taken


@dataclass(frozen=True)
class Average:
    """The numbers that weigh two posteriors."""

    means: tuple[float, ...]  # of the facts ...
    spreads: tuple[float, ...]  # ... and their standard deviations, over the sets of the fit
    weights: tuple[float, ...]  # of the facts in these units, then of their products, for the logit of rho
    bias: float
    shape_scale: float
    shape_shift: float
    count_exponent: float  # alpha
    cut_bonus: float  # gamma

    @classmethod
    def read(cls, path: str | Path) -> Average:
        """The numbers in a file, which `training.calibration.fit_average` wrote."""
        return cls.from_table(read_json(path), Path(path).name)

    @classmethod
    def from_table(cls, table: dict, name: str = "the table") -> Average:
        """The numbers in a table; a ValueError says what is wrong with one that comes from a file of that name."""
        if table.get("facts") != list(FACTS):
            raise ValueError(f"{name} weighs other facts than {', '.join(FACTS)}")
        n = len(FACTS)
        wanted = {"means": n, "spreads": n, "weights": n + n * (n + 1) // 2} | dict.fromkeys(SCALARS, 1)
        found = {name: np.ravel(table.get(name, ())) for name in wanted}
        if not all(_are_numbers(found[name], n) for name, n in wanted.items()):
            raise ValueError(f"{name} must hold finite numbers: " + ", ".join(f"{n} {w}" for w, n in wanted.items()))
        if (found["spreads"] <= 0).any():
            raise ValueError(f"{name} must hold spreads above zero")
        means, spreads, weights = (tuple(found[name].tolist()) for name in ("means", "spreads", "weights"))
        return cls(means, spreads, weights, *(float(found[name][0]) for name in SCALARS))

    def gaussian_weight(self, facts: np.ndarray) -> float:
        """The probability that rows with such facts are Gaussians in one round noise."""
        return float(expit(self.bias + np.dot(self.weights, with_products(facts, self.means, self.spreads))))

    def of_shapes(self, shapes: PairPosterior, n_cut: int) -> PairPosterior:
        """The shapes' posterior as they should have said it, where ``n_cut`` clusters are in their own cut."""
        numbers = sorted({*shapes.n_clusters, n_cut})
        logits = count_facts(shapes, n_cut, numbers) @ [self.count_exponent, self.cut_bonus]
        P = expit(self.shape_scale * logit(np.clip(shapes.together, SUREST, 1 - SUREST)) + self.shape_shift)
        return PairPosterior(P, dict(zip(numbers, softmax(logits).tolist(), strict=True)), shapes.outlying)


def with_products(facts: np.ndarray, means: ArrayLike, spreads: ArrayLike) -> np.ndarray:
    """Facts (..., F) in units of their spread, none beyond three of it, then the products of any two of them.

    >>> with_products(np.array([4.0, 9.0]), [0.0, 0.0], [2.0, 1.0])
    array([2., 3., 4., 6., 9.])
    """
    z = np.clip((facts - np.asarray(means)) / np.asarray(spreads), -BEYOND, BEYOND)
    first, second = np.triu_indices(z.shape[-1])
    return np.concatenate([z, z[..., first] * z[..., second]], -1)


def count_facts(shapes: PairPosterior, n_cut: int, numbers: list[int]) -> np.ndarray:
    """What the shapes say of each number of clusters, (len(numbers), 2): its log-probability, and whether it is that of
    their own cut."""
    return np.array([[np.log(shapes.n_clusters.get(K, 0.0) + LEAST), float(n_cut == K)] for K in numbers])


def total(weight: float, gaussians: PairPosterior, shapes: PairPosterior) -> PairPosterior:
    """The posterior that is the Gaussians' with probability ``weight``, else the shapes'."""
    numbers = sorted({*gaussians.n_clusters, *shapes.n_clusters})
    mix = lambda a, b: weight * a + (1 - weight) * b  # noqa: E731
    return PairPosterior(
        mix(gaussians.together, shapes.together),
        {K: mix(gaussians.n_clusters.get(K, 0.0), shapes.n_clusters.get(K, 0.0)) for K in numbers},
        mix(gaussians.outlying, shapes.outlying),
    )


def _are_numbers(values: np.ndarray, count: int) -> bool:
    return values.shape == (count,) and values.dtype.kind in "fi" and bool(np.isfinite(values).all())
