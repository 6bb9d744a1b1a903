"""The caller of the package, at whom its warnings point."""

from __future__ import annotations

import inspect
import traceback
import warnings
from itertools import takewhile
from types import FrameType

INSIDE = {"measureflow", "torch", "contextlib"}  # torch calls our modules, contextlib our decorated functions


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line that called the package, however deep inside it the cause was found."""
    inside = takewhile(_is_inside, (frame for frame, _ in traceback.walk_stack(inspect.currentframe())))
    warnings.warn(message, category, stacklevel=len(list(inside)) + 1)


def _is_inside(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE
