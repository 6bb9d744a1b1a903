"""Agreement of two labellings, for a batch at once: adjusted Rand index and normalised mutual information."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot


def contingency(truth: Tensor, found: Tensor, k: int) -> Tensor:
    """How many points of each true class got each label, (B, k, k), in float64."""
    return one_hot(truth, k).double().mT @ one_hot(found, k).double()


def adjusted_rand_index(table: Tensor) -> Tensor:
    """The adjusted Rand index of each contingency table: 1 for equal partitions, 0 on average for random ones.

    >>> adjusted_rand_index(torch.tensor([[[2.0, 0.0], [0.0, 2.0]]]))
    tensor([1.])
    """
    pairs = lambda n: n * (n - 1) / 2  # noqa: E731
    both = pairs(table).sum((-2, -1))
    rows, columns = pairs(table.sum(-1)).sum(-1), pairs(table.sum(-2)).sum(-1)
    expected = rows * columns / pairs(table.sum((-2, -1)))
    spread = (rows + columns) / 2 - expected
    return torch.where(spread == 0, 1.0, (both - expected) / torch.where(spread == 0, 1.0, spread))


def normalised_mutual_information(table: Tensor) -> Tensor:
    """Mutual information over the mean of the two entropies, as scikit-learn has it."""
    p = table / table.sum((-2, -1), keepdim=True)
    rows, columns = p.sum(-1), p.sum(-2)
    mutual = (
        torch.special.entr(rows).sum(-1) + torch.special.entr(columns).sum(-1) - torch.special.entr(p).sum((-2, -1))
    )
    mean = (torch.special.entr(rows).sum(-1) + torch.special.entr(columns).sum(-1)) / 2
    return torch.where(mean == 0, 1.0, mutual / torch.where(mean == 0, 1.0, mean)).clamp_min(0)


def scores(truth: Tensor, found: Tensor, k: int) -> dict[str, float]:
    """Mean ARI and NMI over a batch of labellings (B, N)."""
    table = contingency(truth, found, k)
    return {"ARI": float(adjusted_rand_index(table).mean()), "NMI": float(normalised_mutual_information(table).mean())}
