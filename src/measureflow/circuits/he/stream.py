"""The residual stream of He's construction: its slots, its conditions, and the matrix H that goes in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from measureflow.circuits.stream import Stream
from measureflow.measures import checks


class Slots(Stream):
    """The slots of a stream as thin matrices: ``take`` cuts a slot, or a part of it, out of a token; ``put`` writes it.

    >>> Slots(x=2, one=1).take("one")
    tensor([[0., 0., 1.]], dtype=torch.float64)
    """

    def take(self, name: str, part: slice = slice(None)) -> Tensor:
        """The matrix (w, D) that cuts coordinates out of a token."""
        return torch.eye(self.width, dtype=torch.float64)[self[name]][part]

    def put(self, name: str, part: slice = slice(None)) -> Tensor:
        """The matrix (D, w) that puts values into coordinates of a token."""
        return self.take(name, part).mT


@dataclass(frozen=True)
class Design:
    """What a construction is built for; the conditions of Theorems 3.1 and 3.2 are checked here."""

    k: int
    d: int
    N: int
    n_iterations: int
    radius: float
    margin: float
    sharpness: float
    smallest_share: float | None  # None: Theorem 3.1, which does not need it

    def __post_init__(self):
        for name in ("k", "d", "N", "n_iterations"):
            checks.whole(name, getattr(self, name))
        if self.k > self.N:
            raise ValueError(f"k={self.k} clusters need at least as many points, got N={self.N}")
        if self.k >= self.d:
            raise ValueError(
                f"Theorem 3.1 [He 2025] needs k < d, got k={self.k}, d={self.d}: its context rows p_2 tell k tokens "
                "apart by d coordinates; pad=True adds coordinates that are zero, which changes no distance"
            )
        if self.d >= self.N:
            raise ValueError(f"Theorem 3.1 [He 2025] assumes d = o(N), got d={self.d}, N={self.N}")
        for name in ("radius", "margin", "sharpness"):
            checks.positive(name, getattr(self, name))
        share = self.smallest_share
        if share is not None and not 0 < share <= 1 / self.k:
            raise ValueError(f"smallest_share must lie in (0, 1/k], alpha in the paper's parameter space, got {share}")

    @property
    def beta(self) -> float:
        r"""The inverse temperature of M step 4, :math:`C \log N / \text{margin}`."""
        return self.logit / self.margin

    @property
    def logit(self) -> float:
        r"""The sharpness of the E step and of picking a token, :math:`C \log N`."""
        return self.sharpness * math.log(self.N)

    @cached_property
    def slots(self) -> Slots:
        """The rows of eq. (4), then room to work, zero between iterations."""
        k, d = self.k, self.d
        rows = {"x": d, "mu": d, "p1": k, "p2": d, "one": 1}
        work = {f"copy{j}": d for j in range(k)} | {"norm": k, "new": d}
        shares = {} if self.smallest_share is None else {"share": k, "own": k, "inverse": k, "scaled": k}
        return Slots(**rows, **work, **shares)

    def weights(self) -> tuple[float, float]:
        r"""Coefficients (a, b) with :math:`a\,\mathrm{softmax}(C \log N\, e_j) - b\, \mathbf 1/N = e_j`, exactly.

        The soft-max gives token j the mass :math:`e^L/(e^L + N - 1)` and each other :math:`1/(e^L + N - 1)`; a
        second, uniform head takes the others away. No large number is needed for a token to be picked.
        """
        extra = math.expm1(self.logit)
        return (extra + self.N) / extra, self.N / extra


def padded(name: str, points, d: int, width: int) -> Tensor:
    r"""Points (\*b, n, d) in float64, with width - d coordinates of zero after theirs; errors call them ``name``."""
    x = checks.points(name, points, torch.float64)
    if x.shape[-1] != d:
        raise ValueError(f"{name} have {x.shape[-1]} coordinates, the transformer was built for d={d}")
    return torch.cat([x, x.new_zeros(*x.shape[:-1], width - d)], -1)


def context(design: Design, x: Tensor, mu: Tensor) -> Tensor:
    r"""The matrix H of eq. (4), (\*b, N, D): points, first centres, first labels, codes, ones, zeros."""
    k, d, N = design.k, design.d, design.N
    if x.shape[-2] != N or mu.shape != (*x.shape[:-2], k, d):
        raise ValueError(
            f"the transformer was built for N={N} points and k={k} centres of the same batch, "
            f"got points {tuple(x.shape)} and centres {tuple(mu.shape)}"
        )
    reach = float((x - x.mean(-2, keepdim=True)).norm(dim=-1).max())
    if reach > design.radius * (1 + 1e-9):
        raise ValueError(
            f"a point lies {reach:.3g} from the mean, the transformer was built for radius={design.radius:g}: the "
            "error of Theorem 3.1 grows with the norms of the centres, so build with this radius or scale the points"
        )
    p1 = torch.nn.functional.one_hot(torch.cdist(x, mu).argmin(-1), k).to(x)
    _check_shares(design, p1)
    h = x.new_zeros(*x.shape[:-1], design.slots.width)
    place = design.slots
    h[..., place["x"]] = x
    h[..., :k, place["mu"]] = mu
    h[..., place["p1"]] = p1
    h[..., :d, place["p2"]] = torch.eye(d, dtype=x.dtype)
    h[..., place["one"]] = 1.0
    return h


def _check_shares(design: Design, p1: Tensor) -> None:
    if design.smallest_share is None:
        return
    shares = p1.mean(-2)
    few = float(shares[shares > 0].min())
    if few < design.smallest_share:
        raise ValueError(
            f"a first cluster holds a share {few:.3g} of the points, less than smallest_share="
            f"{design.smallest_share:g}: Theorem 3.2 approximates 1/share only above alpha"
        )
