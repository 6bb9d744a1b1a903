"""Find an artefact, do its work, and write what it shows."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pandas as pd

PAPERS = ("zimin2025", "clarkson2025", "he2025", "castin2025")
SIZES = ("tiny", "small", "paper")


def artefacts(paper: str) -> tuple[str, ...]:
    """The names of a paper's tables and figures, in the order of the paper."""
    if paper not in PAPERS:
        raise ValueError(f"paper must be one of {', '.join(PAPERS)}, got {paper!r}")
    return importlib.import_module(f"measureflow.reproduce.{paper}").ARTEFACTS


def module_of(paper: str, artefact: str) -> ModuleType | object:
    """The module (or object with the same four names) that makes an artefact: "theorem2.1" lives in theorem2_1.py."""
    if artefact not in artefacts(paper):
        raise ValueError(f"{paper} has no artefact {artefact!r}; it has {', '.join(artefacts(paper))}")
    package = importlib.import_module(f"measureflow.reproduce.{paper}")
    shared = package.artefact(artefact) if hasattr(package, "artefact") else None
    return shared or importlib.import_module(f"{package.__name__}.{artefact.replace('.', '_')}")


def reproduce(paper: str, artefact: str, size: str = "small", out: str | Path = "out") -> list[Path]:
    """Make one artefact in ``out/<paper>/<artefact>/``: its tables (CSV), pictures (PNG, PDF) and findings (text)."""
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, got {size!r}")
    module = module_of(paper, artefact)
    folder = Path(out) / paper / artefact
    cache = folder / "cache" / size
    cache.mkdir(parents=True, exist_ok=True)
    tables = module.compute(size, cache)
    return [
        *_write_tables(tables, folder),
        *_write_pictures(module.render(tables), folder),
        _write_text(f"{module.TITLE}\n\n{module.findings(tables)}\n", folder / "findings.md"),
    ]


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
