"""The arguments of a distance: two clouds, checked, in one batch, dtype and device, with probabilities."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from measureflow.measures import checks
from measureflow.measures.empirical import Empirical

LARGEST = 1e150  # coordinates beyond this have squared distances that overflow float64


def pair(points, atoms, weights=None, atom_weights=None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Points (*b, n, d), atoms (*b, k, d) and their float64 probabilities (*b, n) and (*b, k)."""
    x, w = _cloud("points", points, "weights", weights)
    y, v = _cloud("atoms", atoms, "atom_weights", atom_weights)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"atoms must have the dimension of points, {x.shape[-1]}, got {y.shape[-1]}")
    try:
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        raise ValueError(
            f"atoms must have a batch like that of points, {tuple(x.shape[:-2])}, got {tuple(y.shape[:-2])}"
        ) from None
    dtype = torch.promote_types(x.dtype, y.dtype)
    x, y = x.to(dtype), y.to(x.device, dtype)
    v = v.to(x.device)
    return x.expand(*batch, -1, -1), y.expand(*batch, -1, -1), w.expand(*batch, -1), v.expand(*batch, -1)


def _cloud(name: str, cloud, weight_name: str, weights) -> tuple[Tensor, Tensor]:
    """The points and the probabilities of one cloud; in float64, so that counts become exact proportions."""
    if isinstance(cloud, Empirical):
        if weights is not None:
            raise ValueError(f"{weight_name} must be left out when {name} is an Empirical, which has its own")
        cloud, weights = cloud.points, None if cloud.uniform else cloud.weights
    x = checks.as_floats(name, cloud)
    if x.ndim < 2 or not x.numel() or not _largest(x.detach()) <= LARGEST:
        x = checks.points(name, x)  # names the fault, if it is not size; good input takes only the fast test above
        if (x.abs() > LARGEST).any():
            raise ValueError(f"{name} must not exceed {LARGEST:g} in size: squared distances would overflow")
    like = x.new_empty((), dtype=torch.float64).expand(x.shape)
    if weights is None:
        return x, like.new_tensor(1 / x.shape[-2]).expand(x.shape[:-1])
    mass = checks.weights(weight_name, weights, like)
    return x, mass / mass.sum(-1, keepdim=True)


def _largest(x: Tensor) -> float:
    """The largest absolute value, NaN if there is one: `torch.aminmax` takes a tenth of the time of a norm."""
    low, high = torch.aminmax(x)
    return torch.maximum(-low, high).item()
