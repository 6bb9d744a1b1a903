"""Checks of arguments: what a valid measure is, and the errors for one that is not.

Every public function calls these before any work; each error names the argument.
"""

import math
from numbers import Integral

import torch
from torch import Tensor


def as_floats(name: str, value, dtype: torch.dtype | None = None) -> Tensor:
    """``value`` as a floating tensor: integers and lists become the default float type."""
    try:
        tensor = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} must be an array of numbers: {error}") from None
    if tensor.is_complex():
        raise ValueError(f"{name} must be real, got {tensor.dtype}")
    if dtype is not None:
        return tensor.to(dtype)
    return tensor if tensor.is_floating_point() else tensor.to(torch.get_default_dtype())


def finite(name: str, tensor: Tensor) -> Tensor:
    """``tensor``, or a ValueError that says how many entries are NaN or infinite and where the first one is."""
    bad = ~torch.isfinite(tensor)
    if bad.any():
        first = tuple(bad.nonzero()[0].tolist())
        kind = "NaN" if torch.isnan(tensor[first]) else "infinite"
        raise ValueError(f"{name} has {int(bad.sum())} non-finite value(s); the first, at {first}, is {kind}")
    return tensor


def points(name: str, value, dtype: torch.dtype | None = None) -> Tensor:
    """Finite points of shape (*b, n, d) with n >= 1 and d >= 1."""
    tensor = as_floats(name, value, dtype)
    if tensor.ndim < 2:
        raise ValueError(f"{name} must have shape (*batch, n, d), got {tuple(tensor.shape)}")
    if tensor.shape[-2] == 0 or tensor.shape[-1] == 0:
        raise ValueError(f"{name} must hold at least one point of at least one dimension, got {tuple(tensor.shape)}")
    return finite(name, tensor)


def weights(name: str, value, like: Tensor) -> Tensor:
    """Non-negative masses of shape ``like.shape[:-1]``, not all zero in any batch element."""
    tensor = as_floats(name, value, like.dtype).to(like.device)
    try:
        tensor = tensor.expand(like.shape[:-1])
    except RuntimeError:
        raise ValueError(
            f"{name} must have shape {tuple(like.shape[:-1])}, one mass for each point, got {tuple(tensor.shape)}"
        ) from None
    finite(name, tensor)
    if (tensor < 0).any():
        raise ValueError(f"{name} must be non-negative, the least is {float(tensor.min())}")
    if (tensor.sum(-1) <= 0).any():
        raise ValueError(f"{name} must not be all zero")
    return tensor


def square(name: str, value, dtype: torch.dtype | None = None) -> Tensor:
    """Finite square matrices (*b, d, d)."""
    tensor = as_floats(name, value, dtype)
    if tensor.ndim < 2 or tensor.shape[-1] != tensor.shape[-2] or tensor.shape[-1] == 0:
        raise ValueError(f"{name} must be square, of shape (*batch, d, d), got {tuple(tensor.shape)}")
    return finite(name, tensor)


def covariance(name: str, value, dtype: torch.dtype | None = None) -> Tensor:
    """Symmetric positive semi-definite matrices (*b, d, d), up to rounding."""
    tensor = square(name, value, dtype)
    scale = tensor.abs().amax((-2, -1), keepdim=True)
    rounding = torch.finfo(tensor.dtype).eps * tensor.shape[-1] * 8  # a symmetric product rounds within this
    if ((tensor - tensor.mT).abs() > rounding * scale).any():
        raise ValueError(f"{name} must be symmetric")
    least = torch.linalg.eigvalsh(tensor.detach())[..., 0]
    if (least < -rounding * scale[..., 0, 0]).any():
        raise ValueError(f"{name} must be positive semi-definite, its least eigenvalue is {float(least.min()):.3g}")
    return tensor


def number(name: str, value) -> float:
    """One real number, or a ValueError that shows what was given."""
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"{name} must be a number, got {value!r}") from None


def positive(name: str, value) -> float:
    """A positive number (infinity allowed)."""
    if not number(name, value) > 0:
        raise ValueError(f"{name} must be positive, got {value}")
    return float(value)


def is_number(value, kind: type) -> bool:
    """Whether a value is a number of a kind; True and False are not."""
    return isinstance(value, kind) and not isinstance(value, bool)


def whole(name: str, value, least: int = 1, most: float = math.inf) -> int:
    """A whole number between bounds."""
    if not is_number(value, Integral) or not least <= value <= most:
        limits = f"at least {least}" if most == math.inf else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number, {limits}, got {value!r:.80}")
    return int(value)


def instance(name: str, value, *kinds: type):
    """``value``, or a ValueError that says which kinds of object were expected."""
    if not isinstance(value, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(f"{name} must be of type {expected}, got {type(value).__name__}: {value!r:.80}")
    return value
