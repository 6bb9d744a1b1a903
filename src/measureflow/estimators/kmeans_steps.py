"""Which layer an estimator runs: the fused form of a row of Table 1, or the transformer itself."""

from __future__ import annotations

import math

import numpy as np
import torch

from measureflow.attention import Normaliser, NormMax, Softmax, Sparsemax
from measureflow.circuits import kmeans_transformer
from measureflow.circuits.clarkson import rows
from measureflow.circuits.clarkson.geometry import Euclidean, Lifted, Spherical
from measureflow.circuits.clarkson.selections import PercentileCut, TopKSoftmax
from measureflow.lloyd.points import Points
from measureflow.lloyd.steps import farthest, lloyd_step, medoid_step, soft_step, weighed_step

ALGORITHMS = ("lloyd", "soft", "spherical", "trimmed", "robust", "medoids")
WEIGHTINGS = ("softmax", "sparsemax", "topk")


def choose_step(model, points: Points, C: np.ndarray, rng):
    """The function C -> (labels, new C) of a model, and the gamma it uses."""
    gamma = float(model.gamma)
    if model.algorithm in ("soft", "robust") and math.isinf(gamma):
        gamma = inverse_twice_variance(points, C)
    generator = None
    if model.algorithm == "medoids":
        generator = torch.Generator().manual_seed(int(rng.randint(2**31 - 1)))
    softened = model.algorithm in ("lloyd", "spherical") and math.isfinite(gamma)
    if model.engine == "transformer" or softened:
        return transformer_step(model, points, gamma, generator), gamma
    return fused_step(model, points, gamma, generator), gamma


def inverse_twice_variance(points: Points, C: np.ndarray) -> float:
    """1 / (2 s^2), s^2 the mean squared distance to the nearest first centre, per coordinate."""
    spherical, points.spherical = points.spherical, False
    r = -points.similarity_to_own(C, points.assign(C).labels)
    points.spherical = spherical
    variance = float(points.masses @ r / points.masses.sum() / points.shape[1])
    return 1 / (2 * variance) if variance > 0 else 1.0


def fused_step(model, points: Points, gamma: float, generator):
    """The fused layer of the model's algorithm."""
    if model.algorithm == "soft":
        return lambda C: soft_step(points, C, gamma)
    if model.algorithm == "medoids":
        return lambda C: medoid_step(points, C, float(model.gap), generator)
    if model.algorithm in ("trimmed", "robust"):
        weigh = selection(model, gamma, within=2 * reach(points))
        return lambda C: weighed_step(points, C, weigh)
    return lambda C: lloyd_step(points, C, model.empty_cluster)


def selection(model, gamma: float, within: float) -> Normaliser:
    """How a cluster weighs its members."""
    if model.algorithm == "trimmed":
        return PercentileCut(model.percentile, within) if math.isinf(gamma) else NormMax(math.inf, gamma)
    if model.weighting == "topk":
        return TopKSoftmax(model.n_nearest, gamma)
    return Softmax(gamma) if model.weighting == "softmax" else Sparsemax(gamma)


def reach(points: Points) -> float:
    """A bound on the squared distances within the data, and between the data and their means."""
    low, high = points.extremes()
    return float(((high - low) ** 2).sum()) + np.finfo(np.float64).tiny


def transformer_step(model, points: Points, gamma: float, generator):
    """One layer of the transformer itself, with the estimator's policy for empty clusters."""
    spherical = model.algorithm == "spherical"
    geometry = Spherical() if spherical else (Lifted() if model.attention == "dot" else Euclidean())
    row = configuration(model, points, gamma, generator, geometry)
    net = kmeans_transformer(points.shape[1], model.n_clusters, row, n_layers=1, dtype=_dtype(points))
    weights = torch.from_numpy(points.w) if len(points.w) else None
    X = torch.from_numpy(points.X)

    def step(C):
        layer = net.trace(X, torch.from_numpy(C), weights)[0]
        labels, new = layer.labels.numpy().astype(np.int32), layer.centers.numpy()
        hungry = np.flatnonzero(layer.assignment.numpy()[points.masses > 0].max(0) == 0)
        if len(hungry) and model.empty_cluster == "keep":
            new[hungry] = C[hungry]
        if len(hungry) and model.empty_cluster == "relocate" and model.algorithm in ("lloyd", "spherical"):
            new[hungry] = farthest(points, C, labels, hungry)
        return labels, new

    return step


def configuration(model, points: Points, gamma: float, generator, geometry) -> rows.Configuration:
    """The row of Table 1 that a model names, with a gap large enough for its data."""
    delta = 64 * reach(points)
    if model.algorithm == "soft":
        return rows.soft(gamma, geometry)
    if model.algorithm == "medoids":
        return rows.medoids(generator, geometry, delta=float(model.gap))
    if model.algorithm == "robust":
        return rows.robust(selection(model, gamma, 1.0), geometry, delta=2 * reach(points) + 200 / gamma)
    if model.algorithm == "trimmed" and math.isinf(gamma):
        return rows.trimmed_by_percentile(model.percentile, geometry, delta=delta)
    if model.algorithm == "trimmed":
        return rows.trimmed(gamma, geometry, delta=delta + 64 / gamma)
    return rows.lloyd(gamma, geometry)


def _dtype(points: Points) -> torch.dtype:
    return torch.float32 if points.X.dtype == np.float32 else torch.float64
