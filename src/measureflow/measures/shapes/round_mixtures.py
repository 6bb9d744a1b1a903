"""Gaussians in one round noise: the sets that the flow of Gaussians was made for."""

from __future__ import annotations

import numpy as np
import torch

from measureflow.measures.priors import Between, MixturePrior, WholeBetween
from measureflow.measures.shapes.catalogue import Rng, gaussian
from measureflow.measures.shapes.labels import any_labels, any_number, between
from measureflow.measures.shapes.placement import any_overlap, any_placement, moved_apart

SNR_DB = (3.0, 28.0)  # signal-to-noise ratios, from hardly told apart (most often) to far apart
MOST_CLUSTERS = 50


def round_mixture(rng: Rng, n: int, d: int, rows_per_cluster: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Normal centres at a signal-to-noise ratio of 3 to 28 decibels, or centres placed as any others; as many clusters
    as in any set, or one to fifty, whose overlap is as it comes.

    Returns points (n, d) and labels (n,); each cluster has so many rows at least on average.
    """
    K = any_number(rng, n, d, rows_per_cluster)
    if rng.random() < 0.5:
        K = between(rng, 1, min(MOST_CLUSTERS, max(1, n // rows_per_cluster)))
    if rng.random() < 0.5:
        low, high = SNR_DB
        snr_db = low + (high - low) * float(rng.random()) ** 2
        prior = MixturePrior(d, WholeBetween(K, K), Between(snr_db, snr_db))
        mixtures = prior.sample(1, n, torch.Generator().manual_seed(int(rng.integers(2**31))))
        labels = np.unique(mixtures.labels[0].numpy(), return_inverse=True)[1].astype(np.int64)
        return mixtures.points[0].double().numpy(), labels
    labels, noise = any_labels(rng, n, K), gaussian(rng, n, d)
    overlap, beyond = any_overlap(rng)
    centers = beyond * moved_apart(noise, labels, any_placement(rng, labels.max() + 1, d), overlap)
    return centers[labels] + noise, labels
