"""Tables whose clusters are known, and what the tests of FlowMixture share."""

import hashlib

import numpy as np
import pytest

from measureflow import FlowMixture

any_data = pytest.mark.filterwarnings("ignore::measureflow.estimators.UnfamiliarDataWarning")
TRIANGLE = np.array([[-3.0, 0.0], [3.0, 0.0], [0.0, 4.0]])


def blobs(n=300, centers=TRIANGLE, noise=0.3, seed=0, weights=None):
    """Rows around known centres, and which centre each belongs to."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(centers), n, p=weights)
    return centers[labels] + noise * rng.standard_normal((n, centers.shape[1])), labels


def digest(mixture: FlowMixture) -> str:
    """A fingerprint of every bit of the answer."""
    path = [state.numpy().tobytes() for state in mixture.flow_]
    parts = [mixture.labels_.tobytes(), mixture.cluster_centers_.tobytes(), mixture.weights_.tobytes(), *path]
    return hashlib.sha256(b"".join(parts)).hexdigest()
