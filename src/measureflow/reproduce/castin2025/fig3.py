"""Figure 3: ranks of limiting covariances under softmax attention, d = 3, 4, 5."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from torch import Tensor

from measureflow.attention import Attention, DotProduct, Field
from measureflow.reproduce.castin2025 import ranks

TITLE = "Castin 2025, Figure 3: the rank of limiting covariances, softmax attention"


def attention(Q: Tensor, V: Tensor) -> Field:
    """Softmax attention with K = -Q, so that A is negative of rank d // 2."""
    return Attention(DotProduct(Q, -Q), value=V)


def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """One row for every run."""
    return ranks.compute(attention, size, seed=43)


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """The histograms."""
    return {"fig3": ranks.render(tables)}


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What the paper says of the rank and what the runs did."""
    return ranks.findings(tables, "softmax")
