"""Exact transport judged by POT's network simplex, and by the certificate it comes with."""

import numpy as np
import ot
import torch

from measureflow.measures.transport import wasserstein2

ROUNDING = 1e-12  # relative to the cost, of a sum; plus 1e-14 of the largest cost, for zeros
STOPPED = 1e-9  # relative to the cost, by which POT's own stopping rule may end above the optimum


def assert_optimal(x: np.ndarray, y: np.ndarray, w: np.ndarray, v: np.ndarray, *, margin: float) -> None:
    """Cost, potentials and plan of `wasserstein2` for one problem; the plan's sums may be off by ``margin``."""
    costs = ((x[:, None] - y) ** 2).sum(-1)
    W = wasserstein2(torch.from_numpy(x), torch.from_numpy(y), weights=w, atom_weights=v)
    scale = 1e-14 * costs.max()
    peer = ot.emd2(w, v, costs, numItermax=10**7)
    assert -ROUNDING * peer - scale <= peer - W.cost.item() <= STOPPED * peer + scale
    f, g = (p.numpy() for p in W.potentials)
    assert (costs - f[:, None] - g).min() >= -scale  # a feasible dual ...
    assert abs(W.gap.item()) <= 2 * scale  # ... of the same value: this alone proves the cost optimal
    plan = W.plan().numpy()
    assert plan.min() >= 0
    np.testing.assert_allclose(plan.sum(1), w, rtol=0, atol=margin)
    np.testing.assert_allclose(plan.sum(0), v, rtol=0, atol=margin)
    np.testing.assert_allclose((plan * costs).sum(), W.cost, rtol=1e-13, atol=scale)
