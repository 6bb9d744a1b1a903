"""A small network that judges the merges of a tree: do its two children belong together?"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from measureflow.models.any_shape.trees import N_GEOMETRY, MergeTrees

N_CHILD = 3 + N_GEOMETRY  # size, height, local unit, then geometry
N_MERGE = 4  # height below the next merge, height, rows and columns of the set


def zero_linear(n_in: int, n_out: int) -> nn.Linear:
    """A linear map that says nothing until it has learned."""
    layer = nn.Linear(n_in, n_out)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class MergeJudge(nn.Module):
    r"""Logits (B, n - 1) that the two children of each merge belong together.

    Each child is a vector u of facts and of the mean features of its rows. The network sees

    .. math:: u_1 + u_2, \qquad |u_1 - u_2|, \qquad \tanh(\log s_1 / s_2)\, (u_1 - u_2)

    with s the numbers of rows, so it does not matter which child comes first.
    """

    def __init__(self, n_features: int, hidden: int = 64, n_codes: int = 16):
        super().__init__()
        self.codes = nn.Sequential(nn.LayerNorm(n_features), nn.Linear(n_features, n_codes))
        seen = 3 * (N_CHILD + n_codes) + N_MERGE
        self.judge = nn.Sequential(nn.LayerNorm(seen), nn.Linear(seen, hidden), nn.GELU(), zero_linear(hidden, 1))

    def forward(self, trees: MergeTrees, f: Tensor, x: Tensor, log_scale: Tensor) -> Tensor:
        """Judge trees over rows x (B, n, d) with features f (B, n, p) and local units (B, n, 1)."""
        n, d = x.shape[1:]
        height, log_size = trees.heights[..., None], trees.sizes.log()
        unit, codes = trees.means(torch.cat([log_scale, self.codes(f)], -1)).tensor_split([1], -1)
        facts = torch.stack([log_size, height - trees.below], -1)
        children = torch.cat([facts, height[..., None] - unit, trees.geometry(x), codes], -1)
        first, second = children.unbind(2)
        larger = torch.tanh(log_size[..., :1] - log_size[..., 1:])
        constants = height.new_tensor([math.log(n / 100), math.log(d)]).expand(*height.shape[:2], 2)
        merge = torch.cat([trees.above[..., None] - height, height, constants], -1)
        both = [first + second, (first - second).abs(), larger * (first - second), merge]
        return self.judge(torch.cat(both, -1)).squeeze(-1)
