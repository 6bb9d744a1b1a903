"""The labelled mixtures of He 2025, section 4: isotropic clusters at a given least distance from each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from measureflow.measures import checks


class LabelledSets(NamedTuple):
    """Clustering problems with their answers: points (B, N, d), labels (B, N), centres (B, k, d), variances (B,)."""

    points: Tensor
    labels: Tensor
    centers: Tensor
    variances: Tensor


@dataclass(frozen=True)
class HeMixtures:
    r"""Labelled mixtures, :math:`X_i = \mu_{z_i} + \omega_i`, :math:`\omega_i \sim N(0, \sigma^2 I)` [He 2025, 4].

    The paper states the least distance of two centres but not how the centres are drawn. Here they are a Gaussian
    draw of standard deviation ``spread``, scaled up where two are closer than ``minimum_distance`` (d_min):

    .. math:: \mu = s\, g, \quad g_j \sim N(0, I), \quad
        s = \max(\mathrm{spread},\ d_{\min} / \min_{i \ne j} |g_i - g_j|)

    ``imbalance`` = r gives the last two clusters r and 1 - r of a full cluster's points, the others all of them
    (Figure 2, second row); None keeps all clusters full.

    >>> mixtures = HeMixtures(n_classes=3, dimension=2, n_per_class=4, minimum_distance=30.0)
    >>> sets = mixtures.sample(2, torch.Generator().manual_seed(0))
    >>> sets.points.shape, round(float(torch.pdist(sets.centers[0]).min()), 4)
    (torch.Size([2, 12, 2]), 30.0)
    """

    n_classes: int = 4
    dimension: int = 10
    n_per_class: int = 50
    minimum_distance: float = 30.0
    variance: tuple[float, float] = (10.0, 40.0)
    imbalance: float | None = None
    spread: float = 3.0

    def __post_init__(self):
        for name in ("n_classes", "dimension", "n_per_class"):
            checks.whole(name, getattr(self, name))
        for name in ("minimum_distance", "spread"):
            checks.positive(name, getattr(self, name))
        low, high = self.variance
        if not 0 < low <= high < float("inf"):
            raise ValueError(f"variance must be a range 0 < low <= high, got {self.variance}")
        if self.imbalance is not None and (not 0 < self.imbalance < 1 or self.n_classes < 2):
            raise ValueError(f"imbalance must lie in (0, 1) and needs two classes, got {self.imbalance}")
        if min(self.sizes) < 1:
            raise ValueError(f"imbalance {self.imbalance} leaves a cluster empty: sizes {self.sizes}")

    @property
    def sizes(self) -> list[int]:
        """Points in each cluster.

        >>> HeMixtures(imbalance=0.2).sizes
        [50, 50, 10, 40]
        """
        full = [self.n_per_class] * self.n_classes
        if self.imbalance is None:
            return full
        small = round(self.n_per_class * self.imbalance)
        return [*full[:-2], small, self.n_per_class - small]

    @property
    def n_points(self) -> int:
        """Points in each set, N."""
        return sum(self.sizes)

    def sample(self, n_sets: int, generator: torch.Generator) -> LabelledSets:
        """``n_sets`` independent problems; the points of each are in random order."""
        centers = self._centers(n_sets, generator)
        low, high = self.variance
        variances = low + (high - low) * torch.rand(n_sets, generator=generator)
        labels = self._labels(n_sets, generator)
        noise = torch.randn(n_sets, self.n_points, self.dimension, generator=generator)
        at = centers.gather(1, labels[..., None].expand(-1, -1, self.dimension))
        return LabelledSets(at + variances.sqrt()[:, None, None] * noise, labels, centers, variances)

    def _centers(self, n_sets: int, generator: torch.Generator) -> Tensor:
        centers = torch.randn(n_sets, self.n_classes, self.dimension, generator=generator)
        if self.n_classes == 1:
            return self.spread * centers
        apart = (centers[:, :, None] - centers[:, None]).norm(dim=-1)
        apart = apart + torch.diag(torch.full((self.n_classes,), torch.inf))
        return centers * (self.minimum_distance / apart.amin((-2, -1))).clamp_min(self.spread)[:, None, None]

    def _labels(self, n_sets: int, generator: torch.Generator) -> Tensor:
        labels = torch.repeat_interleave(torch.arange(self.n_classes), torch.tensor(self.sizes))
        order = torch.rand(n_sets, self.n_points, generator=generator).argsort(-1)
        return labels[order]
