"""What training minimises."""

from __future__ import annotations

from torch import Tensor

from measureflow.measures.priors import Mixtures
from measureflow.measures.transport import wasserstein2


def mixing_w2(tokens: Tensor, mixtures: Mixtures) -> Tensor:
    r"""Exact :math:`W_2^2` between output tokens, 1/n each, and the true mixing measure, (B,) [Zimin 2025, D.3]."""
    return wasserstein2(tokens, mixtures.mixing).cost


def snr_scaled_w2(tokens: Tensor, mixtures: Mixtures) -> Tensor:
    r"""The mean over the batch of :math:`\mathrm{SNR} \cdot W_2^2 / d`; dividing by d makes dimensions count alike.

    The paper's loss is d times this, which at its fixed d = 2 has the same minimiser.
    """
    snr = 10 ** (mixtures.snr_db / 10)
    return (snr * mixing_w2(tokens, mixtures)).mean() / tokens.shape[-1]
