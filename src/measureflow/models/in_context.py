"""He 2025, section 4: a small transformer that reads a set of points and names the cluster of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from measureflow.attention import (
    Attention,
    DotProduct,
    Field,
    Layers,
    Matrix,
    MultiHead,
    Normed,
    Softmax,
    TokenWise,
)
from measureflow.flows import integrate
from measureflow.measures import checks


@dataclass(frozen=True)
class InContextConfig:
    """The arguments of an `InContextClusterer`."""

    n_classes: int = 4
    dimension: int = 10
    n_layers: int = 3
    n_heads: int = 2
    width: int = 64
    averaged_heads: bool = False
    layer_norm: bool = True
    context: bool = False

    def __post_init__(self):
        for name in ("n_classes", "dimension", "n_layers", "n_heads", "width"):
            checks.whole(name, getattr(self, name))
        if self.width % self.n_heads and not self.averaged_heads:
            raise ValueError(f"width={self.width} must be a multiple of n_heads={self.n_heads} for heads to be joined")

    def __getitem__(self, name: str):
        """A setting by its name, as the reproductions of He 2025 read it."""
        return getattr(self, name)

    @property
    def n_inputs(self) -> int:
        """Coordinates of a token: the point and, with context, the rows P of eq. (4)."""
        return self.dimension + (2 * self.dimension + self.n_classes + 1 if self.context else 0)


class InContextClusterer(nn.Module):
    r"""Points (\*b, N, d) to logits (\*b, N, k), by layers of Definitions 2.1 and 2.3 [He 2025, 4].

    .. math:: h \leftarrow h + \Gamma(h), \qquad h \leftarrow h + W_2\, \mathrm{ReLU}(W_1 h)

    Each set is first centred and scaled to mean square one, so units do not matter. ``averaged_heads``
    takes the mean of full-width heads in place of joining thin ones (Figures 4 and 5). ``layer_norm`` puts a layer
    norm before each sub-layer; the paper does not say, and training is many times faster with it. With
    ``context`` the tokens also carry the rows P of eq. (4), made from first labels that the caller gives.

    >>> model = InContextClusterer(n_classes=3, dimension=2)
    >>> model(torch.randn(5, 30, 2)).shape
    torch.Size([5, 30, 3])
    """

    def __init__(
        self,
        n_classes: int = 4,
        dimension: int = 10,
        *,
        n_layers: int = 3,
        n_heads: int = 2,
        width: int = 64,
        averaged_heads: bool = False,
        layer_norm: bool = True,
        context: bool = False,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        self.config = c = InContextConfig(
            n_classes, dimension, n_layers, n_heads, width, averaged_heads, layer_norm, context
        )
        draw = Drawn(generator)
        self.embed, self.name = draw.linear(c.n_inputs, width), draw.linear(width, n_classes)
        self.layers = nn.ModuleList(
            TransformerLayer(width, n_heads, averaged_heads, layer_norm, draw) for _ in range(n_layers)
        )

    def forward(self, points: Tensor, start: Tensor | None = None) -> Tensor:
        r"""Logits (\*b, N, k); ``start`` holds first labels (\*b, N), for a model with ``context`` and only for one."""
        c = self.config
        if points.shape[-1] != c.dimension:
            raise ValueError(f"points have {points.shape[-1]} coordinates, the model takes {c.dimension}")
        if (start is None) == c.context:
            raise ValueError(f"start must be {'given' if c.context else 'left out'}: the model has context={c.context}")
        x = standardised(points)
        h = self.embed(x if start is None else torch.cat([x, context_rows(x, start, c.n_classes)], -1))
        steps = [field for layer in self.layers for field in cast(TransformerLayer, layer).steps()]
        return self.name(integrate(Layers(*steps), h, [1.0] * len(steps))[-1])

    @torch.no_grad()
    def labels(self, points, start: Tensor | None = None, *, turns: int = 1) -> Tensor:
        r"""The most likely cluster (\*b, N) of each point.

        The model labels a cluster by where it lies, and two clusters may get one label. A set that is rotated about its
        mean is the same problem, and may be labelled better: of ``turns`` rotations, the first being the identity,
        each set keeps the one whose labels have the largest mean log-probability.
        """
        checks.whole("turns", turns)
        x = checks.points("points", points, self.embed.weight.dtype).to(self.embed.weight.device)
        if x.shape[-2] < self.config.n_classes:
            raise ValueError(f"{self.config.n_classes} clusters need at least as many points, got {x.shape[-2]}")
        found = [torch.log_softmax(self(x @ turn, start), -1).max(-1) for turn in rotations(turns, x)]
        sure = torch.stack([best.values.mean(-1) for best in found]).argmax(0)
        names = torch.stack([best.indices for best in found])
        return names.gather(0, sure[None, ..., None].expand(1, *x.shape[:-1]))[0]


class TransformerLayer(nn.Module):
    """One attention and one fully connected sub-layer, each a step of Euler's method of size one."""

    def __init__(self, width: int, n_heads: int, averaged: bool, layer_norm: bool, draw: Drawn):
        super().__init__()
        e = width if averaged else width // n_heads
        score = DotProduct(draw(n_heads, e, width), draw(n_heads, e, width), learn=True)
        heads = Attention(score, Softmax(1 / math.sqrt(e)), Matrix(draw(n_heads, e, width), learn=True))
        if averaged:
            self.attention = MultiHead.averaged(heads)
        else:
            self.attention = MultiHead.concatenated(heads, draw(width, width), learn=True)
        self.connected = nn.Sequential(draw.linear(width, 4 * width), nn.ReLU(), draw.linear(4 * width, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) if layer_norm else nn.Identity() for _ in range(2))

    def steps(self) -> tuple[Field, Field]:
        """The velocities of the two sub-layers."""
        return Normed(self.attention, self.norms[0]), TokenWise(nn.Sequential(self.norms[1], self.connected))


class Drawn:
    """First weights, all from one generator; matrices of attention have variance 1/fan-in."""

    def __init__(self, generator: torch.Generator | None):
        self.generator = torch.Generator().manual_seed(0) if generator is None else generator

    def __call__(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator) / math.sqrt(shape[-1])

    def linear(self, fan_in: int, fan_out: int) -> nn.Linear:
        """A linear map with uniform weights of variance 1/(3 fan-in), torch's own choice, and no bias to begin with."""
        layer = nn.Linear(fan_in, fan_out)
        with torch.no_grad():
            layer.weight.uniform_(-1, 1, generator=self.generator).div_(math.sqrt(fan_in))
            layer.bias.zero_()
        return layer


def standardised(points: Tensor) -> Tensor:
    r"""Each set moved to mean zero and scaled to mean square one over all its coordinates."""
    x = points - points.mean(-2, keepdim=True)
    size = x.square().mean((-2, -1), keepdim=True).sqrt()
    return x / torch.where(size > 0, size, 1.0)


def rotations(count: int, x: Tensor) -> list[Tensor]:
    """The identity, and rotations or reflections (d, d) drawn from a fixed seed, the same for all sets."""
    d, generator = x.shape[-1], torch.Generator().manual_seed(0)
    others = [torch.linalg.qr(torch.randn(d, d, generator=generator)).Q for _ in range(count - 1)]
    return [torch.eye(d).to(x), *(other.to(x) for other in others)]


def context_rows(x: Tensor, start: Tensor, k: int) -> Tensor:
    r"""The rows P of eq. (4), from points (\*b, N, d) and first labels (\*b, N): centres, labels, codes, ones."""
    n, d = x.shape[-2:]
    if k > n:
        raise ValueError(f"k={k} clusters need at least as many points, got N={n}")
    p1 = one_hot(start, k).to(x)
    centers = p1.mT @ x / p1.sum(-2)[..., None].clamp_min(1)
    mu = torch.cat([centers, x.new_zeros(*x.shape[:-2], n - k, d)], -2)
    p2 = torch.eye(n, d, dtype=x.dtype, device=x.device).expand_as(x)
    return torch.cat([mu, p1, p2, torch.ones_like(x[..., :1])], -1)
