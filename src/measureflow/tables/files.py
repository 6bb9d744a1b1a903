"""Bytes of a file into a frame: text, Excel or Parquet, gzipped or not, told apart by how they begin."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path
from typing import cast

import pandas as pd

from measureflow.tables.text import as_numbers, decode, distinct_names, parse_text

GZIP, PARQUET, ZIP, OLD_EXCEL = b"\x1f\x8b", b"PAR1", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
LARGEST = 2**31  # bytes that a gzipped file may unpack to


def read_file(path: str | Path) -> pd.DataFrame:
    """The table in a file; a ValueError says what is wrong with it."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it")
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        return read_bytes(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {str(error.strerror).lower()}") from None


def read_bytes(body: bytes) -> pd.DataFrame:
    """The table in the bytes of a file.

    >>> read_bytes(b"name;x\\na;1,5\\nb;?\\n").to_numpy().tolist()
    [['a', 1.5], ['b', nan]]
    """
    if body.startswith(GZIP):
        body = _unpacked(body)
    if body.startswith(PARQUET):
        return _whole(_parquet(body))
    if body.startswith(ZIP) and _is_archive(body):
        raise ValueError("the file is a zip archive: unpack it, and take the table inside")
    if body.startswith((ZIP, OLD_EXCEL)):
        return _whole(_excel(body))
    return parse_text(decode(body))


def is_text(body: bytes) -> bool:
    """Whether the bytes are neither Excel nor Parquet nor gzipped, which a browser does not read."""
    return not body.startswith((GZIP, PARQUET, ZIP, OLD_EXCEL))


def _unpacked(body: bytes) -> bytes:
    try:
        unpacker = zlib.decompressobj(wbits=31)
        whole = unpacker.decompress(body, LARGEST)
    except zlib.error as error:
        raise ValueError(f"the file begins as gzip and cannot be unpacked: {error}") from None
    if not unpacker.eof:
        raise ValueError("the gzipped file is cut short or unpacks to more than 2 GB")
    return whole


def _is_archive(body: bytes) -> bool:
    """Whether a zip file is no spreadsheet: those of Excel and LibreOffice say what they are in one of these parts."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            return not {"[Content_Types].xml", "mimetype"} & set(archive.namelist())
    except zipfile.BadZipFile:
        return False


def _parquet(body: bytes) -> pd.DataFrame:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise ValueError("Parquet files need pyarrow: pip install 'measureflow[parquet]'") from None
    from pyarrow import ArrowException

    try:
        return parquet.read_table(io.BytesIO(body)).to_pandas()
    except (ArrowException, OSError, ValueError) as error:
        raise ValueError(f"the file cannot be read as Parquet: {str(error).strip()}") from None


def _excel(body: bytes) -> pd.DataFrame:
    """The first sheet that holds anything; its first row holds the names unless it is all numbers."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise ValueError("Excel files need python-calamine: pip install 'measureflow[excel]'") from None

    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(body))
        sheets = (book.get_sheet_by_index(i).to_python() for i in range(len(book.sheet_names)))
        rows = next((rows for rows in sheets if rows), [])
    except (CalamineError, ValueError, OSError) as error:
        raise ValueError(f"the file cannot be read as a spreadsheet: {str(error).strip()}") from None
    if not rows:
        raise ValueError("the spreadsheet is empty")
    named = any(isinstance(cell, str) and cell.strip() for cell in rows[0])
    names = [str(cell).strip() if named else f"x{j}" for j, cell in enumerate(rows[0])]
    columns = zip(*(rows[1:] if named else rows), strict=True)
    cells = [pd.Series([None if cell == "" else cell for cell in column]).infer_objects() for column in columns]
    return pd.DataFrame(dict(zip(distinct_names(names), cells, strict=bool(cells))))


def _whole(frame: pd.DataFrame) -> pd.DataFrame:
    if frame.empty:
        raise ValueError("the file has no rows")
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise ValueError("two columns have the same name")
    frame.columns = names
    for name in names:
        frame[name] = as_numbers(cast(pd.Series, frame[name]))
    return frame.reset_index(drop=True)
