"""The k-means transformer taken apart: every matrix of every layer, as numbers for the page."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from measureflow.attention import Attention
from measureflow.circuits import kmeans_transformer
from measureflow.circuits.clarkson import rows
from measureflow.circuits.clarkson.kmeans import KMeansTransformer

HEADS = {  # name of a head: what its queries and keys are, and what it does
    "enc_sa": ("points", "points", "each point finds itself and erases its old assignment"),
    "enc_ca": ("points", "centres", "each point finds the nearest centre and writes its index"),
    "enc_ca2": ("points", "centres", "each point writes its scores into the stream"),
    "dec_sa": ("centres", "centres", "each centre finds itself and erases its old place"),
    "dec_ca": ("centres", "points", "each centre finds its points and writes their mean"),
}
ALGORITHMS = ("lloyd", "soft", "spherical", "trimmed", "robust", "medoids")


def take_apart(algorithm: str = "lloyd", k: int = 3, n: int = 24, layers: int = 6, seed: int = 0) -> dict[str, Any]:
    """Run a row of Clarkson's Table 1 on a small cloud, and keep what each head of each layer sees and writes."""
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm must be one of {', '.join(ALGORITHMS)}, got {algorithm!r}")
    if not 1 <= k <= n:
        raise ValueError(f"k must lie between 1 and n = {n}, got {k}")
    generator = torch.Generator().manual_seed(seed)
    points = _cloud(n, k, algorithm == "spherical", generator)
    model = kmeans_transformer(2, k, _row(algorithm, generator), n_layers=layers)
    X, C = model.embed(points, points[torch.randperm(n, generator=generator)[:k]])
    steps = []
    for layer in model.layers:
        step, X, C = _step(layer, X, C)
        steps.append(step)
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
    centres = 2.2 * torch.stack([angle.cos(), angle.sin()], -1)
    x = centres + 0.75 * torch.randn(n, 2, generator=generator, dtype=torch.float64)
    return x / x.norm(dim=-1, keepdim=True) if on_circle else x


def _row(algorithm: str, generator: torch.Generator) -> rows.Configuration:
    return rows.medoids(generator) if algorithm == "medoids" else getattr(rows, algorithm)()


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


def _step(layer: Any, X: Tensor, C: Tensor) -> tuple[dict[str, Any], Tensor, Tensor]:
    """One `EncoderDecoderLayer`, with its attention matrices and the stream before and after."""
    step: dict[str, Any] = {"before": {"points": X.tolist(), "centres": C.tolist()}, "attention": {}}

    def write(name: str, x: Tensor, y: Tensor) -> Tensor:
        head: Attention | None = getattr(layer, name)
        if head is None:
            return torch.zeros_like(x)
        A = head.normaliser(head.score(x, y), None)
        step["attention"][name] = A.tolist()
        return A @ head.value(y)

    X = X + write("enc_sa", X, X) + write("enc_ca", X, C)
    X = X + write("enc_ca2", X, C)
    C = C + write("dec_sa", C, C) + write("dec_ca", C, X)
    C = C if layer.norm is None else layer.norm(C)
    C = C if layer.nlt is None else C + layer.nlt(C)
    step["after"] = {"points": X.tolist(), "centres": C.tolist()}
    return step, X, C
