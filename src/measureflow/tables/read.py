"""Tables from files: a CSV, TSV or Parquet file into numeric columns, and a reason for each that is left out."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd

SEPARATORS = (",", ";", "\t", "|")
PARQUET = (".parquet", ".pq")
MOST_COLUMNS = 10_000
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")


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

    def insist_on_complete_rows(self) -> None:
        """A ValueError that names the first value that is missing, if any is."""
        bad = ~np.isfinite(self.values)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                f"{int(bad.any(1).sum())} rows have missing or infinite values, the first in column "
                f"{self.columns[column]!r} of row {row + 1}; --missing drop leaves such rows out"
            )


def read_table(path: str | Path, columns: list[str] | None = None) -> Table:
    """The numeric columns of a file, or those that are named; a ValueError says what is wrong with it."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    return choose_columns(_parquet(path) if path.suffix.lower() in PARQUET else parse_csv(path.read_bytes()), columns)


def parse_csv(body: bytes) -> pd.DataFrame:
    """Rows of text into a frame: the separator is found, a first line of numbers is data and not names.

    >>> parse_csv(b"1,5;2\\n3,5;4\\n").to_numpy().tolist()
    [[1.5, 2.0], [3.5, 4.0]]
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("the file is not text in UTF-8 (is it a spreadsheet? Save it as CSV)") from None
    if not text.strip():
        raise ValueError("the file is empty")
    if "\0" in text:
        raise ValueError("the file is not a table of text")
    head = [line for line in text[:200_000].splitlines() if line.strip()][:20]
    separator = _separator(head)
    if max(line.count(separator) for line in head) >= MOST_COLUMNS:
        raise ValueError(f"the file has more than {MOST_COLUMNS} columns")
    first = head[0].split(separator)
    comma = separator != "," and any(DECIMAL_COMMA.fullmatch(cell) for line in head for cell in line.split(separator))
    header = None if all(_is_number(cell, comma) for cell in first) else 0
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            header=header,
            decimal="," if comma else ".",
            index_col=False,
            skipinitialspace=True,
            low_memory=False,
            on_bad_lines="error",
        )
    except (ValueError, OverflowError, RecursionError, pd.errors.ParserWarning) as error:  # ParserError is a ValueError
        raise ValueError(f"the file cannot be read as a table: {str(error).strip()}") from None
    if frame.empty:
        raise ValueError("the file has a line of names and no rows")
    frame.columns = [str(name) if header == 0 else f"x{name}" for name in frame.columns]
    return frame


def choose_columns(frame: pd.DataFrame, columns: list[str] | None = None) -> Table:
    """The columns that are named, or all that hold numbers which differ and are not a running number.

    >>> choose_columns(pd.DataFrame({"id": [1, 2, 3], "name": list("abc"), "x": [1.0, 2.0, 4.0]})).columns
    ['x']
    """
    reasons = {str(name): _unfit(cast(pd.Series, frame[name])) for name in frame.columns}
    if columns is None:
        used = [name for name, reason in reasons.items() if reason is None]
        skipped = {name: reason for name, reason in reasons.items() if reason is not None}
        if not used:
            raise ValueError(f"no column holds numbers to cluster ({_listed(skipped)})")
        return Table(frame, used, skipped)
    for name in columns:
        if name not in reasons:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(reasons)}")
        if not _numeric(cast(pd.Series, frame[name])):
            raise ValueError(f"column {name!r} cannot be used: {reasons[name]}")
    if len(set(columns)) < len(columns) or not columns:
        raise ValueError("columns must be named once each")
    return Table(frame, list(columns), {name: "not asked for" for name in reasons if name not in columns})


def _parquet(path: Path) -> pd.DataFrame:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise ValueError("Parquet files need pyarrow: pip install 'measureflow[parquet]'") from None
    from pyarrow import ArrowException

    try:
        frame = parquet.read_table(path).to_pandas()
    except (ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{path.name} cannot be read as Parquet: {str(error).strip()}") from None
    if frame.empty:
        raise ValueError("the file has no rows")
    names = [str(name) for name in frame.columns]
    frame.columns = names
    if len(set(names)) < len(names):
        raise ValueError("two columns have the same name")
    return frame.reset_index(drop=True)


def _separator(head: list[str]) -> str:
    """The one that parts all lines alike, into the most cells; a comma, which numbers may hold too, comes last."""
    counts = {sep: [line.count(sep) for line in head] for sep in SEPARATORS}
    steady = {sep: n[0] for sep, n in counts.items() if n[0] and len(set(n)) == 1}
    steady = steady or {sep: min(n) for sep, n in counts.items() if min(n)}
    return max(steady, key=lambda sep: (sep != ",", steady[sep]), default=",")


def _is_number(cell: str, comma: bool) -> bool:
    try:
        float(cell.replace(",", ".") if comma else cell)
    except ValueError:
        return False
    return True


def _numeric(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and column.dtype.kind in "iuf"


def _unfit(column: pd.Series) -> str | None:
    """Why a column says nothing about clusters, if so."""
    present = column.dropna()
    if present.empty:
        return "empty"
    if not _numeric(column):
        return "text" if column.dtype.kind in "OTU" or str(column.dtype) in ("str", "string") else "not numbers"
    if (present == present.iloc[0]).all():
        return "constant"
    if column.dtype.kind in "iu" and len(column) > 2 and (np.diff(column.to_numpy().astype(np.float64)) == 1).all():
        return "a running number"
    if str(column.name).strip().lower() in ("id", "index", "row", "unnamed: 0") and present.is_unique:
        return "an identifier"
    return None


def _listed(skipped: dict[str, str]) -> str:
    shown = [f"{name}: {reason}" for name, reason in list(skipped.items())[:8]]
    return ", ".join(shown) + (", ..." if len(skipped) > 8 else "")
