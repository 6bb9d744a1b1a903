"""What training minimises."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from measureflow.measures.decibels import LEAST_SNR_DB, from_decibels, to_decibels
from measureflow.measures.priors import Mixtures
from measureflow.measures.shapes import LabelledShapes
from measureflow.measures.transport import wasserstein2
from measureflow.models.any_shape import Together

FAIR_GUESS_DB = 3.0
MANY_FROM = 0.2  # of the pairs: sets in which fewer belong together have many clusters
NOISE_SHARE = 0.02  # of the noise in the loss: enough to learn it, too little to be felt by the tokens


def mixing_w2(tokens: Tensor, mixtures: Mixtures) -> Tensor:
    r"""Exact :math:`W_2^2` between output tokens, 1/n each, and the true mixing measure, (B,) [Zimin 2025, D.3]."""
    return wasserstein2(tokens, mixtures.mixing).cost


def snr_scaled_w2(tokens: Tensor, mixtures: Mixtures) -> Tensor:
    r"""The mean over the batch of :math:`\mathrm{SNR} \cdot W_2^2 / d`; dividing by d makes dimensions count alike.

    The paper's loss is d times this, which at its fixed d = 2 has the same minimiser.
    """
    return _snr_scaled(tokens, mixtures).mean()


def _snr_scaled(tokens: Tensor, mixtures: Mixtures) -> Tensor:
    snr = from_decibels(mixtures.snr_db.clamp_min(LEAST_SNR_DB))
    return snr * mixing_w2(tokens, mixtures) / tokens.shape[-1]


def guessed_snr_loss(tokens: Tensor, noise: Tensor, assumed_snr_db: Tensor, mixtures: Mixtures) -> Tensor:
    r"""The loss for a guessed SNR: that of the tokens where the guess is fair, and always that of the estimated noise.

    The loss of the noise is minus the log-density of a Gaussian with the stated mean and standard error. Tokens cannot
    be right where the guess is off by more than ``FAIR_GUESS_DB``, so only the noise counts there.
    """
    variance = mixtures.points.var(1, unbiased=False).mean(-1)
    assumed_noise_db = to_decibels(variance / (1 + from_decibels(assumed_snr_db)))
    excess, error = noise.unbind(-1)
    surprise = ((to_decibels(mixtures.noise_variance) - assumed_noise_db - excess) / error).square() / 2 + error.log()
    fair = (assumed_snr_db - mixtures.snr_db.clamp_min(LEAST_SNR_DB)).abs() <= FAIR_GUESS_DB
    return (fair * _snr_scaled(tokens, mixtures)).mean() + NOISE_SHARE * surprise.mean()


def together_loss(said: Together, sets: LabelledShapes, *, most_weight: float = 1.0) -> Tensor:
    """The loss of a model of pairs: cross entropies of the pairs, of the outliers, of the number of clusters, and of
    whether the rows are Gaussians in one round noise.

    Pairs with an outlier are left out. Each set counts alike, unless sets of many clusters may have a larger weight
    (`many_clusters_weight`).
    """
    member = sets.labels >= 0
    pairs = (member[:, :, None] & member[:, None, :]).tril(-1)
    same = (sets.labels[:, :, None] == sets.labels[:, None, :]).to(said.logits)
    entropy = binary_cross_entropy_with_logits(said.logits, same, reduction="none") * pairs
    count = pairs.sum((1, 2)).clamp_min(1)
    weight = many_clusters_weight((same * pairs).sum((1, 2)) / count, most_weight)
    between = (weight * entropy.sum((1, 2)) / count).mean()
    noise = binary_cross_entropy_with_logits(said.noise, (~member).to(said.noise))
    number = cross_entropy(said.n_clusters, sets.n_clusters.clamp(1, said.n_clusters.shape[-1]) - 1)
    one_noise = binary_cross_entropy_with_logits(said.one_noise, sets.is_round.to(said.one_noise))
    return between + 0.1 * noise + 0.2 * number + 0.2 * one_noise


def many_clusters_weight(share: Tensor, most: float) -> Tensor:
    """Weights (B,) of sets in which a share (B,) of all pairs belongs together; one from a fifth on.

    Of many clusters few pairs belong together, so the loss of their pairs is small whatever is said: its largest value
    that makes sense is the entropy of the share. Below a fifth the weight makes up for that, up to ``most``.

    >>> many_clusters_weight(torch.tensor([1.0, 0.5, 0.2, 0.1, 0.03]), 3.0)
    tensor([1.0000, 1.0000, 1.0000, 1.5393, 3.0000])
    """
    share = share.clamp(1e-3, MANY_FROM)
    entropy = torch.special.entr(share) + torch.special.entr(1 - share)
    return (torch.special.entr(torch.tensor([MANY_FROM, 1 - MANY_FROM])).sum() / entropy).clamp(1.0, most)
