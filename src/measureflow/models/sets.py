"""Sets of points in every form a caller may have: brought to (B, n, d) for a model, and its answer brought back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from measureflow.flows import Trajectory
from measureflow.measures import Empirical, checks


@dataclass(frozen=True)
class _Given:
    """The form in which points came."""

    points: Tensor  # (*b, n, d)
    measure: Empirical | None
    center: Tensor | None = None  # (*b, 1, d), of points in another dtype than the model's
    scale: Tensor | None = None  # (*b, 1, 1)


@dataclass(frozen=True)
class Sets:
    """What a model takes: points (B, n, d), an SNR in dB (B,) for each set, and how often points count, (B, n)."""

    points: Tensor
    snr_db: Tensor
    weights: Tensor | None = None
    given: _Given | None = None  # None where the points already had the form that the model takes

    def tokens(self, y: Tensor) -> Tensor | Empirical:
        """Tokens (B, n, d) in the form, the dtype and on the device of the points that were given."""
        if self.given is None:
            return y
        x, center, scale = self.given.points, self.given.center, self.given.scale
        y = y.to(x.device).reshape(x.shape)
        if center is not None and scale is not None:
            y = (center + scale * y.to(center.dtype)).to(x.dtype)
        return y if self.given.measure is None else self.given.measure.moved(y)

    def numbers(self, values: Tensor) -> Tensor:
        r"""Numbers for each set, (B, \*s), as (\*b, \*s)."""
        if self.given is None:
            return values
        x = self.given.points
        return values.to(x).reshape(x.shape[:-2] + values.shape[1:])

    def trajectory(self, path: Trajectory) -> Trajectory:
        """A trajectory of tokens (B, n, d), every state in the form that was given."""
        if self.given is None:
            return path
        times = [self.numbers(t) if isinstance(t, Tensor) and t.ndim else t for t in path.times]
        return Trajectory([self.tokens(state) for state in path], times)


def as_sets(points, snr_db, like: Tensor, weights=None) -> Sets:
    r"""Points (\*b, n, d), a tensor, an array or an `Empirical`, and an SNR for each set or one for all, as `Sets`.

    A model computes in the dtype and on the device of its weights, ``like``. Points in another dtype are first centred
    and scaled in their own dtype, so that no digits are lost to a far origin; the flow commutes with both. The answer
    has the dtype of the points and the precision of the model. A measure of mass one, a probability, counts as many
    points as have mass; any other counts its mass.

    >>> sets = as_sets(torch.zeros(10, 2, dtype=torch.float64), 5, like=torch.zeros(1))
    >>> sets.points.shape, sets.points.dtype, sets.snr_db
    (torch.Size([1, 10, 2]), torch.float32, tensor([5.]))
    """
    if _ready(points, snr_db, like, weights):
        return Sets(points, snr_db, weights)
    mu = points if isinstance(points, Empirical) else None
    x = checks.points("points", points if mu is None else mu.points)
    snr = checks.finite("snr_db", checks.as_floats("snr_db", snr_db)).to(like)
    if snr.shape != x.shape[:-2] and snr.numel() != 1:
        raise ValueError(
            f"snr_db must be one number, or one for each set, of shape {tuple(x.shape[:-2])} for points of shape "
            f"{tuple(x.shape)}, got {tuple(snr.shape)}"
        )
    if mu is not None and weights is not None:
        raise ValueError("weights must be left out for points that are an Empirical, which has its own")
    if mu is not None and not mu.uniform:
        weights = mu.weights * torch.where(torch.isclose(mu.mass, mu.mass.new_ones(())), _count(mu), 1)[..., None]
    given, n, d = _Given(x, mu), x.shape[-2], x.shape[-1]
    if weights is not None:
        weights = checks.weights("weights", weights, x).to(like).reshape(-1, n)
    if x.dtype != like.dtype:
        z = x if x.dtype == torch.float64 else x.float()
        center = z.detach().mean(-2, keepdim=True)
        scale = (z.detach() - center).abs().amax((-2, -1), keepdim=True)
        scale = torch.where(scale > 0, scale, 1.0)
        given, x = _Given(given.points, mu, center, scale), (z - center) / scale
    x = x.to(like).reshape(-1, n, d)
    return Sets(x, snr.expand(len(x)) if snr.numel() == 1 else snr.reshape(-1), weights, given)


def _ready(points, snr_db, like: Tensor, weights) -> bool:
    """Whether everything is already as the model takes it, so that nothing need be done."""
    given = (points, snr_db) if weights is None else (points, snr_db, weights)
    return (
        all(isinstance(t, Tensor) and t.dtype == like.dtype and t.device == like.device for t in given)
        and points.ndim == 3
        and snr_db.shape == points.shape[:1]
        and 0 not in points.shape
        and (weights is None or weights.shape == points.shape[:2])
    )


def _count(mu: Empirical) -> Tensor:
    """How many points have mass."""
    return (mu.weights > 0).sum(-1)
