"""The flow-speed transformer of Zimin 2025, appendix C: a cloud in, its mixing measure out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from measureflow.attention import Attention, DotProduct, Field, Layers, Matrix, MultiHead, Softmax
from measureflow.flows import Trajectory, integrate
from measureflow.measures import Empirical, checks
from measureflow.measures.decibels import from_decibels
from measureflow.models.flow_speed import SCHEDULES, FlowSpeed
from measureflow.models.sets import Sets, as_sets


@dataclass(frozen=True)
class FlowTransformerConfig:
    """The shape of a `FlowTransformer`; the defaults are the paper's baseline."""

    d: int = 2  # dimension of the data
    width: int = 128  # latent dimension: 4 heads of 32
    n_heads: int = 4
    hidden: int = 256  # width of the fully connected layer, which the paper leaves open
    n_layers: int = 16
    distinct: bool = False  # a block of its own for each layer, instead of one shared by all
    schedule: str = "uniform"  # how training spends the flow; any other may be asked for at run time
    max_flow: float = 16.0  # the flow F predicts lies between 0 and this
    snr_low: float = 3.0  # range of SNR in dB over which F varies
    snr_high: float = 15.0
    rescale_output: bool = False  # multiply by sqrt(SNR / (1 + SNR)), which the printed output lacks

    def __post_init__(self):
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule must be one of {', '.join(SCHEDULES)}, got {self.schedule!r}")
        if self.width < self.d or self.width % self.n_heads:
            raise ValueError(f"width must be at least d={self.d} and a multiple of n_heads={self.n_heads}")


class Block(Field):
    r"""One transformer block as a velocity: :math:`a + \mathrm{FFN}(x + a)` with :math:`a = \mathrm{MultiHead}(x)`.

    Both parts see layer-normalised tokens; x + Block(x) is an ordinary pre-norm transformer layer.
    """

    def __init__(self, width: int, n_heads: int, hidden: int):
        super().__init__()
        k = width // n_heads
        Q, K, V, W = (_heads(n_heads, k, width) for _ in range(4))
        heads = Attention(DotProduct(Q, K, learn=True), Softmax(gamma=1 / math.sqrt(k)), Matrix(V, learn=True))
        self.attention = MultiHead(heads, W.mT.contiguous(), learn=True)
        self.before_attention, self.before_ffn = nn.LayerNorm(width), nn.LayerNorm(width)
        self.ffn = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    @property
    def blind_to_total_mass(self) -> bool:
        return self.attention.blind_to_total_mass

    def attend(self, x: Tensor, y: Tensor, w: Tensor | None, u: Tensor | None = None) -> Tensor:
        queries = self.before_attention(x)
        keys = queries if y is x else self.before_attention(y)
        a = self.attention.attend(queries, keys, w, u)
        return a + self.ffn(self.before_ffn(x + a))


def _heads(n_heads: int, k: int, width: int) -> Tensor:
    """Matrices (H, k, width) of the size a linear layer starts with."""
    return torch.empty(n_heads, k, width).uniform_(-1, 1) / math.sqrt(width)


class FlowTransformer(nn.Module):
    r"""Flow a cloud for the time :math:`T = F(\mathrm{SNR})` along :math:`\dot x = \mathrm{Block}(x)` in latent space.

    Points are centred and scaled to unit variance per dimension, embedded by an orthonormal P, moved by L
    blocks of step T/L (or the other schedules), normalised again, and read back by P with a learned part for what
    the flow put outside its range (C.1 to C.6). Without flow it is the identity. The output shifts and scales with
    the input.

    >>> model = FlowTransformer(FlowTransformerConfig(width=8, n_heads=2, hidden=8, n_layers=2))
    >>> points = torch.randn(3, 10, 2, generator=torch.Generator().manual_seed(0))
    >>> model(points, torch.tensor([5.0, 10.0, 15.0])).shape
    torch.Size([3, 10, 2])
    """

    def __init__(self, config: FlowTransformerConfig | None = None):
        super().__init__()
        self.config = c = config or FlowTransformerConfig()
        count = c.n_layers if c.distinct else 1
        self.blocks = nn.ModuleList(Block(c.width, c.n_heads, c.hidden) for _ in range(count))
        self.speed = FlowSpeed(c.snr_low, c.snr_high, c.max_flow)
        self.encoder = nn.Parameter(torch.randn(c.width, c.d) / math.sqrt(c.width))
        self.outside = nn.Parameter(torch.zeros(c.d, c.width))  # Q of (5): starts by ignoring the null space

    def forward(self, points: Tensor | Empirical, snr_db: Tensor | float, **options):
        """Output tokens (B, n, d) for points (B, n, d) and their SNR in dB (B,); options as in `latent_flow`.

        Points may also be one set (n, d), an `Empirical` or an array, in any float dtype, and one SNR may serve all of
        them: `as_sets` says how. The answer has the form and the dtype of the points.
        """
        sets = self._sets(points, snr_db)
        z = self.latent_flow(sets.points, sets.snr_db, **options)[-1]
        return sets.tokens(self.decode(z, sets.points, sets.snr_db))

    def latent_flow(
        self, points: Tensor, snr_db: Tensor, *, schedule: str | None = None, n_layers: int | None = None
    ) -> Trajectory:
        """The latent tokens (B, n, width) at every layer."""
        self._check(points, snr_db)
        mean, scale = _moments(points, self.config.d)
        x = ((points - mean) / scale) @ self.projection().mT
        steps = list(self.steps(snr_db, schedule or self.config.schedule, n_layers or self.config.n_layers))
        blocks = [cast(Block, block) for block in self.blocks]
        return integrate(Layers(*blocks) if self.config.distinct else blocks[0], x, steps)

    def flow(self, points: Tensor | Empirical, snr_db: Tensor | float, **options) -> Trajectory:
        """The tokens as they would be read out at every layer, in the form of the points."""
        sets = self._sets(points, snr_db)
        path = self.latent_flow(sets.points, sets.snr_db, **options)
        return sets.trajectory(path.mapped(lambda z: self.decode(z, sets.points, sets.snr_db)))

    def decode(self, z: Tensor, points: Tensor, snr_db: Tensor) -> Tensor:
        """Latent tokens, normalised (C.3), read back into the space of the data (C.5)."""
        P = self.projection()
        mean, scale = _moments(z, self.config.d)
        z = (z - mean) / scale
        main = z @ P
        x = main + (z - main @ P.mT) @ self.outside.mT
        if self.config.rescale_output:
            snr = from_decibels(snr_db)
            x = x * (snr / (1 + snr)).sqrt()[:, None, None]
        mean, scale = _moments(points, self.config.d)
        return mean + scale * x

    def steps(self, snr_db: Tensor, schedule: str, n_layers: int):
        """The step sizes of a schedule at these SNRs."""
        if self.config.distinct and n_layers != self.config.n_layers:
            raise ValueError(f"n_layers must be {self.config.n_layers}: this model has a block for each layer")
        return self.speed.steps(snr_db, schedule, n_layers)

    def projection(self) -> Tensor:
        r"""The embedding P^T (width, d) with orthonormal columns, made so by a QR decomposition (C.2)."""
        Q, R = torch.linalg.qr(self.encoder)
        return Q * R.diagonal().sign()

    def _sets(self, points, snr_db) -> Sets:
        sets = as_sets(points, snr_db, self.encoder)
        if sets.weights is not None:
            raise ValueError("points must have equal masses: a FlowTransformer counts all of them alike")
        return sets

    def _check(self, points: Tensor, snr_db: Tensor) -> None:
        if points.ndim != 3 or points.shape[-1] != self.config.d:
            raise ValueError(f"points must have shape (B, n, {self.config.d}), got {tuple(points.shape)}")
        if snr_db.shape != points.shape[:1]:
            raise ValueError(f"snr_db must have shape ({points.shape[0]},), got {tuple(snr_db.shape)}")
        checks.finite("points", points)
        checks.finite("snr_db", snr_db)


def _moments(x: Tensor, d: int) -> tuple[Tensor, Tensor]:
    r"""Mean and scale over the tokens, :math:`\sigma^2 = \frac{1}{nd}\sum_j |x_j - \mu|^2` (C.1)."""
    mean = x.mean(-2, keepdim=True)
    variance = (x - mean).square().sum((-2, -1), keepdim=True) / (x.shape[-2] * d)
    return mean, variance.clamp_min(1e-24).sqrt()
