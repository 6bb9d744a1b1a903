"""Softmax attention through the fused kernel: no n x m matrix is ever held."""

from __future__ import annotations

import torch
from numpy import broadcast_shapes  # torch's own takes a hundred times as long, and imports sympy to begin with
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

_forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


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


def softmax_means(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    r"""Softmax attention and its log-density, :math:`\sum_j a_{ij} v_j` and :math:`\log\sum_j e^{q_i\cdot k_j}`.

    Shapes (B, heads, n, e), (B, heads, m, e), (B, heads, m, w) give (B, heads, n, w) and (B, heads, n). The fused
    kernel of the processor keeps no matrix, and gradients flow through both; elsewhere, and where the graph is
    exported, the two lines of mathematics run as they are.

    >>> q, k, v = (torch.randn(1, 1, n, 3, generator=torch.Generator().manual_seed(n)) for n in (2, 5, 5))
    >>> means, log_density = softmax_means(q, k, v)
    >>> torch.allclose(means, torch.softmax(q @ k.mT, -1) @ v, atol=1e-6)
    True
    """
    traced = torch.jit.is_tracing() or torch.compiler.is_compiling()  # type: ignore[attr-defined]
    if q.device.type == "cpu" and not traced:
        return _SoftmaxMeans.apply(q, k, v)  # type: ignore[return-value]
    logits = q @ k.mT
    return torch.softmax(logits, -1) @ v, torch.logsumexp(logits, -1)


class _SoftmaxMeans(torch.autograd.Function):
    r"""The fused kernel, taught to pass gradients through its log-density too.

    Its backward pass computes :math:`dS = P \circ (dO\,V^T - \mathrm{rowsum}(dO \circ O))`, and the gradient g of the
    log-density should add :math:`P \circ g`. Values carry a column of ones; telling the kernel that its gradient is g
    and its output was 0 adds just that.
    """

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        e, w = q.shape[-1], v.shape[-1]
        width = -(-max(e, w + 1) // 16) * 16  # the kernel is fastest at whole vectors
        q, k = pad(q, (0, width - e)), pad(k, (0, width - e))
        v = pad(pad(v, (0, 1), value=1.0), (0, width - w - 1))
        out, log_density = _forward(q, k, v, 0.0, False, scale=1.0)
        ctx.save_for_backward(q, k, v, out, log_density)
        ctx.widths = e, w
        return out[..., :w], log_density

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v, out, log_density = ctx.saved_tensors
        e, w = ctx.widths
        gradient = torch.zeros_like(out)
        gradient[..., :w], gradient[..., w] = gradients
        out = out.clone()
        out[..., w] = 0.0
        dq, dk, dv = _backward(gradient, q, k, v, out, log_density, 0.0, False, scale=1.0)
        return dq[..., :e], dk[..., :e], dv[..., :w]
