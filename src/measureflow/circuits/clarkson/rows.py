"""The rows of Clarkson's Table 1, as data: which normaliser sits in which attention, in which geometry.

Every function returns a `Configuration`; those of the starred rows take any geometry. ``delta`` is the gap of
A.4 and A.5: a point outside a cluster has its score lowered by 2 delta. A "large" one should exceed
64 times the largest squared distance in the data (and 800/gamma), so that points of a smaller share of a
cluster stay out of it; each factor of ten costs one digit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from measureflow.attention import (
    GumbelSoftmax,
    Hardmax,
    Linear,
    Normaliser,
    NormMax,
    Softmax,
    Sparsemax,
)
from measureflow.circuits.clarkson.geometry import Euclidean, Spherical, ZeroSumSpherical
from measureflow.circuits.clarkson.selections import PercentileCut, RoundedHardmax, TopKSoftmax
from measureflow.measures import checks

LARGE = 1e4

ABBREVIATIONS = {
    Hardmax: "LSMA",
    RoundedHardmax: "LSMA",
    Softmax: "SMA",
    Linear: "LinA",
    NormMax: "NMA",
    PercentileCut: "percentile",
    Sparsemax: "SSMA",
    TopKSoftmax: "SSMA",
    GumbelSoftmax: "GSMA",
}


@dataclass(frozen=True)
class Configuration:
    """What distinguishes one row of Table 1 from another.

    ``assign`` is the normaliser of Enc-CA, ``update`` that of Dec-CA, ``reset`` that of both self-attentions.
    With ``delta`` None the decoder compares assignments alone; a number lets it see distances too, lowered by
    2 delta outside the cluster. ``two_steps`` writes those scores into the stream first, as A.5.1 does.
    """

    algorithm: str
    assign: Normaliser
    update: Normaliser
    geometry: Euclidean
    reset: Normaliser
    delta: float | None = None
    two_steps: bool = False

    @property
    def components(self) -> dict[str, str]:
        """The row as printed: Enc-SA, Enc-CA, Dec-SA, Dec-CA, Norm, NLT."""
        place = self.geometry.symbol
        seen = "⟨·⟩" if self.delta is None or self.two_steps else place
        short = {name: ABBREVIATIONS[type(getattr(self, name))] for name in ("reset", "assign", "update")}
        return {
            "Enc-SA": f"{place}-{short['reset']}",
            "Enc-CA": f"{place}-{short['assign']}" + (" then ⟨·⟩-identity" if self.two_steps else ""),
            "Dec-SA": f"⟨·⟩-{short['reset']}",
            "Dec-CA": f"{seen}-{short['update']}",
            "Norm": getattr(getattr(self.geometry, "normalisation", None), "__name__", "-"),
            "NLT": "✓" if self.geometry.place != ("point",) else "-",
        }


def _sharp(gamma: float) -> Normaliser:
    return Hardmax() if math.isinf(gamma) else Softmax(gamma)


def lloyd(gamma: float = math.inf, geometry: Euclidean | None = None) -> Configuration:
    """Lloyd's algorithm [Theorems 1 and 3]; at finite gamma all four limiting softmaxes become softmaxes."""
    update = RoundedHardmax() if math.isinf(gamma) else Softmax(gamma)
    return Configuration("Lloyd", _sharp(gamma), update, geometry or Euclidean(), _sharp(gamma))


def spherical(gamma: float = math.inf, zero_sum: bool = False) -> Configuration:
    """Spherical k-means with RMSNorm, or with LayerNorm for points of zero-sum coordinates [Theorem 4]."""
    row = lloyd(gamma, ZeroSumSpherical() if zero_sum else Spherical())
    return Configuration("spherical k-means", row.assign, row.update, row.geometry, row.reset)


def soft(gamma: float = 1.0, geometry: Euclidean | None = None) -> Configuration:
    """Soft k-means: softmax in Enc-CA, linear attention in Dec-CA [Theorem 2]."""
    return Configuration("soft k-means", Softmax(gamma), Linear(), geometry or Euclidean(), Hardmax())


def _with_distances(algorithm, update, geometry, delta, two_steps=False) -> Configuration:
    delta = checks.positive("delta", delta)
    return Configuration(algorithm, Hardmax(), update, geometry or Euclidean(), Hardmax(), delta, two_steps)


def trimmed(
    gamma: float = 1.0, geometry: Euclidean | None = None, *, alpha: float = math.inf, delta: float = LARGE
) -> Configuration:
    """Trimmed k-means by norm-max attention, which picks its own threshold from gamma [A.4]."""
    return _with_distances("trimmed k-means", NormMax(alpha, gamma), geometry, delta)


def trimmed_by_percentile(
    percent: float = 90.0, geometry: Euclidean | None = None, *, delta: float = LARGE
) -> Configuration:
    """Trimmed k-means with the percentile of Algorithm 4 as threshold."""
    return _with_distances("trimmed k-means (percentile)", PercentileCut(percent, delta / 64), geometry, delta)


def robust(
    weigh: Normaliser | None = None,
    geometry: Euclidean | None = None,
    *,
    delta: float = LARGE,
    two_steps: bool = False,
) -> Configuration:
    """Robust k-means: members weighed by Softmax, Sparsemax or TopKSoftmax of their scores [A.5.1]."""
    return _with_distances("robust k-means", weigh or Sparsemax(), geometry, delta, two_steps)


def medoids(
    generator: torch.Generator,
    geometry: Euclidean | None = None,
    *,
    delta: float = 1.0,
    temperature: float = 0.0,
) -> Configuration:
    """Randomised k-medoids: each centre becomes a point drawn by Gumbel-softmax attention [A.5.2]."""
    draw = GumbelSoftmax(temperature, generator=generator)
    return _with_distances("k-medoids", draw, geometry, delta)
