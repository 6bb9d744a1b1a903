"""The numeric tests as other processors would run them: ``make test-processors``, or its ``--short`` form.

Prints a table of stand-ins with the numbers of tests that passed and failed; the log of each is in out/processors.
``--resume`` keeps the reports of a run of the same code that was stopped, and runs the stand-ins that have none.
"""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from processors.stand_ins import OUT, ROOT, StandIn, all_stand_ins

NUMERIC = (
    *("tests/attention", "tests/laws", "tests/exact", "tests/measures", "tests/models", "tests/flows"),
    *("tests/coclustering", "tests/estimators", "tests/explorer/test_export.py"),
)
SHORT = (
    *("tests/attention", "tests/laws/test_attention.py", "tests/exact/test_kmeans_fused.py"),
    *("tests/models/test_any_dimension.py", "tests/estimators/test_threads.py", "tests/estimators/test_own_shapes.py"),
    "tests/explorer/test_export.py",
)
SHORT_STAND_INS = ("Prescott, 2 threads", "Intel's MKL, 2 threads")


def run(stand_in: StandIn, tests: tuple[str, ...], *more: str) -> tuple[int, list[str]]:
    """How many tests passed, and the names of those that did not."""
    OUT.mkdir(parents=True, exist_ok=True)
    report = report_of(stand_in)
    report.unlink(missing_ok=True)
    pytest = [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider"]
    command = [*pytest, f"--junitxml={report}", *more, *tests]
    with report.with_suffix(".log").open("w") as log:
        subprocess.run(command, cwd=ROOT, env=stand_in.environment(), stdout=log, stderr=subprocess.STDOUT, check=False)
    return counted(report)


def report_of(stand_in: StandIn) -> Path:
    """Where pytest writes, when all its tests have run, how each of them ended."""
    return OUT / f"{stand_in.stem}.xml"


def counted(report: Path) -> tuple[int, list[str]]:
    """What pytest's report says; a run that left none has failed as a whole."""
    if not report.exists():
        return 0, ["no report: see the log"]
    cases = list(ElementTree.parse(report).iter("testcase"))
    failed = [f"{case.get('classname')}::{case.get('name')}" for case in cases if _bad(case)]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return len(cases) - len(failed) - skipped, failed if cases else ["no test was run: see the log"]


def _bad(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def main(arguments: list[str]) -> int:
    """Run what was asked for; the exit code says whether anything failed."""
    short, resume = "--short" in arguments, "--resume" in arguments
    others = [each for each in all_stand_ins() if each.settings or each.threads > 1]  # as it is, `make test` runs here
    stand_ins = [each for each in others if not short or each.name in SHORT_STAND_INS]
    tests, more = (SHORT, ("-m", "not slow")) if short else (NUMERIC, ())
    width = max(len(each.name) for each in stand_ins)
    print(f"{'stand-in':{width}}  passed  failed")
    any_failed = False
    for stand_in in stand_ins:
        done = resume and report_of(stand_in).exists()
        passed, failed = counted(report_of(stand_in)) if done else run(stand_in, tests, *more)
        print(f"{stand_in.name:{width}}  {passed:6d}  {len(failed):6d}", flush=True)
        for name in failed:
            print(f"{'':{width}}  {name}", flush=True)
        any_failed |= bool(failed)
    return int(any_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
