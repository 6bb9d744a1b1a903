"""Figure 8: ranks of limiting covariances under L2 attention, d = 3, 4, 5."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from torch import Tensor

from measureflow.attention import Attention, Field, NegativeSquaredDistance
from measureflow.reproduce.castin2025 import ranks

TITLE = "Castin 2025, Figure 8: the rank of limiting covariances, L2 attention"


def attention(Q: Tensor, V: Tensor) -> Field:
    """L2 attention with K = -Q, so that A is negative of rank d // 2."""
    return Attention(NegativeSquaredDistance(Q, -Q), value=V)


def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """One row for every run."""
    return ranks.compute(attention, size, seed=48)


def render(tables: dict[str, pd.DataFrame]) -> dict:
    """The histograms."""
    return {"fig8": ranks.render(tables)}


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What the paper says of the rank and what the runs did."""
    return ranks.findings(tables, "L2")
