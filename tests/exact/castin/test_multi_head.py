"""Castin 2025, section 4.5: negative definite A need not send multi-head attention to zero, whatever V is."""

import pytest
import torch

from measureflow.attention import Attention, DotProduct, MultiHead
from measureflow.flows import Dopri5, Outcome, integrate
from measureflow.flows.state import velocity
from measureflow.measures import Gaussian

F64 = torch.float64


def two_heads(q1, q2):
    """Heads of width one with keys -q1 and -q2, V = I; each keeps one row of V."""
    Q = torch.tensor([[q1], [q2]], dtype=F64)
    kept = torch.stack([torch.diag(row) for row in torch.eye(2, dtype=F64)])
    return MultiHead(Attention(DotProduct(Q, -Q), value=torch.eye(2, dtype=F64).expand(2, 2, 2)), kept)


@pytest.mark.parametrize("c", [0.3, -0.6])
def test_a_covariance_stands_still_where_each_head_sees_nothing_in_its_own_row(c):
    """S q1 has no first and S q2 no second coordinate; A + A^T = -2 (q1 q1^T + q2 q2^T) is negative definite."""
    S, q1, q2 = torch.tensor([[1.0, c], [c, 1.0]], dtype=F64), (-c, 1.0), (1.0, -c)
    rows = torch.tensor([q1, q2], dtype=F64)
    assert torch.linalg.eigvalsh(-2 * rows.mT @ rows).max() < -0.1
    field, mu = two_heads(q1, q2), Gaussian(torch.zeros(2, dtype=F64), S)
    torch.testing.assert_close(velocity(mu, field)[1], torch.zeros(2, 2, dtype=F64), atol=1e-14, rtol=0)
    other = velocity(Gaussian(mu.mean, torch.eye(2, dtype=F64)), field)[1]
    assert other.abs().max() > 0.1  # elsewhere it moves
    path = integrate(
        field, Gaussian(mu.mean, torch.diag(torch.tensor([1.0, 0.5], dtype=F64))), [1e4], Dopri5(rtol=1e-6)
    )
    assert path.outcome is Outcome.FINISHED
    assert torch.linalg.eigvalsh(path[-1].covariance)[-1] > 0.1  # nor do its neighbours go to zero
