"""Penguins: ``measureflow cluster`` on a bundled table of four measurements, which nobody told that there are species.

``python examples/demo.py`` prints what it finds and writes ``out/demo/report.html``; ``--out FOLDER`` writes elsewhere.
"""

import sys
from importlib.resources import as_file, files

from measureflow.cli import main

COLUMNS = "bill_length_mm,bill_depth_mm,flipper_length_mm,body_mass_g"

if __name__ == "__main__":
    print("344 penguins of three species that the command is not told of: two measures of the bill, flipper, mass.\n")
    with as_file(files("measureflow.data") / "penguins.csv") as table:
        folder = sys.argv[1:] or ["--out", "out/demo"]
        main(["cluster", str(table), "--columns", COLUMNS, "--missing", "drop", *folder])
