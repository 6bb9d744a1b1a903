"""Text into a frame: the encoding, the separator, the decimal mark and the marks of missing values are found."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE

import numpy as np
import pandas as pd

SEPARATORS = (",", ";", "\t", "|")
MOST_COLUMNS = 10_000
MISSING = ["?", "-", "--", ".", "na", "missing"]  # beside those that pandas knows: an empty cell, NA, NaN, null ...
NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")
THOUSANDS = re.compile(r"\s*[-+]?\d{1,3}(,\d{3})+(\.\d*)?\s*")
UNIT = re.compile(r"^([-+]?)\s*([$€£¥])\s*(?=[\d.])|\s*([$€£¥%])$")  # before a number, or behind it
MARKUP = re.compile(r"\s*<(!doctype|html|\?xml)", re.IGNORECASE)
CONTROL = re.compile("[\x00-\x08\x0e-\x19\x1b-\x1f]")  # what a text does not hold


def decode(body: bytes) -> str:
    """The text of a file in UTF-8, UTF-16 or, where it is neither, Latin-1 as Windows writes it.

    >>> decode("größe".encode("latin-1")) == decode("größe".encode("utf-16")) == "größe"
    True
    """
    if not body.strip():
        raise ValueError("the file is empty")
    encodings = ("utf-8-sig", "cp1252", "latin-1")
    if body.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        encodings = ("utf-16",)
    elif not body.startswith(BOM_UTF8) and b"\0" in body[1:200:2] + body[0:200:2]:
        encodings = ("utf-16-le" if body[1:200:2].count(0) > body[0:200:2].count(0) else "utf-16-be",)
    for encoding in encodings:
        try:
            text = body.decode(encoding)
        except UnicodeDecodeError:
            continue
        if not text.strip():
            raise ValueError("the file is empty")
        if CONTROL.search(text):
            break
        return text
    raise ValueError("the file is neither a table of text nor an Excel or Parquet file")


def parse_text(text: str) -> pd.DataFrame:
    """A frame of text that is CSV, JSON lines or a JSON list."""
    if MARKUP.match(text):
        raise ValueError("the file is a web page or XML, not a table")
    first = text.lstrip()[:1]
    frame = parse_json(text) if first in ("{", "[") else parse_csv(without_remarks(text))
    for name in frame.columns:
        frame[name] = as_numbers(frame[name], frame.attrs.get("decimal", ".") == ",")
    return frame


def without_remarks(text: str) -> str:
    """The text with blank lines for those at its start that begin with "#"; names of columns in the last of them stay.

    >>> without_remarks("# made by a program\\n# x,y\\n1,2\\n")
    '\\nx,y\\n1,2\\n'
    """
    lines = text.splitlines(keepends=True)
    start = next((i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), 0)
    remarks = [line.strip().lstrip("#").strip() for line in lines[:start]]
    if not any(remarks):
        return "\n" * start + "".join(lines[start:]) if start else text
    head = [line for line in lines[start : start + 20] if line.strip()]
    separator = find_separator(head)
    cells = parted(head[0], separator)
    last = max(i for i, remark in enumerate(remarks) if remark)
    named = len(cells) > 1 and len(parted(remarks[last], separator)) == len(cells)
    named = named and all(not cell.strip() or _is_number(cell, separator != ",") for cell in cells)
    kept = [remark if named and i == last else "" for i, remark in enumerate(remarks)]
    return "".join([line + "\n" for line in kept] + lines[start:])


def parse_csv(text: str) -> pd.DataFrame:
    """Lines of cells; the separator is found, and a first line of numbers is data and not names.

    >>> parse_csv("1,5;2\\n3,5;4\\n").to_numpy().tolist()
    [[1.5, 2.0], [3.5, 4.0]]
    """
    head = [line for line in text[:200_000].splitlines() if line.strip()][:20]
    separator = find_separator(head)
    if separator == " ":
        return parse_csv(tabbed(text))
    if max(line.count(separator) for line in head) >= MOST_COLUMNS:
        raise ValueError(f"the file has more than {MOST_COLUMNS} columns")
    cells = [UNIT.sub(r"\1", cell.strip()) for line in head for cell in line.split(separator)]
    comma = separator != "," and any(DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    first = [cell.strip().strip('"') for cell in head[0].split(separator)]
    header = None if all(not cell or _is_number(cell, comma) for cell in first) and any(first) else 0
    options = {"sep": separator, "header": header, "decimal": "," if comma else ".", "na_values": MISSING}
    options |= {"index_col": False, "skipinitialspace": True, "low_memory": False}
    try:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)  # it would lose cells
                frame = pd.read_csv(io.StringIO(text), **options)
        except (pd.errors.ParserError, pd.errors.ParserWarning):
            width = width_of(text, separator, named=header == 0)
            frame = pd.read_csv(io.StringIO(text), **options, usecols=list(range(width)))
    except (ValueError, OverflowError, RecursionError, csv.Error) as error:  # ParserError is a ValueError
        why = str(error).rpartition("C error: ")[-1].strip()  # pandas's words behind those about its own workings
        why = "a quotation mark is opened and never closed" if why.startswith("EOF inside string") else why
        raise ValueError(f"the file cannot be read as a table: {why}") from None
    if frame.empty:
        raise ValueError("the file has a line of names and no rows")
    frame.columns = distinct_names([str(name).strip() if header == 0 else f"x{name}" for name in frame.columns])
    frame.attrs["decimal"] = "," if comma else "."
    return frame


def width_of(text: str, separator: str, *, named: bool) -> int:
    """The number of cells in the first line that has any; a ValueError names the first line that fills more of them.

    >>> width_of("a,b\\n1,2,\\n", ",", named=True)
    2
    """
    lines = csv.reader(io.StringIO(text, newline=None), delimiter=separator, skipinitialspace=True)
    width, line = 0, 1
    for cells in lines:
        while len(cells) > width > 0 and not cells[-1].strip():
            cells.pop()
        if len(cells) > width > 0:
            first = "line of names" if named else "first line"
            raise ValueError(f"line {line} has {len(cells)} cells, the {first} has {width}")
        width, line = width or len(cells), lines.line_num + 1
    return width


def parse_json(text: str) -> pd.DataFrame:
    """A list of objects or of rows, or one object on each line."""
    try:
        try:
            found = json.loads(text)
        except ValueError:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the file begins as JSON and cannot be read as such: {error}") from None
    rows = found if isinstance(found, list) else [found]
    if rows and all(isinstance(row, dict) for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        cells = [[row.get(name) for name in names] for row in rows]
    elif rows and all(isinstance(row, list) for row in rows) and len({len(row) for row in rows}) == 1 and rows[0]:
        names, cells = [f"x{j}" for j in range(len(rows[0]))], rows
    else:
        raise ValueError("the file is JSON, but neither a list of objects nor of rows of one length")
    if any(isinstance(cell, (dict, list)) for row in cells for cell in row):
        raise ValueError("the file is JSON whose rows hold lists or objects; a table has one value in each cell")
    names = distinct_names([str(name).strip() for name in names])
    columns = ([row[j] for row in cells] for j in range(len(names)))
    return pd.DataFrame({name: pd.Series(cells).infer_objects() for name, cells in zip(names, columns, strict=True)})


def distinct_names(names: list[str]) -> list[str]:
    """The names, those that are empty or taken made into others as pandas does: "Unnamed: 0", "a.1"."""
    seen: dict[str, int] = {}
    out = []
    for j, name in enumerate(names):
        name = name or f"Unnamed: {j}"
        while name in seen:
            seen[name] += 1
            name = f"{name}.{seen[name]}"
        seen[name] = 0
        out.append(name)
    return out


def as_numbers(column: pd.Series, comma: bool = False) -> pd.Series:
    """A column of texts as numbers, if all that is not missing is one; "1,200" counts as one, "?" as missing.

    Amounts of one currency and percentages are numbers too. With ``comma`` that is the decimal mark.

    >>> as_numbers(pd.Series(["$1,200", "?", "$30"])).tolist()
    [1200.0, nan, 30.0]
    """
    if column.dtype.kind not in "OTU" and str(column.dtype) not in ("str", "string"):
        return column
    cells = column.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    cells = cells.where(~cells.isin(["", *MISSING]) & cells.notna(), None)
    present = cells.dropna()
    if present.empty or present.map(lambda cell: isinstance(cell, bool)).any():
        return column
    texts = present.map(str)
    units = {"".join(found[1:]) for cell in texts for found in UNIT.findall(cell)}
    if len(units) == 1:
        texts = texts.map(lambda cell: UNIT.sub(r"\1", cell, count=1))
    if comma:
        texts = texts.map(lambda cell: cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell) else cell)
    if not texts.map(lambda cell: bool(NUMBER.fullmatch(cell) or THOUSANDS.fullmatch(cell))).all():
        return column
    out = pd.Series(np.nan, index=column.index, name=column.name)
    out[present.index] = [float(cell.replace(",", "")) for cell in texts]
    return out


def find_separator(head: list[str]) -> str:
    """The separator that parts all lines alike, into the most cells; a comma, which numbers may hold too, comes last.

    Spaces separate where nothing else does, and all lines alike.

    `csv.Sniffer` takes the comma of "1,5;2,5" for the separator where no names stand above, and gives up on lines of
    different lengths.

    >>> find_separator(["1,5;2,5", "1,25;3,5"])
    ';'
    """
    bare = [re.sub('"[^"]*"', "", line) for line in head]  # what is quoted separates nothing
    counts = {sep: [line.count(sep) for line in bare] for sep in SEPARATORS}
    steady = {sep: n[0] for sep, n in counts.items() if n[0] and len(set(n)) == 1}
    steady = steady or {sep: min(n) for sep, n in counts.items() if min(n)}
    by_spaces = {len(parted(re.sub('"[^"]*"', "quoted", line), " ")) for line in head}
    spaces = " " if len(by_spaces) == 1 and by_spaces != {1} else ","
    return max(steady, key=lambda sep: (sep != ",", steady[sep]), default=spaces)


def parted(line: str, separator: str) -> list[str]:
    """The cells of a line; several spaces part no more than one."""
    return line.split() if separator == " " else line.strip().split(separator)


def tabbed(text: str) -> str:
    """Lines whose cells are parted by spaces, with tabs in their place; spaces inside quotes stay.

    >>> tabbed(' x  name\\n 1  "a b"\\n')
    'x\\tname\\n1\\t"a b"\\n'
    """
    lines = re.sub(r"\r\n?", "\n", text).split("\n")
    return "\n".join(re.sub(r'("[^"]*")|\s+', lambda found: found[1] or "\t", line.strip()) for line in lines)


def is_quantity(cell: str) -> bool:
    """Whether a cell alone would be read as a number, an amount of money or a percentage."""
    bare = UNIT.sub(r"\1", cell, count=1)
    return any(kind.fullmatch(bare) for kind in (NUMBER, THOUSANDS, DECIMAL_COMMA))


def _is_number(cell: str, comma: bool) -> bool:
    return bool(NUMBER.fullmatch(cell.replace(",", ".") if comma else cell))
