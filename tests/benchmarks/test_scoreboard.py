"""Results are kept by make of processor, and the scoreboard shows them side by side."""

import importlib.util
import platform
from pathlib import Path

import pytest

from figures import scoreboard

FOLDER = Path(__file__).parents[2] / "benchmarks"


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FACTS = {"cpus": 2, "torch_threads": 2, "system": "Linux", "torch": "2"}


def row(name: str, ratio: float) -> dict:
    met = ratio >= 2
    return {"name": name, "ours_s": 1.0, "peer_s": ratio, "ratio": ratio, "target": 2.0, "met": met, "note": "a peer"}


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """The pages of two made-up runs, one on each make, which share one row of three."""
    run, pages = load("run"), scoreboard
    run.save("speed", [row("both", 4.0), row("one", 3.0)], {"cpu": "AMD EPYC", **FACTS}, tmp_path, "abc")
    run.save("speed", [row("both", 1.5), row("other", 5.0)], {"cpu": "Intel(R) Xeon(R)", **FACTS}, tmp_path, "def")
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    return pages


@pytest.mark.parametrize(
    ("model", "architecture", "make"),
    [
        ("AMD EPYC 7R13", "x86_64", "AMD"),
        ("Intel(R) Xeon(R) Platinum 8488C", "x86_64", "Intel"),
        ("arm", "arm64", "ARM"),
        ("Neoverse-N1", "aarch64", "ARM"),
        ("something new", "riscv64", "other"),
    ],
)
def test_a_folder_is_named_by_the_make_alone(model, architecture, make):
    assert load("run").processor(model, architecture) == make


def test_the_make_comes_from_this_machine(tmp_path):
    run = load("run")
    run.save("speed", [row("one", 3.0)], {"cpu": "unheard of", **FACTS}, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [run.processor("unheard of", platform.machine())]


def test_rows_of_two_processors_stand_side_by_side(pages):
    lines = pages.benchmark_section("speed").splitlines()
    assert "| what | target | AMD | Intel | note |" in lines
    assert "| both | 2 | 4 (1, 4) | **1.5** (1, 1.5) | a peer |" in lines  # bold: below target
    assert "| one | 2 | 3 (1, 3) | – | a peer |" in lines
    assert "| other | 2 | – | 5 (1, 5) | a peer |" in lines


def test_the_summary_counts_each_processor(pages):
    assert pages.scoreboard_summary().splitlines() == [
        "AMD: 2 rows, 2 with a target, 2 of those met.",
        "Intel: 2 rows, 2 with a target, 1 of those met.",
    ]
    assert pages.missed_targets() == "Below target on Intel:\n\n- both"
    assert pages.summary_table(["speed"]).splitlines()[-1] == (
        "| [speed](#speed) | 2 of 2 targets met; 2 rows, median ratio 3.5 "
        "| **1 of 2 targets met**; 2 rows, median ratio 3.25 |"
    )


def test_the_page_opens_with_the_summary(pages, monkeypatch):
    monkeypatch.setattr(pages, "model_scores", str)
    page = pages.scoreboard()
    assert page.index("## Summary") < page.index("Below target on Intel") < page.index("## speed")


def test_a_processor_without_results_has_an_empty_column(pages, tmp_path):
    for path in (tmp_path / "Intel").iterdir():
        path.unlink()
    assert "| one | 2 | 3 (1, 3) | – | a peer |" in pages.benchmark_section("speed").splitlines()
    assert "Intel" not in pages.scoreboard_summary()
