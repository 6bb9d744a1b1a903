"""How a flow looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from measureflow.measures import Empirical, Gaussian
from measureflow.measures.gaussian import matrix_sqrt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from measureflow.flows.trajectory import Trajectory

START, PATH, END = "#9aa5b1", "#c9d1d9", "#1f6feb"


def draw_trajectory(path: Trajectory, axes: Axes | None, coordinates: tuple[int, int], element: int) -> Axes:
    """Paths of the points from where they began (grey) to where they ended (blue), or a Gaussian's ellipses."""
    import matplotlib.pyplot as plt

    axes = plt.subplots(figsize=(5, 5))[1] if axes is None else axes
    if isinstance(path[0], Gaussian):
        _draw_ellipses(path, axes, coordinates, element)
    else:
        _draw_paths(path, axes, coordinates, element)
    if path.points.shape[-1] > 1:  # on a line, time is the other axis
        axes.set_aspect("equal", adjustable="datalim")
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _draw_paths(path: Trajectory, axes: Axes, coordinates: tuple[int, int], element: int) -> None:
    points = path.points.detach().cpu()
    points = points.reshape(points.shape[0], -1, *points.shape[-2:])[:, element]
    if points.shape[-1] == 1:  # on a line: time is the second axis
        time = np.arange(points.shape[0])
        axes.plot(time, points[..., 0].numpy(), color=END, alpha=0.3, linewidth=0.7)
        axes.set_xlabel("layer")
        return
    i, j = coordinates
    x, y = points[..., i].numpy(), points[..., j].numpy()
    axes.plot(x, y, color=PATH, linewidth=0.6, alpha=0.6, zorder=1)
    axes.scatter(x[0], y[0], s=8, color=START, linewidths=0, label="start", zorder=2)
    axes.scatter(x[-1], y[-1], s=26 * _sizes(path[-1], element), color=END, linewidths=0, label="end", zorder=3)


def _sizes(state, element: int) -> np.ndarray | float:
    if not isinstance(state, Empirical) or state.uniform:
        return 1.0
    w = state.probabilities.reshape(-1, state.n)[element]
    return (w * state.n).sqrt().cpu().numpy()


def _draw_ellipses(path: Trajectory, axes: Axes, coordinates: tuple[int, int], element: int) -> None:
    if path[0].d == 1:
        mean = path.points.detach().reshape(len(path), -1)[:, element].cpu().numpy()
        spread = path.covariances.detach().reshape(len(path), -1)[:, element].sqrt().cpu().numpy()
        axes.plot(mean, color=END)
        axes.fill_between(np.arange(len(path)), mean - spread, mean + spread, color=END, alpha=0.2, linewidth=0)
        axes.set_xlabel("layer")
        return
    angle = torch.linspace(0, 2 * torch.pi, 100, dtype=path[0].mean.dtype)
    circle = torch.stack([angle.cos(), angle.sin()], -1)
    keep = list(coordinates)
    for layer, state in enumerate(path):
        mean = state.mean.reshape(-1, state.d)[element][keep]
        S = state.covariance.reshape(-1, state.d, state.d)[element][keep][:, keep]
        edge = (mean + circle @ matrix_sqrt(S)).detach().cpu().numpy()
        shade = layer / max(1, len(path) - 1)
        axes.plot(edge[:, 0], edge[:, 1], color=END, alpha=0.15 + 0.85 * shade, linewidth=0.8 + shade)
