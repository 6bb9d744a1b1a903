"""The threshold of a row of scores, which Sparsemax, NormMax and TopK each compute."""

from __future__ import annotations

import torch
from torch import Tensor

MAX_STEPS = 100  # Newton's method below needs about five; this only bounds a broken input


def norm_threshold(logits: Tensor, weights: Tensor | None, q: float) -> Tensor:
    r"""The tau with :math:`\|(s - \tau)_+\|_{q,w} = (\sum_j w_j (s_j - \tau)_+^q)^{1/q} = 1`, of shape (\*b, n, 1).

    The left side is convex and decreasing in tau, so Newton's method started below the root climbs to it and
    never passes it. The last step is taken with the graph on, which gives tau its exact derivative.
    """
    with torch.no_grad():
        tau = _climb(logits, weights, q)
    if not (torch.is_grad_enabled() and (logits.requires_grad or (weights is not None and weights.requires_grad))):
        return tau
    above = (logits - tau).clamp_min(0)
    slope = _sum(weights, power(above.detach(), q - 1)) * q
    return tau + (_sum(weights, power(above, q)) - 1) / slope.detach()


def _climb(logits: Tensor, weights: Tensor | None, q: float) -> Tensor:
    """Newton's method on the norm itself, in one buffer and without masks: memory traffic is all its cost."""
    tau, rounding = _start(logits, weights, q), 4 * torch.finfo(logits.dtype).eps
    above = torch.empty_like(logits)
    for _ in range(MAX_STEPS):
        torch.sub(logits, tau, out=above).clamp_min_(0)
        if q == 1:
            step = (_sum(weights, above) - 1) / _sum(weights, above.sign_())
        else:
            less = power(above, q - 1)
            slope = _sum(weights, less)
            norm = _sum(weights, above.mul_(less))
            step = (norm.pow(1 / q) - 1) * norm.pow(1 - 1 / q) / slope
        tau = tau + step.clamp_min(0)
        if not (step > rounding * tau.abs().clamp_min(1)).any():
            break
    return tau


def _start(logits: Tensor, weights: Tensor | None, q: float) -> Tensor:
    """A point below the root: there the best key alone already has norm one."""
    if weights is None:
        return logits.amax(-1, keepdim=True) - 1
    seen = torch.where(weights > 0, logits, -torch.inf)
    best, key = seen.max(-1, keepdim=True)
    mass = weights.expand_as(logits).gather(-1, key)
    return best - mass.pow(-1 / q)


def _sum(weights: Tensor | None, values: Tensor) -> Tensor:
    if weights is None:
        return values.sum(-1, keepdim=True)
    w = torch.atleast_2d(weights)
    return values @ w.mT if w.shape[-2] == 1 else (w * values).sum(-1, keepdim=True)


def power(above: Tensor, exponent: float) -> Tensor:
    """Powers of what is above a threshold, zero for what is not, by a cheaper operation where there is one."""
    if exponent == 0:
        return above.sign()
    if exponent == 1:
        return above
    if exponent == 2:
        return above.square()
    if exponent > 1 or not above.requires_grad:
        return above.pow(exponent)
    kept = above > 0  # a small power is steep at zero, where an infinite slope times nothing would be NaN
    return torch.where(kept, torch.where(kept, above, 1.0).pow(exponent), 0.0)


def mass_threshold(scores: Tensor, weights: Tensor, k: float) -> Tensor:
    """The score at which the best keys first reach mass k, of shape (*b, n, 1)."""
    if (weights.sum(-1) < k * (1 - 1e-6)).any():
        total = float(weights.sum(-1).min())
        raise ValueError(
            f"k={k:g} asks for more mass than the keys have ({total:g}); on a probability measure k is a fraction "
            "of the mass, for k of n points give the measure weights of one"
        )
    ordered, order = scores.sort(-1, descending=True)
    filled = weights.gather(-1, order).cumsum(-1)
    enough = filled[..., -1:].clamp_max(k) * (1 - 16 * torch.finfo(filled.dtype).eps)  # sums of masses round
    return ordered.gather(-1, (filled < enough).sum(-1, keepdim=True))
