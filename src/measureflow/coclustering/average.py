r"""How two opinions become one, weighed by what facts about the rows say.

Either the rows are a mixture of Gaussians in one round noise, with probability :math:`\rho`, and then the Gaussians are
right; or they are not, and both opinions count. Of pairs of rows an average is taken then, and of the number of
clusters a product of powers:

.. math:: P = \rho\, P^{\text{Gaussian}} + (1 - \rho)
        \left[\pi\, \sigma(a\, l^{\text{Gaussian}}) + (1 - \pi)\, \sigma(b\, l^{\text{shape}} + c)\right]

.. math:: p(K) = \rho\, p^{\text{Gaussian}}(K) + (1 - \rho)\, q(K), \qquad
    q(K) \propto p^{\text{shape}}(K)^{\alpha}\, p^{\text{Gaussian}}(K)^{\beta}\, e^{\gamma\, 1[K = K_\text{cut}]}

where l are the logits of P, :math:`\rho` and :math:`\pi` are logistic functions of the facts, the cut is the shapes'
own partition, and the exponents are lines in pi. All these numbers were fitted by likelihood to sets that the flows
were not trained on (`training.fit_average`), :math:`\rho` as if half of all sets were round. Only the odds of a single
cluster are then raised, because such sets are rarer there than tables without clusters are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, softmax

from measureflow.coclustering.facts import FACTS
from measureflow.coclustering.opinions import GaussianOpinion, Opinion
from measureflow.models.checkpoints import read_json

SUREST = 1e-4  # no opinion of a pair is nearer to zero or one than this before its logit is scaled
SCALARS = ("bias", "round_bias", "shape_scale", "shape_shift", "gaussian_scale")
EXPONENTS = ("shapes", "Gaussians", "cut")  # of the number of clusters: constants, then slopes in pi
SINGLE_ODDS = 4.0  # of the sets of the fit one in eight is a single cluster, of tables one in three is supposed to be
LEAST = 1e-4  # added to each probability of a number of clusters before its logarithm is taken


class Averaged(NamedTuple):
    """One opinion of two."""

    opinion: Opinion
    p_round: float  # the probability that the rows are Gaussians in one round noise
    gaussian_weight: float  # of the Gaussians' opinion in it


@dataclass(frozen=True)
class Average:
    """The numbers that weigh two opinions."""

    weights: tuple[float, ...]  # of the facts, for pi
    bias: float
    round_weights: tuple[float, ...]  # of the facts, for rho
    round_bias: float
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
        lists = {"weights": len(FACTS), "round_weights": len(FACTS), "exponents": 2 * len(EXPONENTS)}
        wanted = lists | dict.fromkeys(SCALARS, 1)
        found = {name: np.ravel(table.get(name, ())) for name in wanted}
        if not all(_are_numbers(found[name], n) for name, n in wanted.items()):
            raise ValueError(f"{name} must hold finite numbers: " + ", ".join(f"{n} {w}" for w, n in wanted.items()))
        values: dict[str, Any] = {name: tuple(found[name].tolist()) for name in lists}
        values.update({name: float(found[name][0]) for name in SCALARS})
        return cls(**values)

    def of(self, shapes: Opinion, gaussians: GaussianOpinion, facts: np.ndarray, n_cut: int) -> Averaged:
        """One opinion of two, where ``n_cut`` clusters are in the shapes' own cut."""
        rho = float(expit(self.round_bias + np.dot(self.round_weights, facts)))
        pi = float(expit(self.bias + np.dot(self.weights, facts)))
        both = pi * self.of_gaussian_pairs(gaussians.together) + (1 - pi) * self.of_shape_pairs(shapes.together)
        numbers = sorted({1, *shapes.n_clusters, *gaussians.n_clusters, n_cut})
        logits = count_facts(shapes, gaussians, n_cut, numbers, pi) @ np.array(self.exponents)
        logits[numbers.index(1)] += np.log(SINGLE_ODDS)
        of_gaussians = np.array([gaussians.n_clusters.get(K, 0.0) for K in numbers])
        n_clusters = rho * of_gaussians + (1 - rho) * softmax(logits)
        opinion = Opinion(
            rho * gaussians.together + (1 - rho) * both,
            dict(zip(numbers, n_clusters.tolist(), strict=True)),
            (1 - rho) * shapes.outlying,  # Gaussians have no word for rows that belong to nothing
        )
        return Averaged(opinion, rho, rho + (1 - rho) * pi)

    def of_shape_pairs(self, P):
        """Probabilities of pairs as the shapes should have said them."""
        return expit(self.shape_scale * _logit(P) + self.shape_shift)

    def of_gaussian_pairs(self, P):
        """Probabilities of pairs as the Gaussians should have said them where rows are not round."""
        return expit(self.gaussian_scale * _logit(P))


def count_facts(shapes: Opinion, gaussians: Opinion, n_cut: int, numbers: list[int], pi: float) -> np.ndarray:
    """What is said of each number of clusters, (len(numbers), 6), in the order of `EXPONENTS`, then times pi."""
    said = [
        [np.log(shapes.n_clusters.get(K, 0.0) + LEAST), np.log(gaussians.n_clusters.get(K, 0.0) + LEAST), n_cut == K]
        for K in numbers
    ]
    return np.concatenate([said, pi * np.array(said)], 1)


def _are_numbers(values: np.ndarray, count: int) -> bool:
    return values.shape == (count,) and values.dtype.kind in "fi" and bool(np.isfinite(values).all())


def _logit(P):
    return logit(np.clip(P, SUREST, 1 - SUREST))
