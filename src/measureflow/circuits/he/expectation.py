"""The E step: the mean of cluster j at token j, in one layer (Theorem 3.1) or in five (Theorem 3.2)."""

from __future__ import annotations

import torch
from torch import Tensor

from measureflow.attention import Identity
from measureflow.circuits.he.approximate import SigmoidSum
from measureflow.circuits.he.layers import AttentionLayer, FullyConnected, Heads, gated, linear
from measureflow.circuits.he.sigmoid_heads import sigmoid_heads
from measureflow.circuits.he.stream import Design

Layer = tuple[AttentionLayer, list]  # attention, and the pieces of the fully connected layer that follows


def centered(design: Design) -> Heads:
    """The head that takes the grand mean from every point; the print, without it, is right for centred data only."""
    s = design.slots
    return Heads.uniform(s.take("x"), -s.put("x"))


def expectation(design: Design) -> list[Layer]:
    r"""Theorem 3.1: token j <= k attends to the points labelled j, by :math:`C \log N\, p_{1,i} \cdot p_{2,j}`.

    The second head subtracts (printed: adds) the grand mean, which clears the tokens after k and centres the
    means at tokens 1..k, as the third head centres the points. Then the new centres replace the old.
    """
    s, k = design.slots, design.k
    mean = Heads.one(design.logit * s.take("p1"), s.take("p2", slice(k)), s.take("x"), s.put("new"))
    grand = Heads.uniform(s.take("x"), -s.put("new"))
    return [(AttentionLayer(mean, grand, centered(design)), [replace(design, "mu", "new")])]


def expectation_plus(design: Design, inverse: SigmoidSum) -> list[Layer]:
    """Theorem 3.2: shares, each at its own token, their inverses, labels over shares, un-normalised sums of points."""
    return [
        _count(design),
        _own(design),
        _invert(design, inverse),
        _scale(design),
        _sum(design),
    ]


def replace(design: Design, name: str, by: str) -> tuple[Tensor, Tensor]:
    """The piece that replaces the content of slot ``name`` by that of slot ``by``."""
    s = design.slots
    old, new = s.take(name), s.take(by)
    return linear(torch.cat([old, new]), torch.cat([-s.put(name), s.put(name) - s.put(by)], -1))


def _count(design: Design) -> Layer:
    """Layer 1: the mean of the labels is the share of each cluster, at every token (printed: 1/D for 1/N)."""
    s = design.slots
    return AttentionLayer(Heads.uniform(s.take("p1"), s.put("share")), centered(design)), []


def _own(design: Design) -> Layer:
    r"""Layer 2: keep share j at token j alone, :math:`\mathrm{ReLU}(\mathrm{share}_j + p_{2,j} - 1)`.

    The printed heads average values that are the same at every token, so each pair cancels to zero; the gate
    needs only that shares lie in [0, 1].
    """
    s, k = design.slots, design.k
    own = s.take("share") + s.take("p2", slice(k)) - s.take("one")
    return AttentionLayer(), [gated(own, s.put("own")), linear(s.take("share"), -s.put("share"))]


def _invert(design: Design, inverse: SigmoidSum) -> Layer:
    """Layer 3: 1/share by M heads each (Lemma A.1), kept at its own token by the same gate."""
    s, k = design.slots, design.k
    groups = [
        sigmoid_heads(design, inverse, s.take("own", slice(j, j + 1)), s.put("inverse", slice(j, j + 1)))
        for j in range(k)
    ]
    grid = torch.linspace(0, 1, 1001, dtype=torch.float64)[:, None]
    ceiling = 2 * float(inverse(grid).abs().max())
    value = s.take("inverse") + inverse.constant * s.take("one")
    gate = value + ceiling * (s.take("p2", slice(k)) - s.take("one"))
    pieces = [
        gated(gate, s.put("inverse")),
        linear(s.take("inverse"), -s.put("inverse")),
        linear(s.take("own"), -s.put("own")),
    ]
    return AttentionLayer(*groups), pieces


def _scale(design: Design) -> Layer:
    """Layer 4: each point picks the inverse share of its cluster from that cluster's token; it replaces the label."""
    s, k = design.slots, design.k
    a, b = design.weights()
    pick = Heads.one(design.logit * s.take("p2", slice(k)), s.take("p1"), a * s.take("inverse"), s.put("scaled"))
    rest = Heads.uniform(b * s.take("inverse"), -s.put("scaled"))
    forget = linear(s.take("inverse"), -s.put("inverse"))
    return AttentionLayer(pick, rest), [replace(design, "p1", "scaled"), forget]


def _sum(design: Design) -> Layer:
    r"""Layer 5, un-normalised: :math:`\sum_i \frac1N X_i\, (p'_i \cdot p_{2,j})` is the mean of cluster j, at token j.

    A second head removes the old centres, :math:`-\sum_i \mu_i\, (p_{2,i} \cdot p_{2,j})` (printed: Q and K read the
    centres themselves, which gives a cubic of them).
    """
    s, k = design.slots, design.k
    new = Heads.one(s.take("p1"), s.take("p2", slice(k)), s.take("x") / design.N, s.put("mu"))
    old = Heads.one(s.take("p2"), s.take("p2"), s.take("mu"), -s.put("mu"))
    return AttentionLayer(new, old, normaliser=Identity()), []


def finished(layer: Layer) -> tuple[AttentionLayer, FullyConnected]:
    """The layer with its fully connected pieces laid side by side."""
    return layer[0], FullyConnected(*layer[1])
