"""Two small real data sets, bundled; their origin and licence are in ``data/README.md``."""

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["load_faithful", "load_penguins"]


def load_faithful() -> "DataFrame":
    """272 eruptions of the Old Faithful geyser: how long each lasted and the wait for the next, in minutes.

    >>> load_faithful().head(3)
       eruptions  waiting
    0      3.600       79
    1      1.800       54
    2      3.333       74
    """
    return _read("faithful.csv")


def load_penguins() -> "DataFrame":
    """344 Antarctic penguins: species, island, four measurements, sex and year; some entries are missing.

    >>> penguins = load_penguins()
    >>> penguins.shape
    (344, 8)
    >>> penguins.groupby("species").size().to_dict()
    {'Adelie': 152, 'Chinstrap': 68, 'Gentoo': 124}
    """
    return _read("penguins.csv")


def _read(name: str) -> "DataFrame":
    import pandas  # here, so that importing this module stays cheap

    with files("measureflow.data").joinpath(name).open(encoding="utf-8") as table:
        return pandas.read_csv(table)
