"""Run the benchmarks and keep their tables: ``python benchmarks/run.py [name ...] [--list]``.

A benchmark is a file ``bench_<name>.py`` in this folder or one below it, with a function ``rows()``;
benchmarks/README.md says what it returns. Speed is always a ratio against a peer, timed in the same run with the same
threads. Results saved in their usual place are also written into the pages that show them (pages.py).
"""

import argparse
import datetime
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.table import Table

from figures.cells import table

HERE = Path(__file__).parent
RESULTS = HERE / "results"
KEYS = ("name", "ours_s", "peer_s", "ratio", "target", "met", "note")
HEADINGS = ("what", "ours", "peer", "ratio", "target", "met", "note")


def available() -> dict[str, Path]:
    """Every benchmark file by its short name, ``bench_transport.py`` being ``transport``."""
    return {path.stem.removeprefix("bench_"): path for path in sorted(HERE.rglob("bench_*.py"))}


def load(path: Path) -> ModuleType:
    """Import a benchmark by its file; its folder becomes importable too, so that benchmarks can share code."""
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def checked(rows: list[dict], name: str) -> list[dict]:
    """Refuse a row with a missing or unknown key, so that the saved tables stay comparable."""
    for row in rows:
        if set(row) != set(KEYS):
            raise ValueError(f"bench_{name}: a row must have exactly the keys {KEYS}, got {tuple(row)}")
    return [{key: plain(row[key]) for key in KEYS} for row in rows]


def plain(value):
    """A Python number for a NumPy or torch one, so that it can be written as JSON."""
    return value.item() if hasattr(value, "item") else value


def machine() -> dict:
    """What the numbers were measured on, in words that identify no particular host."""
    import torch

    return {
        "cpu": cpu_model(),
        "cpus": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "numba_threads": numba_threads(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": metadata.version("numpy"),
    }


def commit() -> str | None:
    """The commit that was measured, with a plus where the tree had changed since; None outside a repository."""
    git = ["git", "-C", str(HERE), "describe", "--always", "--dirty=+", "--abbrev=8", "--exclude=*"]
    found = subprocess.run(git, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def numba_threads() -> int:
    import numba

    return numba.get_num_threads()


def cpu_model() -> str:
    """The processor's name as the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        if found:
            return found.group(1)
    return platform.processor() or platform.machine()


def processor(model: str, architecture: str) -> str:
    """The make of a processor, which names the folder of its results: ratios differ between makes.

    >>> processor("Intel(R) Xeon(R) Platinum", "x86_64"), processor("arm", "arm64")
    ('Intel', 'ARM')
    """
    for make in ("AMD", "Intel"):
        if make.lower() in model.lower():
            return make
    return "ARM" if architecture.lower().startswith(("arm", "aarch")) else "other"


def shown(value: object) -> str:
    """One table cell: seconds and ratios to three figures, verdicts in words."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)


def print_table(group: str, rows: list[dict], console: Console) -> None:
    grid = Table(*HEADINGS, title=group)
    for row in rows:
        style = "red" if row["met"] is False else None
        grid.add_row(*(shown(row[key]) for key in KEYS), style=style)
    console.print(grid)


def markdown(group: str, rows: list[dict], facts: dict, date: str) -> str:
    """The same table to read in the repository."""
    lines = [f"# {group}", "", f"{date}. " + ", ".join(f"{key} {value}" for key, value in facts.items()), ""]
    lines += ["Times in seconds; ratio is peer / ours unless the note says otherwise.", ""]
    lines += [table(list(HEADINGS), [[shown(row[key]) for key in KEYS] for row in rows])]
    return "\n".join(lines) + "\n"


def save(group: str, rows: list[dict], facts: dict, folder: Path, measured: str | None = None) -> None:
    """Write ``<group>.json`` and ``<group>.md``, in a folder for the make of processor."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    folder = folder / processor(facts["cpu"], platform.machine())
    folder.mkdir(parents=True, exist_ok=True)
    record = {"group": group, "date": date, "commit": measured, "machine": facts, "rows": rows}
    (folder / f"{group}.json").write_text(json.dumps(record, indent=2) + "\n")
    (folder / f"{group}.md").write_text(markdown(group, rows, facts, date))


def run(names: list[str], benchmarks: dict[str, Path], folder: Path, console: Console) -> list[dict]:
    """Run the named benchmarks; a group shared by several files gets one table."""
    groups: dict[str, list[dict]] = {}
    measured = commit()  # before: the tree may move while a benchmark runs
    for name in names:
        console.print(f"Running {name} ...")
        module = load(benchmarks[name])
        rows: Callable[[], list[dict]] = module.rows
        groups.setdefault(getattr(module, "GROUP", name), []).extend(checked(rows(), name))
    facts = machine() if groups else {}
    for group, rows_of_group in groups.items():
        print_table(group, rows_of_group, console)
        save(group, rows_of_group, facts, folder, measured)
    return [row for rows_of_group in groups.values() for row in rows_of_group]


def main(arguments: list[str] | None = None) -> int:
    """Return 1 when a target was missed, 2 when a name is unknown."""
    parser = argparse.ArgumentParser(prog="benchmarks/run.py", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="which to run (all when none is named)")
    parser.add_argument("--list", action="store_true", help="only say which there are")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save (default: benchmarks/results)")
    chosen = parser.parse_args(arguments)
    benchmarks, console = available(), Console()
    if chosen.list or not benchmarks:
        console.print("Benchmarks: " + (", ".join(benchmarks) or "none yet"))
        return 0
    unknown = [name for name in chosen.names if name not in benchmarks]
    if unknown:
        console.print(f"No benchmark called {', '.join(unknown)}; there are {', '.join(benchmarks)}")
        return 2
    rows = run(chosen.names or list(benchmarks), benchmarks, chosen.out, console)
    if chosen.out == RESULTS:
        load(HERE / "pages.py").main([])
    missed = [row["name"] for row in rows if row["met"] is False]
    console.print(f"{len(rows)} rows, {len(missed)} below target")
    for name in missed:
        console.print(f"  below target: {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
