"""Random Gaussian mixtures with their true parameters [Zimin 2025, D.2]; draws come from an explicit generator."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from measureflow.measures import checks
from measureflow.measures.decibels import from_decibels
from measureflow.measures.empirical import Empirical


class Law(Protocol):
    """A distribution of numbers: ``law(size, generator)`` draws a vector of them."""

    def __call__(self, size: int, generator: torch.Generator) -> Tensor: ...


@dataclass(frozen=True)
class Fixed:
    """Always the same value."""

    value: float

    def __call__(self, size: int, generator: torch.Generator) -> Tensor:
        return torch.full((size,), float(self.value))


@dataclass(frozen=True)
class Between:
    """A number uniform on [low, high]."""

    low: float
    high: float

    def __post_init__(self):
        _ordered(self.low, self.high)

    def __call__(self, size: int, generator: torch.Generator) -> Tensor:
        return self.low + (self.high - self.low) * torch.rand(size, generator=generator)


@dataclass(frozen=True)
class WholeBetween:
    """A whole number uniform on {low, ..., high}."""

    low: int
    high: int

    def __post_init__(self):
        _ordered(self.low, self.high)

    def __call__(self, size: int, generator: torch.Generator) -> Tensor:
        return torch.randint(self.low, self.high + 1, (size,), generator=generator)


@dataclass(frozen=True)
class TruncatedPoisson:
    """A Poisson number of the given mean, restricted to {low, ..., high}."""

    mean: float
    low: int
    high: int

    def __post_init__(self):
        _ordered(self.low, self.high)

    def __call__(self, size: int, generator: torch.Generator) -> Tensor:
        counts = torch.arange(self.low, self.high + 1, dtype=torch.float64)
        log_p = counts * math.log(self.mean) - torch.lgamma(counts + 1)
        cumulative = torch.softmax(log_p, 0).cumsum(0)
        u = torch.rand(size, generator=generator, dtype=torch.float64)
        return self.low + torch.searchsorted(cumulative, u).clamp_max(len(counts) - 1)


def _ordered(low: float, high: float) -> None:
    if low > high:
        raise ValueError(f"low must not exceed high, got low={low} and high={high}")


@dataclass(frozen=True, eq=False)
class Mixtures:
    r"""A batch of samples :math:`x_j = \mu_{i_j} + \sigma \xi_j` with their parameters, padded by mass zero."""

    points: Tensor  # (B, n, d)
    labels: Tensor  # (B, n)
    centers: Tensor  # (B, C, d)
    proportions: Tensor  # (B, C), zero where there is no component
    noise_variance: Tensor  # (B,)
    snr_db: Tensor  # (B,)

    @property
    def mixing(self) -> Empirical:
        r"""The empirical mixing measure :math:`\sum_i \frac{\#\{j: i_j = i\}}{n} \delta_{\mu_i}`, the target."""
        ones = torch.ones_like(self.labels, dtype=self.points.dtype)
        counts = torch.zeros_like(self.proportions).scatter_add_(1, self.labels, ones)
        return Empirical.trusted(self.centers, counts / self.labels.shape[1])

    @property
    def n_components(self) -> Tensor:
        """How many components each mixture has, (B,)."""
        return (self.proportions > 0).sum(-1)


def signal_to_noise(centers: Tensor, proportions: Tensor, noise_variance: Tensor) -> Tensor:
    r""":math:`\mathrm{SNR} = \sum_i p_i |\mu_i - \bar\mu|^2 / (d \sigma^2)` [Zimin 2025, appendix B], shape (B,).

    >>> signal_to_noise(torch.tensor([[[1.0], [-1.0]]]), torch.tensor([[0.5, 0.5]]), torch.tensor([0.1]))
    tensor([10.])
    """
    return _scatter(centers, proportions) / (centers.shape[-1] * noise_variance)


def _scatter(centers: Tensor, proportions: Tensor) -> Tensor:
    mean = (proportions[..., None] * centers).sum(-2, keepdim=True)
    return (proportions * (centers - mean).square().sum(-1)).sum(-1)


@dataclass(frozen=True)
class MixturePrior:
    r"""Random mixtures of spherical Gaussians with one noise level [Zimin 2025, D.2].

    The number of components and the SNR in dB follow the given laws, centres are :math:`N(0, I_d)`, proportions
    Dirichlet(1, ..., 1), and the noise is set so that the SNR is what was drawn. With a single component no noise
    gives a positive SNR: its noise is set as if centres had variance one, and its ``snr_db`` is minus infinity.

    >>> prior = MixturePrior(d=2, components=WholeBetween(2, 20), snr_db=Between(3, 15))
    >>> batch = prior.sample(batch=3, n=100, generator=torch.Generator().manual_seed(0))
    >>> batch.points.shape, batch.mixing
    (torch.Size([3, 100, 2]), Empirical(3 of n=..., d=2))
    """

    d: int = 2
    components: Law = field(default_factory=lambda: WholeBetween(2, 20))
    snr_db: Law = field(default_factory=lambda: Between(3.0, 15.0))

    def __post_init__(self):
        checks.whole("d", self.d)

    def sample(self, batch: int, n: int, generator: torch.Generator) -> Mixtures:
        """``batch`` mixtures of ``n`` points each."""
        checks.whole("batch", batch)
        checks.whole("n", n)
        counts = self.components(batch, generator).long()
        snr_db = self.snr_db(batch, generator).float()
        centers = torch.randn(batch, int(counts.max()), self.d, generator=generator)
        proportions = _dirichlet(counts, generator)
        scatter = torch.where(counts > 1, _scatter(centers, proportions) / self.d, 1.0)
        variance = scatter / from_decibels(snr_db)
        labels = _categorical(proportions, n, generator)
        noise = torch.randn(batch, n, self.d, generator=generator)
        points = centers.gather(1, labels[..., None].expand(-1, -1, self.d)) + variance.sqrt()[:, None, None] * noise
        return Mixtures(points, labels, centers, proportions, variance, torch.where(counts > 1, snr_db, -math.inf))


def _dirichlet(counts: Tensor, generator: torch.Generator) -> Tensor:
    """Dirichlet(1, ..., 1) proportions of the first ``counts`` components of each row: normalised exponentials."""
    size = (len(counts), int(counts.max()))
    waits = torch.empty(size).exponential_(generator=generator)
    waits = waits * (torch.arange(size[1]) < counts[:, None])
    return waits / waits.sum(-1, keepdim=True)


def _categorical(proportions: Tensor, n: int, generator: torch.Generator) -> Tensor:
    cumulative = proportions.cumsum(-1)
    u = torch.rand(len(proportions), n, generator=generator) * cumulative[:, -1:]
    last = (proportions > 0).sum(-1, keepdim=True) - 1  # components come first, so this is the last one
    return torch.minimum(torch.searchsorted(cumulative, u, right=True), last)


def paper_test_prior(snr_db: float) -> MixturePrior:
    """The test sets of [Zimin 2025, E.1]: d = 2, Poisson(5) components restricted to 3..7, one SNR (15, 10 or 5 dB)."""
    return MixturePrior(d=2, components=TruncatedPoisson(5.0, 3, 7), snr_db=Fixed(snr_db))
