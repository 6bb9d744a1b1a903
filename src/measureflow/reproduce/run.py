"""Find an artefact, do its work, and write what it shows."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from measureflow.reproduce.provenance import code_digest, commit, computing_digest, stale, weight_digests

PAPERS = ("zimin2025", "clarkson2025", "he2025", "castin2025")
SIZES = ("tiny", "small", "paper")


def artefacts(paper: str) -> tuple[str, ...]:
    """The names of a paper's tables and figures, in the order of the paper."""
    return tuple(_places(paper))


def _places(paper: str) -> dict[str, str]:
    """Where each artefact of a paper lives: a module of its package, or ``module:name`` of one that holds several."""
    if paper not in PAPERS:
        raise ValueError(f"paper must be one of {', '.join(PAPERS)}, got {paper!r}")
    return importlib.import_module(f"measureflow.reproduce.{paper}").ARTEFACTS


def module_of(paper: str, artefact: str) -> Any:
    """The module that makes an artefact, or the object with the same names in the ``BY_NAME`` of a shared module."""
    places = _places(paper)
    if artefact not in places:
        raise ValueError(f"{paper} has no artefact {artefact!r}; it has {', '.join(places)}")
    place, _, name = places[artefact].partition(":")
    module = importlib.import_module(f"measureflow.reproduce.{paper}.{place}")
    return module.BY_NAME[name] if name else module


def reproduce(paper: str, artefact: str, size: str = "small", out: str | Path = "out") -> list[Path]:
    """Make one artefact in ``out/<paper>/<artefact>/``: tables (CSV), pictures (PNG, PDF), verdicts and findings.

    ``run.json`` records size, budget, processor seconds, commit, and digests of code and weights. A run whose size and
    digests are those of the record is not done again; where only what shows the tables has changed, they are read back.
    """
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, got {size!r}")
    module = module_of(paper, artefact)
    folder = Path(out) / paper / artefact
    old = read_record(folder)
    if old is not None and old["size"] == size and not stale(old, module):
        return [folder / name for name in old["files"]]
    cache = folder / "cache" / size
    cache.mkdir(parents=True, exist_ok=True)
    made_by = _digests(module)  # before the work: a file may change while it runs
    tables = _kept_tables(old, {"size": size, **made_by}, folder)
    if tables is None:
        with _clock(cache / "seconds"):
            tables = module.compute(size, cache)
    shown = module.tabulate(tables) if hasattr(module, "tabulate") else {}
    files = [
        *_write_tables(tables, folder),
        *_write_pictures(module.render(tables), folder),
        *(_write_text(as_markdown(table), folder / f"{name}.table.md") for name, table in shown.items()),
        _write_text(f"{module.TITLE}\n\n{module.findings(tables)}\n", folder / "findings.md"),
    ]
    record = {
        "title": module.TITLE, "size": size, "budget": module.budget(size), "seconds": _seconds(cache / "seconds"),
        **made_by, "verdicts": [vars(verdict) for verdict in module.verdicts(tables)],
        "files": [file.name for file in files],
    }  # fmt: skip
    _write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", folder / "run.json")
    return files


def _digests(module: Any) -> dict[str, Any]:
    """What a run is made by: the commit, and digests of code and weights."""
    return {
        "commit": commit(), "code": code_digest(module), "computing": computing_digest(module),
        "weights": weight_digests(getattr(module, "WEIGHTS", ())),
    }  # fmt: skip


def _kept_tables(old: dict | None, now: dict[str, Any], folder: Path) -> dict[str, pd.DataFrame] | None:
    """The tables of the run in a folder, if nothing that they were computed by has changed since."""
    if old is None or any(old.get(name) != now[name] for name in ("size", "computing", "weights")):
        return None
    names = [name for name in old["files"] if name.endswith(".csv")]
    return {name.removesuffix(".csv"): pd.read_csv(folder / name) for name in names}


@contextmanager
def _clock(path: Path) -> Iterator[None]:
    """Add the processor time spent inside to what the file says: a run that was stopped and went on counts it all."""
    began = time.process_time()
    try:
        yield
    finally:
        path.write_text(f"{_seconds(path) + time.process_time() - began:.1f}\n", encoding="utf-8")


def _seconds(path: Path) -> float:
    return float(path.read_text(encoding="utf-8")) if path.exists() else 0.0


def read_record(folder: Path) -> dict | None:
    """The record of the run in a folder, None if there is none or a file of it has gone."""
    path = folder / "run.json"
    if not path.is_file():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    return record if all((folder / name).is_file() for name in record["files"]) else None


def as_markdown(table: pd.DataFrame) -> str:
    """A table in Markdown, one line a row.

    >>> print(as_markdown(pd.DataFrame({"a": [1, 2], "b": ["x|y", None]})), end="")
    | a | b |
    |---|---|
    | 1 | x\\|y |
    | 2 |  |
    """
    lines = [list(table.columns), ["---"] * table.shape[1], *table.astype(object).where(table.notna(), "").to_numpy()]
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    rows = [f"| {' | '.join(line)} |" for line in cells]
    rows[1] = rows[1].replace(" ", "")
    return "\n".join(rows) + "\n"


def _write_tables(tables: dict[str, pd.DataFrame], folder: Path) -> list[Path]:
    paths = [folder / f"{name}.csv" for name in tables]
    for path, table in zip(paths, tables.values(), strict=True):
        table.to_csv(path, index=False)
    return paths


def _write_pictures(figures: dict, folder: Path) -> list[Path]:
    import matplotlib.pyplot as plt

    paths = []
    for name, figure in figures.items():
        for ending in ("png", "pdf"):
            paths.append(folder / f"{name}.{ending}")
            figure.savefig(paths[-1], dpi=160, bbox_inches="tight")
        plt.close(figure)
    return paths


def _write_text(text: str, path: Path) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
