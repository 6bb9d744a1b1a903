"""The page's shelf of papers, from docs/papers: ``python tools/shelf.py`` writes findings, tables and pictures."""

import csv
import json
import re
import shutil
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "papers"
SHELF = ROOT / "src" / "measureflow" / "explorer" / "static" / "papers"
FACE = 6  # rows of a table on its card
NUMBER = re.compile(r"-?\d[\d.,]*(e[-+]?\d+)?( ± [\d.]+)?( \(-?[\d.]+\))?|\(-?[\d.]+\)")
SECTION = re.compile(
    r"^## (?P<title>[^\n]+)\n\n"
    r"`measureflow reproduce (?P<paper>\w+) (?P<name>[\w.-]+) --size (?P<size>\w+)`\n\n"
    r"(?P<rest>.*?)(?=^## |\Z)",
    re.M | re.S,
)

Table = list[list[str]]  # the names of the columns, then the rows


def sections(page: str) -> dict[tuple[str, str], tuple[dict[str, Any], list[Table], list[str]]]:
    """Of each artefact, by paper and name: what is said of it, its tables, and the names of its pictures."""
    out = {}
    for found in SECTION.finditer(page):
        lines = [line for line in found["rest"].split("\n\n") if line.strip()]
        text = [line for line in lines if not line.lstrip().startswith(("*", "!", "|", "`", "```", "<", "["))]
        tables, pictures = tables_of(found["rest"]), re.findall(r"\]\(images/([^)]+)\)", found["rest"])
        said = {
            "title": found["title"].partition(": ")[2] or found["title"],
            "findings": " ".join(" ".join(text).replace("\\<", "<").replace("\\>", ">").split()),
            "size": found["size"],
            "face": face(tables[0]) if tables and found["name"].startswith("table") else None,
        }
        out[found["paper"], found["name"]] = said, tables, pictures
    return out


def tables_of(text: str) -> list[Table]:
    """The tables of a Markdown text."""
    blocks = [list(block) for inside, block in groupby(text.split("\n"), lambda line: line.startswith("|")) if inside]
    return [[cells(line) for line in (block[0], *block[2:])] for block in blocks]


def cells(line: str) -> list[str]:
    """The cells of one line of a Markdown table."""
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def face(table: Table) -> Table:
    """What of a table fits a card: its first column and the first of numbers that differ, without deviations."""
    names, *rows = table
    numbers = [j for j, column in enumerate(zip(*rows, strict=True)) if j and _differ(column)][:1]
    heads = [names[0], *(f"{names[j]} (printed)" if "(" in rows[0][j] else names[j] for j in numbers)]
    return [heads, *([re.sub(r" ± [\d.]+", "", row[j]) for j in (0, *numbers)] for row in rows[:FACE])]


def _differ(column: tuple[str, ...]) -> bool:
    filled = [cell for cell in column if cell]
    return len(set(filled)) > 1 and all(NUMBER.fullmatch(cell) for cell in filled)


def write() -> None:
    """Write shelf.json, and a folder for each artefact as `measureflow reproduce` would."""
    shutil.rmtree(SHELF, ignore_errors=True)
    entries = {}
    for page in sorted(PAGES.glob("*2025.md")):
        for (paper, name), (said, tables, pictures) in sections(page.read_text(encoding="utf-8")).items():
            entries[f"{paper}-{name}"] = said
            folder = SHELF / paper / name
            folder.mkdir(parents=True)
            for number, table in enumerate(tables, 1):
                write_csv(table, folder / (f"{name}.csv" if len(tables) == 1 else f"{name}-{number}.csv"))
            for picture in pictures:
                own = picture.removeprefix(f"{paper}-{name}-".replace(".", "-"))
                shutil.copyfile(PAGES / "images" / picture, folder / own)
    (SHELF / "shelf.json").write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_csv(table: Table, path: Path) -> None:
    """Write a table as a file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(table)


if __name__ == "__main__":
    write()
