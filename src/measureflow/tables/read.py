"""From a file to the numbers to cluster, with a reason for each column that is left out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

from measureflow.tables.files import read_bytes, read_file
from measureflow.tables.text import MISSING, is_quantity

IDENTIFIER = re.compile(r"(?i:(^|.*[_\s.-])(id|ids|index|idx|row|uuid)|unnamed: 0)|.*[a-z]I[dD]")
CODE = re.compile(r"(?i:(^|.*[_\s.-])(zip|zip ?code|zip_code|post ?code|postal_?code|plz|phone)([_\s.-].*|$))")
DATE = re.compile(r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})([ T].*)?")
ASK_FROM = 30  # rows, from which a column of distinct whole numbers is suspected of being an identifier


@dataclass(frozen=True)
class Table:
    """A file as it was read, the columns to look at, and why the others were skipped."""

    frame: pd.DataFrame
    columns: list[str]
    skipped: dict[str, str]

    @property
    def values(self) -> np.ndarray:
        """The numbers (n, d) of the columns to look at; what is missing is NaN."""
        return self.frame[self.columns].to_numpy(dtype=np.float64, na_value=np.nan)

    @property
    def numbers(self) -> pd.DataFrame:
        """The same numbers with the names of their columns."""
        return pd.DataFrame(self.values, columns=pd.Index(self.columns, dtype=object))

    @property
    def complete(self) -> np.ndarray:
        """Which rows have a finite number in each of the columns."""
        return np.asarray(np.isfinite(self.values).all(1))

    def notes(self) -> list[str]:
        """What its reader should know, in sentences: gaps, repeated rows, columns that may be identifiers."""
        n, gaps, repeated = len(self.frame), int((~self.complete).sum()), int(self.frame.duplicated().sum())
        out = [f"{n:,} rows, {gaps:,} of them with gaps left out"] if gaps else []
        if repeated:
            again = "1 row repeats" if repeated == 1 else f"{repeated:,} rows repeat"
            out.append(f"{again} another one; each counts as often as it occurs")
        for name, reason in self.skipped.items():
            if reason == "a code":
                out.append(f"Column {name!r} looks like a code, not a quantity, and is left out; choose it to use it")
            if reason == "text" and (stray := _stray(cast(pd.Series, self.frame[name]))):
                out.append(f"Column {name!r} would hold numbers but for {stray}, and is left out")
        for name in self.columns:
            if _may_identify(cast(pd.Series, self.frame[name])):
                out.append(f"Column {name!r} has another whole number in every row. Is it an identifier?")
        return out

    def insist_on_complete_rows(self) -> None:
        """A ValueError that names the first value that is missing, if any is."""
        bad = ~np.isfinite(self.values)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                f"{int(bad.any(1).sum())} rows have missing or infinite values, the first in column "
                f"{self.columns[column]!r} of row {row + 1}; --missing drop leaves such rows out"
            )


def read_table(source: str | Path | bytes, columns: list[str] | None = None) -> Table:
    """The numeric columns of a file or of its bytes, or those that are named; a ValueError says what is wrong."""
    return choose_columns(read_bytes(source) if isinstance(source, bytes) else read_file(source), columns)


def choose_columns(frame: pd.DataFrame, columns: list[str] | None = None) -> Table:
    """The columns that are named, or all that hold quantities which differ.

    >>> choose_columns(pd.DataFrame({"id": [1, 2, 3], "name": list("abc"), "x": [1.0, 2.0, 4.0]})).columns
    ['x']
    """
    reasons = {str(name): _unfit(cast(pd.Series, frame[name])) for name in frame.columns}
    if columns is None:
        used = [name for name, reason in reasons.items() if reason is None]
        skipped = {name: reason for name, reason in reasons.items() if reason is not None}
        if not used:
            raise ValueError(f"no column holds numbers to cluster ({_listed(frame, skipped)})")
        table = Table(frame, used, skipped)
    else:
        for name in columns:
            if name not in reasons:
                raise ValueError(f"there is no column {name!r}; there are {', '.join(reasons)}")
            if not _numeric(cast(pd.Series, frame[name])):
                raise ValueError(f"column {name!r} cannot be used: {_why(frame, name, str(reasons[name]))}")
        if len(set(columns)) < len(columns) or not columns:
            raise ValueError("columns must be named once each")
        table = Table(frame, list(columns), {name: "not asked for" for name in reasons if name not in columns})
    if not table.complete.any():
        raise ValueError(f"no row has a number in each of the columns {', '.join(table.columns[:8])}")
    return table


def _numeric(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and column.dtype.kind in "iuf"


def _unfit(column: pd.Series) -> str | None:
    """Why a column says nothing about clusters, if so."""
    present, name = column.dropna(), str(column.name).strip()
    if present.empty:
        return "empty"
    if not _numeric(column):
        return _kind(present)
    if len(present) <= len(column) / 2:
        return "mostly empty"
    if len(column) > 1 and (present == present.iloc[0]).all():
        return "constant"
    if CODE.fullmatch(name):
        return "a code"
    if IDENTIFIER.fullmatch(name) and present.is_unique and len(column) > 2:
        return "an identifier"
    if _whole(present):
        values = present.to_numpy(dtype=np.float64)
        order = np.sort(values) if len(values) >= ASK_FROM else values  # few numbers may fill a range by chance
        if len(present) == len(column) > 2 and (np.diff(order) == 1).all():
            return "a running number"
        if name.lower() == "year" and present.between(1500, 2200).all():
            return "dates"
    return None


def _kind(present: pd.Series) -> str:
    """What a column holds that are not numbers."""
    if present.dtype.kind == "M" or present.map(lambda cell: bool(DATE.fullmatch(str(cell)))).all():
        return "dates"
    if present.map(lambda cell: str(cell).strip().lower() in ("true", "false")).all():
        return "true or false"
    return "text"


def _whole(present: pd.Series) -> bool:
    values = present.to_numpy(dtype=np.float64)
    return bool((np.isfinite(values) & (values == np.floor(values))).all())


def _may_identify(column: pd.Series) -> bool:
    present = column.dropna()
    return len(present) == len(column) >= ASK_FROM and present.is_unique and _whole(present)


def _stray(column: pd.Series) -> str:
    """The first cell that is no number, and its row, in a column of which more than half the others are; else ""."""
    cells = column.reset_index(drop=True).dropna().map(lambda cell: str(cell).strip())
    cells = cells[~cells.isin(["", *MISSING])]
    odd = cells[~cells.map(is_quantity).astype(bool)]
    return f"{odd.iloc[0][:40]!r} in row {odd.index[0] + 1:,}" if 0 < 2 * len(odd) < len(cells) else ""


def _why(frame: pd.DataFrame, name: str, reason: str) -> str:
    """The reason to skip a column, with the cell that is to blame where it is one of few."""
    stray = _stray(cast(pd.Series, frame[name])) if reason == "text" else ""
    return f"text, as {stray}" if stray else reason


def _listed(frame: pd.DataFrame, skipped: dict[str, str]) -> str:
    shown = [f"{name}: {_why(frame, name, reason)}" for name, reason in list(skipped.items())[:8]]
    return ", ".join(shown) + (", ..." if len(skipped) > 8 else "")
