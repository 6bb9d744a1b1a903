"""Logarithmic axes whose ticks are the values that were run: the usual ones overlap within a decade."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter


def ticks_at(axes: Axes, values: Iterable[float]) -> None:
    """Ticks of the horizontal axis at these values, and no others."""
    marks = sorted(set(values))
    axes.set_xticks(marks, [f"{value:g}" for value in marks])
    axes.minorticks_off()


def plain_decades(axes: Axes) -> None:
    """Ticks of a logarithmic vertical axis at 1, 2 and 5 of each decade, in plain numbers."""
    axes.yaxis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
