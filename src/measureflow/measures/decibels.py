"""Signal-to-noise ratios in decibels, for numbers, arrays and tensors alike."""

from __future__ import annotations

import numpy as np
import torch

LEAST_SNR_DB = -4.0  # a single cluster has an SNR of zero, minus infinity in dB; learned models are given this instead


def to_decibels(ratio):
    """Ten times the logarithm to base ten.

    >>> float(to_decibels(100.0))
    20.0
    """
    return 10 * (torch.log10(ratio) if isinstance(ratio, torch.Tensor) else np.log10(ratio))


def from_decibels(decibels):
    """The ratio that a number of decibels stands for.

    >>> from_decibels(20.0)
    100.0
    """
    return 10 ** (decibels / 10)
