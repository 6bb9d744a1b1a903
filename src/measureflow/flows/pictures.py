"""Pictures of a flow."""

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
COLOURS = ("#00798c", "#d1495b", "#edae49", "#66a182", "#5f4b8b", "#e07a3f", "#5a7bb0", "#b56576", "#7a9e00", "#3d8bd4")
LOPSIDED = 4.0  # ranges of two coordinates that differ more than this are in units of their own


def colour(k: int) -> str:
    """The colour of cluster k, grey for rows without one; the first ten are chosen by hand, and no two are alike.

    >>> len({colour(k) for k in range(-1, 60)})
    61
    """
    from matplotlib.colors import hsv_to_rgb, to_hex

    if k < 0:
        return START
    if k < len(COLOURS):
        return COLOURS[k]
    later = k - len(COLOURS)
    red, green, blue = hsv_to_rgb(((later * 0.381966 + 0.05) % 1.0, 0.62, (0.8, 0.6, 0.92)[later % 3]))
    return to_hex((red, green, blue))


def draw_trajectory(
    path: Trajectory, axes: Axes | None, coordinates: tuple[int, int], element: int, labels=None
) -> Axes:
    """Paths of the points from where they began (grey) to where they ended (in colour), or a Gaussian's ellipses."""
    import matplotlib.pyplot as plt

    axes = plt.subplots(figsize=(5, 5))[1] if axes is None else axes
    if isinstance(path[0], Gaussian):
        _draw_ellipses(path, axes, coordinates, element)
    else:
        _draw_paths(path, axes, coordinates, element, labels)
    if path.points.shape[-1] > 1 and _alike(axes):  # on a line, time is the other axis
        axes.set_aspect("equal", adjustable="datalim")
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _alike(axes: Axes) -> bool:
    """Whether both coordinates can be drawn to one scale."""
    wide, tall = (abs(high - low) for low, high in (axes.get_xlim(), axes.get_ylim()))
    return max(wide, tall) <= LOPSIDED * min(wide, tall)


def _draw_paths(path: Trajectory, axes: Axes, coordinates: tuple[int, int], element: int, labels) -> None:
    points = path.points.detach().cpu()
    points = points.reshape(points.shape[0], -1, *points.shape[-2:])[:, element]
    if labels is not None and np.shape(labels) != (points.shape[1],):
        raise ValueError(f"labels must have shape ({points.shape[1]},), got {np.shape(labels)}")
    ends = END if labels is None else [colour(int(k)) for k in labels]
    ways = [PATH] * points.shape[1] if labels is None else ends
    if points.shape[-1] == 1:  # on a line: time is the second axis
        time = np.arange(points.shape[0])
        axes.plot(time, points[..., 0].numpy(), color=END, alpha=0.3, linewidth=0.7)
        axes.set_xlabel("layer")
        return
    i, j = coordinates
    x, y = points[..., i].numpy(), points[..., j].numpy()
    for point, way in enumerate(ways):
        axes.plot(x[:, point], y[:, point], color=way, linewidth=0.6, alpha=0.6 if labels is None else 0.3, zorder=1)
    axes.scatter(x[0], y[0], s=8, color=START, linewidths=0, label="start", zorder=2)
    size = 26 * _sizes(path[-1], element)
    axes.scatter(x[-1], y[-1], s=size, color=ends, edgecolors="white", linewidths=0.4, label="end", zorder=3)


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
