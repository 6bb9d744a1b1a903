"""The decoder normalisers that Clarkson adds: from a cluster's row of scores to weights of its points."""

from __future__ import annotations

import torch
from torch import Tensor

from measureflow.attention import Hardmax, Normaliser, TopK
from measureflow.attention.normalisers import ones_if_none
from measureflow.measures import checks


class RoundedHardmax(Normaliser):
    r"""Hardmax of scores rounded to half the digits, :math:`\sigma_\infty(\mathrm{round}(s/\sqrt\epsilon))`.

    The decoder compares shares 1, 1/2, 1/3, ..., 0 of points. In exact arithmetic equal shares are equal; in
    floating point the encoder's self-attention, which resets the share of a point that occurs m times by
    averaging m copies of it, leaves 1e-16 behind, and a bare Hardmax would take that for a difference and
    drop every other point of the cluster. Shares differ by at least 1/(k(k+1)), far above the grid.

    >>> RoundedHardmax()(torch.tensor([[1.0, 1.0 - 1e-6, 0.5]]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """

    differentiable = False

    def forward(self, scores: Tensor, weights: Tensor | None = None) -> Tensor:
        return Hardmax()(torch.round(scores / torch.finfo(scores.dtype).eps ** 0.5), weights)


class PercentileCut(Normaliser):
    r"""The average of the nearest ``percent`` % of a cluster [Clarkson 2025, Algorithm 4].

    The members of the cluster are the keys whose score is within ``within`` of the best: a gap in the scores
    sets the other points far below. With r the squared distance (minus the score), W the mass of the members
    and :math:`\rho = \min\{r : \mathrm{mass}(r_i \le r) \ge W\,\mathrm{percent}/100\}`, the members with
    :math:`r_i \le \rho` share by mass. Line 7 keeps distances *at most* rho, so percent = 0 keeps the
    nearest.

    >>> PercentileCut(50, within=10.0)(torch.tensor([[-1.0, -2.0, -4.0, -5.0, -99.0]]))
    tensor([[0.5000, 0.5000, 0.0000, 0.0000, 0.0000]])
    """

    differentiable = False
    shift_invariant = True

    def __init__(self, percent: float, within: float):
        super().__init__()
        if not 0 <= percent <= 100:
            raise ValueError(f"percent must lie in [0, 100], got {percent}")
        self.percent, self.within = float(percent), checks.positive("within", within)

    def forward(self, scores: Tensor, weights: Tensor | None = None) -> Tensor:
        w = ones_if_none(scores, weights)
        seen = torch.where(w > 0, scores, -torch.inf)
        w = w * (seen >= seen.amax(-1, keepdim=True) - self.within)
        ordered, order = torch.where(w > 0, scores, -torch.inf).sort(-1, descending=True)
        wanted = w.sum(-1, keepdim=True) * (self.percent / 100 - 1e-9)  # 1e-9: 30 % of 10 points are 3, not 4
        reached = (w.gather(-1, order).cumsum(-1) < wanted).sum(-1, keepdim=True)
        edge = ordered.gather(-1, reached) - 1e-11 * self.within  # equal distances stay equal under rounding
        kept = w * (scores >= edge)
        return kept / kept.sum(-1, keepdim=True)

    def extra_repr(self) -> str:
        return f"percent={self.percent:g}, within={self.within:g}"


class TopKSoftmax(Normaliser):
    r"""Softmax over the best mass ``n_nearest`` alone, the top-k attention that [Clarkson 2025, A.5.1] names.

    .. math:: z_j \propto t_j\, e^{\gamma s_j}, \qquad t = \mathrm{TopK}(s, w)

    A cluster smaller than ``n_nearest`` uses all it has: points beyond a gap get weight zero from the
    exponential.

    >>> TopKSoftmax(2)(torch.tensor([[0.0, 0.0, -5.0]]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """

    differentiable = False

    def __init__(self, n_nearest: float, gamma: float = 1.0):
        super().__init__()
        self.n_nearest, self.gamma = checks.positive("n_nearest", n_nearest), checks.positive("gamma", gamma)

    def forward(self, scores: Tensor, weights: Tensor | None = None) -> Tensor:
        w = ones_if_none(scores, weights)
        mass = min(self.n_nearest, float(w.sum(-1).min()))
        seen = torch.where(w > 0, scores, -torch.inf)
        z = TopK(mass)(seen, w) * torch.exp(self.gamma * (scores - seen.amax(-1, keepdim=True))).clamp_max(1)
        return z / z.sum(-1, keepdim=True)

    def extra_repr(self) -> str:
        return f"n_nearest={self.n_nearest:g}, gamma={self.gamma:g}"


def kept_percentage(squared_distances: Tensor, gamma: float, weights: Tensor | None = None) -> float:
    r"""The percentage of a cluster that norm-max at alpha = inf keeps [Clarkson 2025, (30)].

    Its threshold solves :math:`\sum_i w_i (\rho - r_i)_+ = 1/\gamma` for the squared distances r, so a point
    stays while the others lie closer by 1/gamma in total: gamma acts on the **sum** over the cluster, and the
    same gamma trims a large cluster more than a small one.

    >>> kept_percentage(torch.tensor([0.0, 1.0, 2.0, 9.0]), gamma=1 / 4)
    75.0
    """
    r = checks.points("squared_distances", torch.as_tensor(squared_distances)[None])[0]
    w = torch.ones_like(r) if weights is None else checks.weights("weights", weights, r[:, None])
    ordered, order = r.sort()
    w = w[order]
    below = w.cumsum(0) * ordered - (w * ordered).cumsum(0)  # sum_i w_i (r_m - r_i)_+ at r_m
    kept = w[below * checks.positive("gamma", gamma) < 1].sum()
    return float(100 * kept / w.sum())
