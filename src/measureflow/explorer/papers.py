"""What `measureflow reproduce` has left in a folder, beside the numbers the papers print."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

TITLES = {
    "zimin2025": "Zimin 2025: a learned flow onto the mixing measure",
    "clarkson2025": "Clarkson 2025: transformers that are k-means",
    "he2025": "He 2025: transformers that are EM",
    "castin2025": "Castin 2025: the Transformer PDE",
}
ROWS = 10  # of a table shown on the page
COMMAND = (sys.executable, "-m", "measureflow.cli", "reproduce")
LONGEST = 900  # seconds that making one artefact may take
SHIPPED = Path(__file__).parent / "static" / "papers"  # what docs/papers shows, in folders as those of results


Records = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by paper and name: what a run that ships recorded


def shelf(results: Path, artefacts: Mapping[str, Sequence[str]], records: Records) -> list[dict[str, Any]]:
    """Every paper with its tables and figures, those made so far with what they show."""
    names = {paper: list(artefacts.get(paper, ())) for paper in TITLES}
    return [
        {
            "paper": paper,
            "title": TITLES[paper],
            "artefacts": [_artefact(results, paper, name, records) for name in wanted],
        }
        for paper, wanted in names.items()
    ]


def _artefact(results: Path, paper: str, name: str, records: Records) -> dict[str, Any]:
    folder = results / paper / name
    file, shipped = folder / "findings.md", _shipped().get(f"{paper}-{name}", {})
    title, _, text = file.read_text(encoding="utf-8").partition("\n") if file.is_file() else ("", "", "")
    said, _, found = (text.strip() or shipped.get("findings", "")).partition("Found")
    made = file.is_file()
    return {
        "name": name,
        "title": title.partition(": ")[2] or shipped.get("title", ""),
        "said": said.strip() if found else "",
        "found": found.lstrip(":, ").strip() if found else said.strip(),
        "verdicts": _verdicts(folder, records.get(paper, {}).get(name, {})),
        "made": made,
        "face": None if made else shipped.get("face"),
        "size": "" if made else shipped.get("size", ""),
        "pictures": _names(results, paper, name, ".png"),
        "tables": _names(results, paper, name, ".csv"),
        "printed": _printed(paper, name),
        "command": f"measureflow reproduce {paper} {name} --size tiny",
    }


def _home(results: Path, paper: str, name: str) -> Path:
    """The folder that shows an artefact: the one made here, else the one that ships."""
    own = results / paper / name
    return own if (own / "findings.md").is_file() else SHIPPED / paper / name


def _names(results: Path, paper: str, name: str, ending: str) -> list[str]:
    return sorted(f"{paper}/{name}/{file.name}" for file in _home(results, paper, name).glob(f"*{ending}"))


def _verdicts(folder: Path, shipped: Mapping[str, Any]) -> list[dict[str, str]]:
    """Each claim of the paper, what is printed of it, what was found, and the verdict; of the run made here, if any."""
    own = folder / "run.json"
    record = json.loads(own.read_text(encoding="utf-8")) if own.is_file() else shipped
    return list(record.get("verdicts", ()))


@lru_cache(maxsize=1)
def _shipped() -> dict[str, dict[str, Any]]:
    """What the package says of each artefact, by paper and name."""
    file = SHIPPED / "shelf.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def make(results: Path, paper: str, name: str, records: Records) -> dict[str, Any]:
    """Make one artefact at size tiny in a process of its own; a ValueError carries what it complained of."""
    command = [*COMMAND, paper, name, "--size", "tiny", "--out", str(results)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        raise ValueError(f"it took longer than {LONGEST // 60} minutes; run the command in a terminal") from None
    if done.returncode:
        raise ValueError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it failed without a message")
    return _artefact(results, paper, name, records)


@lru_cache(maxsize=256)
def _printed(paper: str, name: str) -> list[dict[str, Any]]:
    file = files("measureflow") / "reproduce" / "published" / f"{paper}.csv"
    if not file.is_file():
        return []
    with file.open(encoding="utf-8") as text:
        table = pd.read_csv(text)
    return table.query("table == @name").drop(columns="table").to_dict("records")


def find(results: Path, paper: str, name: str, file: str, ending: str) -> Path | None:
    """A file of an artefact, or None: names that lead out of its folder find nothing."""
    if paper not in TITLES:
        return None
    home = _home(results, paper, name).resolve()
    path = (home / file).resolve()
    inside = any(home.parent == (root / paper).resolve() for root in (results, SHIPPED)) and path.parent == home
    return path if inside and path.suffix == ending and path.is_file() else None


def table(path: Path) -> dict[str, Any]:
    """The head of a table, numbers that are missing as None, and how many rows there are."""
    frame = pd.read_csv(path)
    total, frame = len(frame), frame.head(ROWS)
    return {
        "total": total,
        "columns": list(frame.columns),
        "rows": frame.astype(object).where(frame.notna(), None).to_numpy().tolist(),
    }
