"""Softmax attention through the fused kernel: no n x m matrix is ever held."""

from __future__ import annotations

import torch
from numpy import broadcast_shapes  # torch's own takes a hundred times as long, and imports sympy to begin with
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention


def fused_softmax(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, gamma: float) -> Tensor:
    r""":math:`\sum_j \mathrm{softmax}_j(\gamma\, q_i \cdot k_j + b_j)\, v_j` for q (\*b, n, e), k (\*b, m, e).

    A bias of the keys, (\*b, m), rides along as one more coordinate, :math:`(\gamma q, 1)\cdot(k, b)`, and values
    are padded to the width of the keys: the kernel that keeps no matrix asks for equal widths and no mask.
    """
    if bias is None:
        scale = gamma
    else:
        scale, q = 1.0, pad(gamma * q, (0, 1), value=1.0)
        k = torch.cat([k, bias[..., None].expand(*k.shape[:-1], 1)], -1)
    width = max(q.shape[-1], v.shape[-1])
    batch = broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    q4, k4, v4 = (_four_axes(t, batch, width) for t in (q, k, v))
    out = scaled_dot_product_attention(q4, k4, v4, scale=scale)
    return out[..., : v.shape[-1]].reshape(*batch, q.shape[-2], v.shape[-1])


def _four_axes(t: Tensor, batch: tuple[int, ...], width: int) -> Tensor:
    """As (batch, head, n, width): the shape the kernel takes, padded with zeros."""
    if t.shape[-1] < width:
        t = pad(t, (0, width - t.shape[-1]))
    if t.shape[:-2] != batch:
        t = t.expand(*batch, *t.shape[-2:])
    if t.ndim == 4:
        return t
    if t.ndim < 4:
        return t.reshape(1, *((1,) * (3 - t.ndim)), *t.shape)
    return t.reshape(-1, *t.shape[-3:])
