"""Logarithmic axes whose ticks are the values that were run: the usual ones overlap within a decade."""

from __future__ import annotations

import math
from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.axis import Axis
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


def few_decades(axis: Axis) -> None:
    """Ticks of a logarithmic axis in plain numbers, the fewer in each decade the more decades it shows."""
    low, high = sorted(axis.get_view_interval())
    shown = math.log10(high / low)
    marks = (1, 1.5, 2, 3, 5, 7) if shown < 0.5 else (1, 2, 5) if shown < 1.3 else (1, 3) if shown < 2.2 else (1,)
    axis.set_major_locator(LogLocator(10, marks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
