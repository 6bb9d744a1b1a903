"""Old Faithful's eruptions: ``measureflow cluster`` on a bundled table, which nobody told how many clusters there are.

``python examples/demo.py`` prints what it finds and writes ``out/demo/report.html``; ``--out FOLDER`` writes elsewhere.
"""

import sys
from importlib.resources import as_file, files

from measureflow.cli import main

if __name__ == "__main__":
    print("272 eruptions of the geyser Old Faithful: how long each lasted, and the wait for the next, in minutes.\n")
    with as_file(files("measureflow.data") / "faithful.csv") as table:
        main(["cluster", str(table), *(sys.argv[1:] or ["--out", "out/demo"])])
