r"""From a row of scores to the masses a query draws from the keys: z = N(s, w).

A normaliser sees the scores (\*b, n, m), queries on axis -2 and keys on axis -1, and the masses ``weights`` of
the keys, broadcastable to the scores; ``None`` means that every key has mass one. **Mass 2 is a key twice**, in
all of them: what is normalised is the density z_j / w_j with respect to the measure, never the list of keys.

For Softmax and its relatives log w_j is added to the logits, and the total mass cancels. For Sparsemax, NormMax
and TopK it does not: their thresholds are in units of mass. On a counting measure (masses of one) they are the
textbook maps of a list of scores; on a probability measure use n * gamma to get the textbook map with gamma, and
TopK's k is a fraction of the mass. The un-normalised maps simply weigh, z_j = w_j f(s_j), so that a
probability measure gives an average and a counting measure a sum.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from measureflow.attention.thresholds import mass_threshold, norm_threshold, power
from measureflow.measures import checks


class Normaliser(nn.Module):
    """What every normaliser declares about itself; the laws in tests/laws read these attributes."""

    sums_to_one = True  # each row of the result has total mass one
    shift_invariant = True  # adding a constant to a row of scores changes nothing
    non_negative = True
    differentiable = True  # has a useful gradient in the scores
    couples_queries = False  # needs all rows at once, so rows cannot be done in blocks

    def forward(self, scores: Tensor, weights: Tensor | None = None) -> Tensor:
        r"""Masses z of the same shape as ``scores``."""
        raise NotImplementedError


def log_weights(scores: Tensor, weights: Tensor | None) -> Tensor:
    """log w, minus infinity where w = 0, with a gradient of zero there."""
    if weights is None:
        return scores.new_zeros(())
    positive = weights > 0
    return torch.where(positive, torch.where(positive, weights, 1.0).log(), -math.inf)


def ones_if_none(scores: Tensor, weights: Tensor | None) -> Tensor:
    """The masses, ones where none are given."""
    return scores.new_ones(()).expand_as(scores) if weights is None else weights.expand_as(scores)


class Softmax(Normaliser):
    r""":math:`z_j = w_j e^{\gamma s_j} / \sum_l w_l e^{\gamma s_l}`.

    >>> Softmax(gamma=2.0)(torch.tensor([[0.0, 0.0]]), torch.tensor([1.0, 3.0]))
    tensor([[0.2500, 0.7500]])
    """

    def __init__(self, gamma: float = 1.0):
        super().__init__()
        self.gamma = checks.positive("gamma", gamma)
        if math.isinf(gamma):
            raise ValueError("gamma must be finite; the limit gamma = inf is Hardmax()")

    def forward(self, scores: Tensor, weights: Tensor | None = None) -> Tensor:
        return torch.softmax(self.gamma * scores + log_weights(scores, weights), -1)

    def extra_repr(self) -> str:
        return f"gamma={self.gamma:g}"


class Hardmax(Normaliser):
    r"""The limit of Softmax as gamma grows: the best keys share by mass, ties averaged exactly.

    .. math:: z_j = w_j\, 1[j \in M] / \textstyle\sum_{l \in M} w_l, \qquad M = \arg\max_{l: w_l > 0} s_l

    A row of equal scores is spread over all keys [Clarkson 2025, sigma_inf].

    >>> Hardmax()(torch.tensor([[1.0, 0.0, 1.0, -2.0]]))
    tensor([[0.5000, 0.0000, 0.5000, 0.0000]])
    """

    differentiable = False

    def forward(self, scores: Tensor, weights: Tensor | None = None) -> Tensor:
        if weights is None:
            best = (scores == scores.amax(-1, keepdim=True)).to(scores.dtype)
        else:
            seen = torch.where(weights > 0, scores, -math.inf)
            best = weights * (seen == seen.amax(-1, keepdim=True))
        return best / best.sum(-1, keepdim=True)


class Linear(Normaliser):
    r""":math:`z_j = w_j s_j / \sum_l w_l s_l`, the linear attention of [Clarkson 2025]; gamma would cancel.

    A row of scores that sums to zero has no such form and is spread evenly, as Hardmax spreads a row of zeros.

    >>> Linear()(torch.tensor([[1.0, 3.0]]))
    tensor([[0.2500, 0.7500]])
    """

    shift_invariant = False
    non_negative = False

    def forward(self, scores: Tensor, weights: Tensor | None = None) -> Tensor:
        w = ones_if_none(scores, weights)
        total = (w * scores).sum(-1, keepdim=True)
        empty = total == 0
        return torch.where(empty, w / w.sum(-1, keepdim=True), w * scores / torch.where(empty, 1.0, total))


class Sparsemax(Normaliser):
    r"""The projection onto the simplex, :math:`z_j = w_j (\gamma s_j - \tau)_+` with :math:`\sum_j z_j = 1`.

    >>> Sparsemax()(torch.tensor([[1.0, 0.5, -1.0]]))
    tensor([[0.7500, 0.2500, 0.0000]])
    """

    def __init__(self, gamma: float = 1.0):
        super().__init__()
        self.gamma = checks.positive("gamma", gamma)

    def forward(self, scores: Tensor, weights: Tensor | None = None) -> Tensor:
        logits = self.gamma * scores
        z = (logits - norm_threshold(logits, weights, q=1.0)).clamp_min(0)
        return z if weights is None else weights * z

    def extra_repr(self) -> str:
        return f"gamma={self.gamma:g}"


class NormMax(Normaliser):
    r"""The arg-max softened by a norm, :math:`\arg\max_z\, \langle \gamma s, z\rangle - \|z/w\|_{\alpha, w}`.

    With q = alpha / (alpha - 1): :math:`z_j \propto w_j (\gamma s_j - \tau)_+^{q-1}` where
    :math:`\sum_j w_j (\gamma s_j - \tau)_+^q = 1`. At alpha = inf all keys above the threshold share equally, and
    the threshold is that of Sparsemax [Clarkson 2025, (30)].

    >>> NormMax(alpha=math.inf)(torch.tensor([[1.0, 0.5, -1.0]]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """

    def __init__(self, alpha: float = math.inf, gamma: float = 1.0):
        super().__init__()
        if not checks.number("alpha", alpha) > 1:
            raise ValueError(f"alpha must be greater than 1 (inf allowed), got {alpha}")
        self.alpha, self.gamma = float(alpha), checks.positive("gamma", gamma)
        self.differentiable = math.isfinite(alpha)

    def forward(self, scores: Tensor, weights: Tensor | None = None) -> Tensor:
        logits = self.gamma * scores
        q = 1.0 if math.isinf(self.alpha) else self.alpha / (self.alpha - 1)
        p = power((logits - norm_threshold(logits, weights, q)).clamp_min(0), q - 1)
        z = p if weights is None else weights * p
        return z / z.sum(-1, keepdim=True)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha:g}, gamma={self.gamma:g}"


class TopK(Normaliser):
    r"""The average over the best mass k: :math:`\arg\max_z \langle s, z\rangle` with :math:`0 \le z_j \le w_j/k`.

    On a counting measure these are the k best keys; on a probability measure the best fraction k of the mass.
    Keys tied at the threshold share what is left.

    >>> TopK(2)(torch.tensor([[3.0, 1.0, 2.0, 1.0]]))
    tensor([[0.5000, 0.0000, 0.5000, 0.0000]])
    >>> TopK(0.5)(torch.tensor([[3.0, 1.0]]), torch.tensor([0.25, 0.75]))
    tensor([[0.5000, 0.5000]])
    """

    differentiable = False

    def __init__(self, k: float):
        super().__init__()
        self.k = checks.positive("k", k)

    def forward(self, scores: Tensor, weights: Tensor | None = None) -> Tensor:
        w = ones_if_none(scores, weights)
        threshold = mass_threshold(scores, w, self.k)
        above, tied = w * (scores > threshold), w * (scores == threshold)
        left = (self.k - above.sum(-1, keepdim=True)).clamp_min(0)
        return (above + tied * left / tied.sum(-1, keepdim=True)) / self.k

    def extra_repr(self) -> str:
        return f"k={self.k:g}"


class GumbelSoftmax(Normaliser):
    r"""A random key, or a soft version of one: softmax of :math:`(s_j + \log w_j + g_j)/T`, g standard Gumbel.

    At temperature zero it draws key j with probability proportional to :math:`w_j e^{s_j}`. The noise comes from
    an explicit generator, so a seed fixes the draw.

    >>> GumbelSoftmax(temperature=0.0, generator=torch.Generator().manual_seed(0))(torch.zeros(1, 3))
    tensor([[0., 1., 0.]])
    """

    differentiable = False  # its values are random: the laws of exact values do not apply

    def __init__(self, temperature: float = 1.0, *, generator: torch.Generator):
        super().__init__()
        if not 0 <= checks.number("temperature", temperature) < math.inf:
            raise ValueError(f"temperature must be zero or positive and finite, got {temperature}")
        self.temperature = float(temperature)
        self.generator = checks.instance("generator", generator, torch.Generator)

    def forward(self, scores: Tensor, weights: Tensor | None = None) -> Tensor:
        u = torch.rand(scores.shape, generator=self.generator, dtype=scores.dtype, device=scores.device)
        tiny = torch.finfo(scores.dtype).tiny
        waits = -torch.log(u.clamp_min(tiny))  # standard exponential; minus its log is standard Gumbel
        gumbel = -torch.log(waits.clamp_min(tiny))
        logits = scores + log_weights(scores, weights) + gumbel
        if self.temperature == 0:
            return Hardmax()(logits)
        return torch.softmax(logits / self.temperature, -1)

    def extra_repr(self) -> str:
        return f"temperature={self.temperature:g}"


class SoftmaxExpansion(Normaliser):
    r"""Softmax to first order in small scores: :math:`z_j = w_j(1/\varepsilon + s_j - \bar s)`, w of total one.

    The field it gives is the epsilon form of linear attention [Castin 2025, 2.2]; rows sum to 1/epsilon.

    >>> SoftmaxExpansion(epsilon=1.0)(torch.tensor([[1.0, 3.0]]))
    tensor([[0., 1.]])
    """

    sums_to_one = False
    non_negative = False

    def __init__(self, epsilon: float = 1.0):
        super().__init__()
        self.epsilon = checks.positive("epsilon", epsilon)

    def forward(self, scores: Tensor, weights: Tensor | None = None) -> Tensor:
        w = ones_if_none(scores, weights)
        w = w / w.sum(-1, keepdim=True)
        return w * (1 / self.epsilon + scores - (w * scores).sum(-1, keepdim=True))

    def extra_repr(self) -> str:
        return f"epsilon={self.epsilon:g}"


class Unnormalised(Normaliser):
    r"""A function of each score on its own, weighed: :math:`z_j = w_j f(s_j)` [Castin 2025, 2.5].

    >>> torch.cat([N(torch.tensor([[-1.0, 2.0]])) for N in (Identity(), ReLU(), Sigmoid(), Exp())])
    tensor([[-1.0000,  2.0000],
            [ 0.0000,  2.0000],
            [ 0.2689,  0.8808],
            [ 0.3679,  7.3891]])
    """

    sums_to_one = False
    shift_invariant = False

    def function(self, scores: Tensor) -> Tensor:
        """The function f, entry by entry."""
        raise NotImplementedError

    def forward(self, scores: Tensor, weights: Tensor | None = None) -> Tensor:
        values = self.function(scores)
        return values if weights is None else weights * values


class Identity(Unnormalised):
    r""":math:`z_j = w_j s_j`: linear attention in the sense of [Castin 2025, 2.2] and [He 2025, Definition 2.2]."""

    non_negative = False

    def function(self, scores: Tensor) -> Tensor:
        return scores


class Exp(Unnormalised):
    r""":math:`z_j = w_j e^{s_j}`."""

    def function(self, scores: Tensor) -> Tensor:
        return scores.exp()


class Sigmoid(Unnormalised):
    r""":math:`z_j = w_j / (1 + e^{-s_j})`."""

    def function(self, scores: Tensor) -> Tensor:
        return scores.sigmoid()


class ReLU(Unnormalised):
    r""":math:`z_j = w_j \max(s_j, 0)`."""

    def function(self, scores: Tensor) -> Tensor:
        return scores.relu()
