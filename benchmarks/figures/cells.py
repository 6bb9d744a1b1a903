"""What the pages are made of: Markdown tables, numbers as a person writes them, and where the sources lie."""

import csv
import json
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
WEIGHTS = ROOT / "src" / "measureflow" / "weights"
MADE = "<!-- made by benchmarks/pages.py: run `make scoreboard FROM=results` instead of editing -->"


def table(headings: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; a bar inside a cell is escaped."""
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in [headings, *cells]]
    return "\n".join([lines[0], "|" + "---|" * len(headings), *lines[1:]])


def number(value) -> str:
    """Three figures, without an exponent where a person would write none."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= 1000:
        return f"{round(value, 2 - len(str(int(abs(value)))) + 1):,.0f}"
    return f"{value:.3g}"


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) if path.exists() else []


def recipes(folder: Path, later: frozenset[Path] = frozenset()) -> dict[Path, dict]:
    """The configs behind the weights of a folder, in the order in which they were run.

    Weights with more steps than their config has went on from those it begins with, whose folder names its own config.
    An earlier form of one of the ``later`` configs is left out: it is in the history of the file.
    """
    facts = json.loads((folder / "config.json").read_text(encoding="utf-8"))["facts"]
    config = ROOT / str(facts.get("config", ""))
    if not config.is_file() or config in later:
        return {}
    recipe = tomllib.loads(config.read_text(encoding="utf-8"))
    went_on = facts.get("steps", 0) > sum(stage["steps"] for stage in recipe["stages"])
    return (recipes(ROOT / recipe["start"], later | {config}) if went_on else {}) | {config: recipe}
