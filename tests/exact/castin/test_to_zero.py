"""Castin 2025, section 4.5, behaviour 1: why a positive V sends softmax and L2 attention to zero."""

import pytest
import torch

from measureflow.attention import Attention, DotProduct, NegativeSquaredDistance
from measureflow.flows.state import velocity
from measureflow.measures import Gaussian

F64 = torch.float64


def trace(M):
    return M.diagonal(0, -2, -1).sum(-1)


@pytest.mark.parametrize("score", [DotProduct, NegativeSquaredDistance])
def test_a_positive_v_has_a_size_that_falls(score):
    """For regular K = -Q and V > 0 the size tr(V^-1 S) falls at a rate of order S^2, so S goes to zero.

    Let B = Q^T Q and C = B^1/2 S B^1/2. The rate is -2 tr(B^-1/2 M B^-1/2) with M = C^2 for softmax and
    M = 2 C^2 (I + 2 C)^-1 for L2: positive definite both.
    """
    g = torch.Generator().manual_seed(20)
    Q, G, X = (torch.randn(40, 3, 3, generator=g, dtype=F64) for _ in range(3))
    V, S = G @ G.mT, X @ X.mT
    mu = Gaussian(torch.zeros(40, 3, dtype=F64), S)
    rate = trace(torch.linalg.solve(V, velocity(mu, Attention(score(Q, -Q), value=V))[1]))
    eigenvalues, O = torch.linalg.eigh(Q.mT @ Q)
    root, inverse = ((O * eigenvalues[:, None] ** power) @ O.mT for power in (0.5, -0.5))
    C = root @ S @ root
    M = C @ C if score is DotProduct else 2 * torch.linalg.solve(torch.eye(3, dtype=F64) + 2 * C, C @ C)
    assert torch.linalg.eigvalsh((M + M.mT) / 2).min() > 0
    torch.testing.assert_close(rate, -2 * trace(inverse @ M @ inverse), rtol=1e-6, atol=0)  # near-singular V and Q
