"""The k-means transformer taken apart: every matrix of every layer, as numbers for the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from measureflow.circuits import kmeans_transformer
from measureflow.circuits.clarkson import rows
from measureflow.circuits.clarkson.kmeans import KMeansTransformer

HEADS = {  # name of a head: what its queries and keys are, and what it does
    "enc_sa": ("points", "points", "Each point finds itself and erases its old assignment"),
    "enc_ca": ("points", "centres", "Each point finds the nearest centre and writes its number"),
    "enc_ca2": ("points", "centres", "Each point writes its scores into the stream"),
    "dec_sa": ("centres", "centres", "Each centre finds itself and clears its old place"),
    "dec_ca": ("centres", "points", "Each centre finds its points and moves to their mean"),
}
ALGORITHMS: dict[str, Callable[[torch.Generator], rows.Configuration]] = {
    "lloyd": lambda generator: rows.lloyd(),
    "soft": lambda generator: rows.soft(),
    "spherical": lambda generator: rows.spherical(),
    "trimmed": lambda generator: rows.trimmed(),
    "robust": lambda generator: rows.robust(),
    "medoids": rows.medoids,
}


def take_apart(
    algorithm: str = "lloyd", k: int = 3, n: int = 24, layers: int = 6, seed: int = 0, points: Any = None
) -> dict[str, Any]:
    """Run a row of Clarkson's Table 1 on a small cloud, and keep what each head of each layer sees and writes.

    ``points`` (n, 2) are the cloud, if given; the seed still chooses which of them are the first centres.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm must be one of {', '.join(ALGORITHMS)}, got {algorithm!r}")
    if not 1 <= k <= n:
        raise ValueError(f"k must lie between 1 and n = {n}, got {k}")
    generator = torch.Generator().manual_seed(seed)
    cloud = _cloud(n, k, algorithm == "spherical", generator)
    points = cloud if points is None else _moved(cloud, points, algorithm == "spherical")
    model = kmeans_transformer(2, k, ALGORITHMS[algorithm](generator), n_layers=layers)
    X, C = model.embed(points, points[torch.randperm(n, generator=generator)[:k]])
    steps = []
    for layer in model.layers:
        before, attention = {"points": X.tolist(), "centres": C.tolist()}, {}
        X, C = layer(X, C, watch=lambda name, A, seen=attention: seen.update({name: A.tolist()}))
        after = {"points": X.tolist(), "centres": C.tolist()}
        steps.append({"before": before, "attention": attention, "after": after})
    return {
        "algorithm": model.configuration.algorithm,
        "parts": model.configuration.components,
        "slots": {name: [s.start, s.stop] for name, s in model.stream.slots.items()},
        "heads": _heads(model),
        "points": points.tolist(),
        "steps": steps,
    }


def _cloud(n: int, k: int, on_circle: bool, generator: torch.Generator) -> Tensor:
    angle = 2 * torch.pi * torch.arange(n, dtype=torch.float64).remainder(k) / k + 0.4
    centers = 2.2 * torch.stack([angle.cos(), angle.sin()], -1)
    x = centers + 0.75 * torch.randn(n, 2, generator=generator, dtype=torch.float64)
    return x / x.norm(dim=-1, keepdim=True) if on_circle else x


def _moved(cloud: Tensor, points: Any, on_circle: bool) -> Tensor:
    x = torch.as_tensor(points, dtype=torch.float64)
    if x.shape != cloud.shape or not bool(x.isfinite().all()):
        raise ValueError(f"points must be finite numbers of shape {tuple(cloud.shape)}")
    return x / x.norm(dim=-1, keepdim=True).clamp_min(1e-9) if on_circle else x


def _heads(model: KMeansTransformer) -> dict[str, Any]:
    """The matrices of each head, the same in every layer."""
    out, width = {}, model.stream.width
    like = torch.zeros(1, dtype=torch.float64)
    for name, (queries, keys, words) in HEADS.items():
        head = getattr(model.layers[0], name)
        if head is not None:
            matrices = {"Q": head.score.Q, "K": head.score.K, "V": head.value}
            out[name] = {symbol: M.dense(width, like).tolist() for symbol, M in matrices.items()}
            out[name] |= {"queries": queries, "keys": keys, "does": words}
    return out
