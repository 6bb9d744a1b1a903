"""The M step: distances to all centres, and the soft-max that turns them into labels."""

from __future__ import annotations

import torch

from measureflow.circuits.he.approximate import SigmoidSum
from measureflow.circuits.he.expectation import Layer, finished
from measureflow.circuits.he.layers import AttentionLayer, FullyConnected, Heads, gated, linear
from measureflow.circuits.he.sigmoid_heads import constant, sigmoid_heads
from measureflow.circuits.he.stream import Design


def maximisation(
    design: Design, first: list[Layer], distance: SigmoidSum, ceiling: float
) -> list[tuple[AttentionLayer, FullyConnected]]:
    """One iteration: the E step ``first``, then M steps 1-4; the first copy is made in the last E layer, as printed."""
    halves = _copies(design)
    attend, pieces = first[-1]
    layers = [*first[:-1], (attend, [*pieces, halves[0]])]
    layers += [(AttentionLayer(), [half]) for half in halves[1:]]
    layers += [_subtract(design, j) for j in range(design.k)]
    layers += [_measure(design, distance), _forget(design), _choose(design, ceiling)]
    return [finished(layer) for layer in layers]


def _copies(design: Design) -> list[tuple]:
    """Step 1: for each cluster the positive part of the points, then minus the negative part."""
    s, out = design.slots, []
    for j in range(design.k):
        out += [gated(s.take("x"), s.put(f"copy{j}")), gated(-s.take("x"), -s.put(f"copy{j}"))]
    return out


def _subtract(design: Design, j: int) -> Layer:
    """Step 2: every token picks the centre at token j, exactly (see `Design.weights`), and takes it from its copy j."""
    s = design.slots
    a, b = design.weights()
    code = s.take("p2", slice(j, j + 1))
    pick = Heads.one(design.logit * code, s.take("one"), a * s.take("mu"), -s.put(f"copy{j}"))
    rest = Heads.uniform(b * s.take("mu"), s.put(f"copy{j}"))
    return AttentionLayer(pick, rest), []


def _measure(design: Design, distance: SigmoidSum) -> Layer:
    """Step 3: the softened norm of each copy by M heads; the copies are removed."""
    s, d, groups, pieces = design.slots, distance.inner.shape[-1] - 1, [], []
    for j in range(design.k):
        norm = s.put("norm", slice(j, j + 1))
        groups.append(sigmoid_heads(design, distance, s.take(f"copy{j}", slice(d)), norm))
        pieces += [constant(design, distance.constant, norm), linear(s.take(f"copy{j}"), -s.put(f"copy{j}"))]
    return AttentionLayer(*groups), pieces


def _forget(design: Design) -> Layer:
    """Step 3, second layer: the old labels are removed."""
    s = design.slots
    return AttentionLayer(), [linear(s.take("p1"), -s.put("p1"))]


def _choose(design: Design, ceiling: float) -> Layer:
    r"""Step 4: :math:`p_1 = \mathrm{softmax}_{j \le k}(-\beta\, |X - \mu_j|)`, read off the codes of tokens 1..k.

    The paper omits two things. The least distance must have the largest logit, hence the minus. And the soft-max runs
    over all N tokens, of which those after k have no code and the logit zero: a shift by :math:`\beta` times the
    greatest distance ``ceiling``, plus C log N, lifts the k logits above them.
    """
    s, k = design.slots, design.k
    lift = (design.beta * ceiling + 2 * design.logit) * torch.ones(k, 1, dtype=torch.float64) @ s.take("one")
    code = s.take("p2", slice(k))
    head = Heads.one(code, lift - design.beta * s.take("norm"), code, s.put("p1"))
    return AttentionLayer(head), [linear(s.take("norm"), -s.put("norm"))]
