"""A sum of sigmoids as soft-max heads: the step from Lemma A.1 to Lemma A.2."""

from __future__ import annotations

import math

from torch import Tensor

from measureflow.circuits.he.approximate import SigmoidSum
from measureflow.circuits.he.layers import Heads
from measureflow.circuits.he.stream import Design


def sigmoid_heads(design: Design, g: SigmoidSum, read: Tensor, write: Tensor) -> Heads:
    r"""M heads that add :math:`g(\mathrm{read}\, h) - a_0` to the coordinate ``write`` of every token.

    Token 1, known by its code p_2, gets the logit :math:`\ell = v \cdot (x, 1) + \log(N - 1)` and all others zero,
    so its share is :math:`e^\ell / (e^\ell + N - 1) = \mathrm{Sigmoid}(v \cdot (x, 1))`, exactly. (Lemma A.2 prints
    log d; the soft-max runs over the N tokens.)
    """
    s, M = design.slots, g.n_heads
    first = s.take("p2", slice(1))  # (1, D): one at token 1, zero elsewhere
    logits = g.inner[:, :-1] @ read + (g.inner[:, -1:] + math.log(design.N - 1)) * s.take("one")
    return Heads(
        first.expand(M, -1, -1),
        logits[:, None, :],
        first.expand(M, -1, -1),
        g.outer[:, None, None] * write,
    )


def constant(design: Design, value: float, write: Tensor) -> tuple[Tensor, Tensor]:
    """The fully connected piece that adds ``value`` to the coordinate ``write`` of every token."""
    return design.slots.take("one"), value * write
