"""Softmax attention through the fused kernel: no n x m matrix is ever held."""

from __future__ import annotations

from typing import Any

import torch
from numpy import broadcast_shapes  # torch's own takes a hundred times as long, and imports sympy to begin with
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from measureflow.attention.threads import side_by_side

Columns = Tensor | tuple[Tensor, ...]
PIECE = 256  # queries that one thread takes at a time


def _private(name: str, arguments: str) -> Any:
    """A private operator of torch, or None where the installed torch has none with this name and these arguments."""
    operator = getattr(torch.ops.aten, name, None)
    if operator is None or [argument.name for argument in operator.default._schema.arguments] != arguments.split():
        return None
    return operator


_forward = _private(
    "_scaled_dot_product_flash_attention_for_cpu", "query key value dropout_p is_causal attn_mask scale"
)
_backward = _private(
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "grad_out query key value out logsumexp dropout_p is_causal attn_mask scale",
)


def fused_softmax(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, gamma: float) -> Tensor:
    r""":math:`\sum_j \mathrm{softmax}_j(\gamma\, q_i \cdot k_j + b_j)\, v_j` for q (\*b, n, e), k (\*b, m, e).

    A bias of the keys, (\*b, m), is one more coordinate, :math:`(\gamma q, 1)\cdot(k, b)`, and values
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


def softmax_means(q: Columns, k: Columns, v: Columns, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    r"""Softmax attention and its log-density, :math:`\sum_j a_{ij} v_j` and :math:`\log\sum_j e^{q_i\cdot k_j}`.

    Shapes (B, heads, n, e), (B, heads, m, e), (B, heads, m, w) give (B, heads, n, w) and (B, heads, n); each is one
    tensor or several side by side. A mask (n, m) is added to the scores. The fused kernel of the processor keeps no
    matrix of its own, and gradients flow through both results; on other devices, in a torch without that kernel, and
    where the graph is exported, two plain lines of torch compute the same.

    >>> q, k, v = (torch.randn(1, 1, n, 3, generator=torch.Generator().manual_seed(n)) for n in (2, 5, 5))
    >>> means, log_density = softmax_means(q, k, v)
    >>> torch.allclose(means, torch.softmax(q @ k.mT, -1) @ v, atol=1e-6)
    True
    """
    q, k, v = ((part,) if isinstance(part, Tensor) else part for part in (q, k, v))
    traced = torch.jit.is_tracing() or torch.compiler.is_compiling()  # type: ignore[attr-defined]
    if q[0].device.type != "cpu" or traced or _forward is None or _backward is None:
        logits = torch.cat(q, -1) @ torch.cat(k, -1).mT
        if mask is not None:
            logits = logits + mask
        return torch.softmax(logits, -1) @ torch.cat(v, -1), torch.logsumexp(logits, -1)
    e, w = (sum(t.shape[-1] for t in part) for part in (q, v))
    width = -(-max(e, w + 1) // 16) * 16  # the kernel is fastest at whole vectors
    one = v[0].new_ones(()).expand(*v[0].shape[:-1], 1)
    queries, keys, values = (_padded(part, width) for part in (q, k, (*v, one)))
    if mask is not None:
        mask = mask[None, None]
    if torch.is_grad_enabled():
        means, log_density = _SoftmaxMeans.apply(queries, keys, values, mask, w)  # type: ignore[misc]
    else:
        means, log_density = _attend(queries, keys, values, mask)
    return means[..., :w], log_density


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The fused kernel; many queries in pieces that do not depend on the number of threads."""
    queries = q.split(PIECE, -2)
    masks = [None] * len(queries) if mask is None else mask.split(PIECE, -2)
    parts = side_by_side(
        lambda piece: _forward(piece[0], k, v, 0.0, False, attn_mask=piece[1], scale=1.0),
        zip(queries, masks, strict=True),
    )
    if len(parts) == 1:
        return parts[0]
    means, log_density = zip(*parts, strict=True)
    return torch.cat(means, -2), torch.cat(log_density, -1)


def _padded(parts: tuple[Tensor, ...], width: int) -> Tensor:
    """Columns side by side, and columns of zeros up to a width."""
    missing = width - sum(t.shape[-1] for t in parts)
    zeros = parts[0].new_zeros(()).expand(*parts[0].shape[:-1], missing)
    return torch.cat([*parts, zeros], -1)


class _SoftmaxMeans(torch.autograd.Function):
    r"""The fused kernel, with gradients through its log-density too.

    Its backward pass computes :math:`dS = P \circ (dO\,V^T - \mathrm{rowsum}(dO \circ O))`, and the gradient g of the
    log-density should add :math:`P \circ g`. Values carry a column of ones after their own ``w``; telling the kernel
    that its gradient is g and its output was 0 adds just that.
    """

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, w: int) -> tuple[Tensor, Tensor]:
        out, log_density = _forward(q, k, v, 0.0, False, attn_mask=mask, scale=1.0)
        ctx.save_for_backward(q, k, v, out, log_density)
        ctx.mask, ctx.w = mask, w
        return out, log_density

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        q, k, v, out, log_density = ctx.saved_tensors
        gradient, out = gradients[0].clone(), out.clone()
        gradient[..., ctx.w], out[..., ctx.w] = gradients[1], 0.0
        return *_backward(gradient, q, k, v, out, log_density, 0.0, False, attn_mask=ctx.mask, scale=1.0), None, None
