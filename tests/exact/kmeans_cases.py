"""Rows of Clarkson's Table 1 beside their textbook algorithms: the one table that all exact tests run over."""

import math
from typing import NamedTuple

import numpy as np
import torch

from measureflow.attention import Softmax, Sparsemax
from measureflow.circuits import textbook
from measureflow.circuits.clarkson import rows
from measureflow.circuits.clarkson.geometry import Euclidean, Lifted, Spherical, ZeroSumSpherical
from measureflow.circuits.clarkson.selections import TopKSoftmax

SEED = 7


class Case(NamedTuple):
    name: str
    row: object  # () -> Configuration
    step: object  # (X, C, w, layer) -> (Y, C)
    geometry: type

    @property
    def spherical(self) -> bool:
        return issubclass(self.geometry, Spherical)

    def __str__(self) -> str:
        return f"{self.name}-{self.geometry.__name__}"


def gumbel_numbers(k: int, n: int, layers: int) -> np.ndarray:
    """The Gumbel numbers that the circuit draws from a generator of the same seed."""
    generator = torch.Generator().manual_seed(SEED)
    u = torch.rand(layers, k, n, generator=generator, dtype=torch.float64).clamp_min(torch.finfo(torch.float64).tiny)
    return -np.log(-np.log(u.numpy()))


def _medoids(geometry, X, C, w, layer):
    noise = gumbel_numbers(len(C), len(X), layer + 1)[layer]
    return textbook.medoids(X, C, 0.5, noise, w, issubclass(geometry, Spherical), l2=geometry is Euclidean)


def cases(weights_delta: float) -> list[Case]:
    """All rows in all geometries; a gap costs digits, and weights can do with a small one."""
    out = []
    for geometry in (Euclidean, Lifted, Spherical, ZeroSumSpherical):
        sphere = issubclass(geometry, Spherical)

        def add(name, row, step, geometry=geometry, sphere=sphere):
            options = {} if row().delta is None else {"l2": geometry is Euclidean}  # of decoders that see distances
            out.append(Case(name, row, lambda X, C, w, layer: step(X, C, w=w, spherical=sphere, **options), geometry))

        def weighed(weigh):
            return lambda X, C, **o: textbook.robust(X, C, weigh, **o)

        add("lloyd", lambda g=geometry: rows.lloyd(math.inf, g()), textbook.lloyd)
        add("soft", lambda g=geometry: rows.soft(0.7, g()), lambda X, C, **o: textbook.soft(X, C, 0.7, **o))
        add(
            "trimmed-normmax",
            lambda g=geometry: rows.trimmed(0.3, g()),
            lambda X, C, **o: textbook.trimmed_by_norm(X, C, 0.3, **o),
        )
        for percent in (60.0, 0.0, 100.0):
            add(
                f"trimmed-percentile{percent:g}",
                lambda g=geometry, p=percent: rows.trimmed_by_percentile(p, g()),
                lambda X, C, p=percent, **o: textbook.trimmed(X, C, p, **o),
            )
        for name, normaliser, weigh in (
            ("softmax", Softmax(2.0), textbook.softmax_weights(2.0)),
            ("sparsemax", Sparsemax(0.2), textbook.sparsemax_weights(0.2)),
            ("topk", TopKSoftmax(3, 2.0), textbook.topk_weights(3, 2.0)),
        ):
            delta = weights_delta / 2 if sphere else weights_delta
            add(
                f"robust-{name}",
                lambda g=geometry, z=normaliser, delta=delta: rows.robust(z, g(), delta=delta),
                weighed(weigh),
            )
            add(
                f"robust-{name}-twosteps",
                lambda g=geometry, z=normaliser, delta=delta: rows.robust(z, g(), delta=delta, two_steps=True),
                weighed(weigh),
            )
        out.append(
            Case(
                "medoids",
                lambda g=geometry: rows.medoids(torch.Generator().manual_seed(SEED), g(), delta=0.5),
                lambda X, C, w, layer, g=geometry: _medoids(g, X, C, w, layer),
                geometry,
            )
        )
    return out


def generic(geometry: type, n: int, d: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points in general position, and centres among them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 2 * rng.normal(size=(k, d))[rng.integers(k, size=n)]
    X = np.concatenate([X, X[:3]])  # three points twice
    if issubclass(geometry, ZeroSumSpherical):
        X = X - X.mean(1, keepdims=True)
    if issubclass(geometry, Spherical):
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
    if issubclass(geometry, ZeroSumSpherical):
        X = X - X.mean(1, keepdims=True)  # what rounding in the division left
    return X, X[rng.choice(n, k, replace=False)] if k <= n else X[rng.integers(n, size=k)]
