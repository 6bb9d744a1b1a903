r"""How two posteriors become one: the Gaussians' with the probability that they describe the rows, else the shapes'.

Either the rows are a mixture of Gaussians in one round noise, with probability :math:`\rho`, and then the Gaussians are
right; or they are not, and then the flow of shapes knows more. By the law of total probability,

.. math:: P = \rho\, P^{\text{Gaussian}} + (1 - \rho)\, \sigma(g(\operatorname{logit} P^{\text{shape}}) + c \log n),

    p(K) = \rho\, p^{\text{Gaussian}}(K) + (1 - \rho)\, q(K), \qquad
    q(K) \propto p^{\text{shape}}(K)^{\alpha}\, e^{\gamma\, 1[K = K_\text{cut}]}

where the cut is the shapes' own partition, g rises from one logit of `SAID` to the next, and n counts the rows in units
of two hundred. :math:`\rho` is what a small network says of facts about the rows, :math:`\operatorname{logit} \rho =
\beta + w \cdot z + v \cdot \tanh(W z + u)`, where z are the facts in units of their spread over many sets, cut off at
three. All numbers were fitted by likelihood to sets that the flows were not trained on
(`training.calibration.fit_average`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax

from measureflow.coclustering.facts import FACTS, log_rows
from measureflow.coclustering.posteriors import PairPosterior
from measureflow.models.checkpoints import read_json

SUREST = 1e-4  # no posterior of a pair is nearer to zero or one than this before it is put right
SAID = logit(np.array([SUREST, 0.02, 0.1, 0.5, 0.9, 0.98, 1 - SUREST]))  # logits of pairs that are put right one by one
SCALARS = ("bias", "rows_shift", "count_exponent", "cut_bonus")
HIDDEN = 16  # units of the network that reads the facts
BEYOND = 3.0  # spreads from the mean: facts that are farther off say no more than those there
LEAST = 1e-4  # added to each probability of a number of clusters before its logarithm is taken


@dataclass(frozen=True, eq=False)
class Average:
    """The numbers that weigh two posteriors."""

    means: np.ndarray  # (F,) of the facts ...
    spreads: np.ndarray  # (F,) ... and their standard deviations, over the sets of the fit
    hidden: np.ndarray  # (H, F): W of the network that reads the facts in these units ...
    hidden_bias: np.ndarray  # (H,) ... u ...
    hidden_weights: np.ndarray  # (H,) ... v ...
    weights: np.ndarray  # (F,) ... and w
    true_logits: np.ndarray  # (len(SAID),): what the shapes should have said of pairs where they said `SAID`
    bias: float
    rows_shift: float  # c
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
        n, m = len(FACTS), HIDDEN
        wanted = {"means": (n,), "spreads": (n,), "hidden": (m, n), "hidden_bias": (m,), "hidden_weights": (m,)}
        wanted |= {"weights": (n,), "true_logits": SAID.shape} | dict.fromkeys(SCALARS, ())
        found = {key: _numbers(table.get(key), shape, f"{key!r} of {name}") for key, shape in wanted.items()}
        if (found["spreads"] <= 0).any():
            raise ValueError(f"{name} must hold spreads above zero")
        if (np.diff(found["true_logits"]) < 0).any():
            raise ValueError(f"{name} must hold true_logits that rise")
        fields: dict[str, Any] = found | {key: float(found[key]) for key in SCALARS}
        return cls(**fields)

    def gaussian_weight(self, facts: np.ndarray) -> float:
        """The probability that rows with such facts are Gaussians in one round noise."""
        z = standardised(facts, self.means, self.spreads)
        hidden = np.tanh(self.hidden @ z + self.hidden_bias)
        return float(expit(self.bias + self.weights @ z + self.hidden_weights @ hidden))

    def of_shapes(self, shapes: PairPosterior, n_cut: int) -> PairPosterior:
        """The shapes' posterior as they should have said it, where ``n_cut`` clusters are in their own cut."""
        numbers = sorted({*shapes.n_clusters, n_cut})
        logits = count_facts(shapes, n_cut, numbers) @ [self.count_exponent, self.cut_bonus]
        said = logit(np.clip(shapes.together, SUREST, 1 - SUREST))
        P = expit(np.interp(said, SAID, self.true_logits) + self.rows_shift * log_rows(len(said)))
        return PairPosterior(P, dict(zip(numbers, softmax(logits).tolist(), strict=True)), shapes.outlying)


def standardised(facts: np.ndarray, means: np.ndarray, spreads: np.ndarray) -> np.ndarray:
    """Facts (..., F) in units of their spread, none beyond three of it.

    >>> standardised(np.array([4.0, 9.0]), np.zeros(2), np.array([2.0, 1.0]))
    array([2., 3.])
    """
    return np.clip((facts - means) / spreads, -BEYOND, BEYOND)


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


def _numbers(values: object, shape: tuple[int, ...], name: str) -> np.ndarray:
    """An array of this shape; a ValueError says that what has this name is not one of finite numbers."""
    rows = values if isinstance(values, list) else [values]
    lengths = {len(row) if isinstance(row, list) else 1 for row in rows}
    found = np.asarray(values) if len(lengths) == 1 else np.empty(0)
    if found.shape != shape or found.dtype.kind not in "fi" or not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite numbers, {' x '.join(map(str, shape)) or 'one'} of them")
    return found.astype(float)
