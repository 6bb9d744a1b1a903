"""What training minimises."""

from __future__ import annotations

import torch
from torch import Tensor

from measureflow.measures.priors import Mixtures
from measureflow.measures.transport import wasserstein2

LEAST_SNR_DB = -4.0  # a single cluster has an SNR of zero, minus infinity in dB; learning takes it for this
FAIR_GUESS_DB = 3.0
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
    snr = 10 ** (mixtures.snr_db.clamp_min(LEAST_SNR_DB) / 10)
    return snr * mixing_w2(tokens, mixtures) / tokens.shape[-1]


def guessed_snr_loss(tokens: Tensor, noise: Tensor, told_db: Tensor, mixtures: Mixtures) -> Tensor:
    r"""What a model that is told a guess of the SNR learns from: its tokens where the guess is fair, its noise always.

    The noise is judged as a Gaussian with the stated mean and standard error; a guess that is off by more than
    ``FAIR_GUESS_DB`` asks for tokens nobody could find, and for these only the noise counts.
    """
    variance = mixtures.points.var(1, unbiased=False).mean(-1)
    told = 10 * torch.log10(variance / (1 + 10 ** (told_db / 10)))
    excess, error = noise.unbind(-1)
    surprise = ((10 * torch.log10(mixtures.noise_variance) - told - excess) / error).square() / 2 + error.log()
    fair = (told_db - mixtures.snr_db.clamp_min(LEAST_SNR_DB)).abs() <= FAIR_GUESS_DB
    return (fair * _snr_scaled(tokens, mixtures)).mean() + NOISE_SHARE * surprise.mean()
