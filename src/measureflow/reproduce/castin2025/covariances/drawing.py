"""How the panels look: curves in the cone of covariances, or their trace-one shadows in the disc."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from mpl_toolkits.mplot3d import Axes3D
from mpl_toolkits.mplot3d.art3d import Line3DCollection

from measureflow.reproduce.castin2025.covariances.panels import Panel
from measureflow.reproduce.castin2025.fates import NOT_FOLLOWED

PALETTE = "viridis"


def draw_cones(tables: dict[str, pd.DataFrame], panels: list[Panel]) -> Figure:
    """One cone a panel, each curve coloured by where it began."""
    across = min(3, len(panels))
    down = -(-len(panels) // across)
    figure = plt.figure(figsize=(4.4 * across, 3.7 * down))
    for i, panel in enumerate(panels):
        axes: Axes3D = figure.add_subplot(down, across, i + 1, projection="3d")  # pyright: ignore
        _draw_cone(axes, tables["curves"].query("panel == @panel.name"), panel)
    figure.subplots_adjust(wspace=0.0, hspace=0.12, left=0.01, right=0.99, bottom=0.01, top=0.93)
    return figure


def _draw_cone(axes: Axes3D, rows: pd.DataFrame, panel: Panel) -> None:
    curves = [part[["x", "y", "z"]].to_numpy() for _, part in rows.groupby("run")]
    top = 1.25 * max(1.0, np.quantile([curve[0, 2] for curve in curves], 0.5))
    _draw_surface(axes, top)
    colours = _colours([curve[0] for curve in curves])
    inside = [curve[curve[:, 2] <= top] for curve in curves]
    axes.add_collection3d(Line3DCollection(inside, colors=colours, linewidths=0.9, alpha=0.75))
    ends = [(curve[-1], colour) for curve, colour in zip(curves, colours, strict=True) if curve[-1, 2] <= top]
    if ends:
        points = np.array([end for end, _ in ends])
        axes.scatter(*points.T, c=[colour for _, colour in ends], s=9, depthshade=False)
    starts = np.array([curve[0] for curve in curves])
    axes.scatter(*starts.T, color="0.55", s=2.5, depthshade=False)
    axes.set(xlim=(-top, top), ylim=(-top, top), zlim=(0, top))
    axes.set_box_aspect((1, 1, 0.62), zoom=1.25)
    for artist in axes.get_children():  # the rim of the cone reaches past its box
        artist.set_clip_on(False)
    axes.view_init(*panel.view)
    axes.set_axis_off()
    axes.set_title(f"({panel.name}) {panel.caption}", fontsize=10, wrap=True)


def _draw_surface(axes: Axes3D, top: float) -> None:
    angle, radius = np.meshgrid(np.linspace(0, 2 * np.pi, 72), np.linspace(0, top, 2))
    axes.plot_surface(radius * np.cos(angle), radius * np.sin(angle), radius, color="0.4", alpha=0.07, linewidth=0)
    rim = angle[1]
    axes.plot(top * np.cos(rim), top * np.sin(rim), np.full_like(rim, top), color="0.6", linewidth=0.7)


def draw_discs(tables: dict[str, pd.DataFrame], panels: list[Panel]) -> Figure:
    """One disc a panel: the curves of S / tr S, purple where they leave for infinity and green where they settle."""
    across = min(3, len(panels))
    down = -(-len(panels) // across)
    figure, grid = plt.subplots(down, across, figsize=(3.7 * across, 3.9 * down + 0.3), squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for axes, panel in zip(grid.flat, panels, strict=False):
        fates = tables["fates"].query("panel == @panel.name").set_index("run").ending
        _draw_disc(axes, tables["curves"].query("panel == @panel.name"), fates, panel)
    kinds = {label: colour for fate, (label, colour) in FATES.items() if (tables["fates"].ending == fate).any()}
    handles = [Line2D([], [], color=colour, label=label) for label, colour in kinds.items()]
    figure.legend(handles=handles, loc="lower center", ncols=len(handles), frameon=False, fontsize=9)
    figure.subplots_adjust(wspace=0.05, hspace=0.12, left=0.01, right=0.99, bottom=0.2 / (down + 1), top=0.93)
    return figure


FATES = {
    "finite time": ("blows up in finite time", "#5b2a86"),
    "infinite time": ("diverges in infinite time", "#2f7fb8"),
    "settled": ("converges", "#7fb800"),
    "still moving": ("converges", "#7fb800"),
    NOT_FOLLOWED: ("not followed: stiff", "0.5"),
}


def _draw_disc(axes: Axes, rows: pd.DataFrame, fates: pd.Series, panel: Panel) -> None:
    lines, colours, ends = [], [], []
    for run, part in rows.groupby("run"):
        shadow = part[["x", "y"]].to_numpy() / np.maximum(part.z.to_numpy(), 1e-300)[:, None]
        lines.append(shadow)
        ends.append(shadow[-1])
        colours.append(FATES[fates[run]][1])
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=0.8, alpha=0.6))
    axes.scatter(*np.array(ends).T, c=colours, s=7, zorder=3, linewidths=0)
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(angle), np.sin(angle), color="0.5", linewidth=0.8)
    axes.set(xlim=(-1.06, 1.06), ylim=(-1.06, 1.06), aspect="equal")
    axes.set_axis_off()
    axes.set_title(f"({panel.name}) {panel.caption}", fontsize=10, wrap=True)


def _colours(starts: list[np.ndarray]) -> list[tuple]:
    """A colour for each curve by the second coordinate of its start."""
    y = np.array([start[1] for start in starts])
    spread = max(y.max() - y.min(), 1e-12)
    return [plt.get_cmap(PALETTE)(0.95 * (v - y.min()) / spread) for v in y]
