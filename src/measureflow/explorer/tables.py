"""Tables as they come from outside: bytes of a CSV or a JSON list of rows, into numbers, or a plain reason why not."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Table:
    """The complete rows of the numeric columns, and how many rows had to be left out."""

    columns: list[str]
    values: np.ndarray  # (n, d)
    dropped: int


def read_csv(body: bytes) -> Table:
    """The numeric columns of a CSV; a first line of numbers is data, not names.

    >>> read_csv(b"name,x,y\\na,1,2\\nb,3,\\nc,5,6\\n")
    Table(columns=['x', 'y'], values=array([[1., 2.], [5., 6.]]), dropped=1)
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("the file is not text in UTF-8") from None
    if "\0" in text or not text.strip():
        raise ValueError("the file is empty" if not text.strip() else "the file is not a table of text")
    header = None if _numbers(text.lstrip().split("\n", 1)[0].split(",")) else 0
    try:
        frame = pd.read_csv(io.StringIO(text), header=header, skipinitialspace=True, low_memory=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, OverflowError) as error:
        raise ValueError(f"the file is not a CSV: {str(error).strip()}") from None
    frame.columns = [str(name) if header == 0 else f"x{name}" for name in frame.columns]
    numeric = frame.select_dtypes("number").astype(float)
    if numeric.shape[1] == 0:
        raise ValueError("no column of the file holds numbers only")
    return _complete(list(numeric.columns), numeric.to_numpy())


def read_json(body: bytes) -> tuple[Table, dict]:
    """Rows of numbers under ``points``, and everything else that was said."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the body is not JSON: {error}") from None
    if not isinstance(said, dict) or "points" not in said:
        raise ValueError('the body must be a table with "points", a list of rows')
    try:
        values = np.asarray(said.pop("points"), dtype=float)
    except (TypeError, ValueError):
        raise ValueError("points must be rows of numbers, all of one length") from None
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError("points must be rows of numbers, all of one length")
    return _complete([f"x{j}" for j in range(values.shape[1])], values), said


def _complete(columns: list[str], values: np.ndarray) -> Table:
    whole = np.isfinite(values).all(1)
    if whole.sum() < 2:
        raise ValueError("fewer than two rows are complete")
    return Table(columns, values[whole], int((~whole).sum()))


def _numbers(cells: list[str]) -> bool:
    try:
        return all(float(cell) == float(cell) for cell in cells)
    except ValueError:
        return False
