"""How far a long artefact is: lines, which pass above the bar of the command line and into a log alike."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def counted(items: Sequence[Item], title: str) -> Iterator[Item]:
    """The items one after the other, with a line on stderr when each is done."""
    for number, item in enumerate(items, start=1):
        yield item
        print(f"{title}: {number} of {len(items)}", file=sys.stderr)
