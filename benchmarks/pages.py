"""Write every figure of the README and the docs from files: ``python benchmarks/pages.py [--check]``.

Two pages are made whole, docs/scoreboard.md and docs/models.md. In the others, the text between
``<!-- begin NAME -->`` and ``<!-- end NAME -->`` is made by the function of that name in BLOCKS. The sources are
benchmarks/results/, src/measureflow/weights/ and configs/, so the pages can be made again without measuring again.
"""

import argparse
import re
import sys
from functools import partial
from pathlib import Path

from figures.cells import ROOT
from figures.models import learning_of, models
from figures.rivals import rivals
from figures.scaling import dask_rows, extrapolation, model_costs, scaling_machine, training_rates, two_processes
from figures.scoreboard import model_scores, scoreboard, scoreboard_summary

WITH_BLOCKS = ("README.md", "docs/guide.md", "docs/scaling.md", "docs/lab-book.md")
BLOCKS = {
    "scoreboard-summary": scoreboard_summary,
    "rivals": rivals,
    "model-scores": model_scores,
    "flow-transformer-learning": partial(learning_of, "flow-transformer"),
    "training-rates": training_rates,
    "model-costs": model_costs,
    "two-processes": two_processes,
    "dask-rows": dask_rows,
    "extrapolation": extrapolation,
    "scaling-machine": scaling_machine,
}


def filled(text: str) -> str:
    """The page with every marked block made anew; an unknown name is an error."""

    def fill(found: re.Match) -> str:
        return f"<!-- begin {found[1]} -->\n{BLOCKS[found[1]]()}\n<!-- end {found[1]} -->"

    return re.sub(r"<!-- begin ([\w-]+) -->\n.*?<!-- end \1 -->", fill, text, flags=re.DOTALL)


def pages() -> dict[Path, str]:
    """Every page that holds figures, as it should read."""
    made = {ROOT / "docs/scoreboard.md": scoreboard(), ROOT / "docs/models.md": models()}
    for name in WITH_BLOCKS:
        if (ROOT / name).exists():
            made[ROOT / name] = filled((ROOT / name).read_text(encoding="utf-8"))
    return made


def stale() -> list[str]:
    """Pages on disk that differ from what the sources say now."""
    return [
        str(path.relative_to(ROOT))
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/pages.py", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is out of date")
    check = parser.parse_args(arguments).check
    old = stale()
    if not check:
        for path, text in pages().items():
            path.write_text(text, encoding="utf-8")
    for name in old:
        print(f"{'out of date' if check else 'written'}: {name}")
    return 1 if check and old else 0


if __name__ == "__main__":
    sys.exit(main())
