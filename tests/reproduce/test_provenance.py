"""The pages show runs that are as new as the code and weights they are of, and say so where they are not."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from typer.testing import CliRunner

from measureflow import cli
from measureflow.reproduce import PAPERS, SIZES, artefacts, provenance, reproduce, run, shown
from measureflow.reproduce.clarkson2025 import fig3
from measureflow.reproduce.verdicts import Verdict

ROOT = Path(__file__).parents[2]
SHOWN = [(paper, name) for paper in PAPERS for name in shown()[paper]]


@pytest.fixture(scope="module")
def make_papers():
    spec = importlib.util.spec_from_file_location("make_papers", ROOT / "docs" / "make_papers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("paper", "name"), SHOWN)
def test_a_section_says_that_it_is_stale_where_it_is(paper, name, make_papers):
    record = shown()[paper][name]
    section = make_papers.old_sections(ROOT / "docs" / "papers" / f"{paper}.md")[name]
    reasons = provenance.stale(record, run.module_of(paper, name))
    assert section == make_papers.marked(section, reasons), "run `make papers` and commit what it writes"
    assert f"--size {record['size']}`" in section


def test_no_section_is_shown_without_a_record(make_papers):
    for paper in PAPERS:
        sections = make_papers.old_sections(ROOT / "docs" / "papers" / f"{paper}.md")
        assert sections.keys() == shown()[paper].keys() <= set(artefacts(paper))
        table = (ROOT / "docs" / "papers" / f"{paper}.md").read_text(encoding="utf-8").split("\n## ")[0]
        assert make_papers.verdict_table(paper, shown()[paper]).strip() in table


def test_the_page_of_all_papers_shows_every_picture(make_papers):
    index = (ROOT / "docs" / "papers" / "index.md").read_text(encoding="utf-8")
    assert index == make_papers.with_gallery(index), "run `make papers` and commit what it writes"
    sections = [make_papers.old_sections(ROOT / "docs" / "papers" / f"{paper}.md") for paper in PAPERS]
    pictures = {name for page in sections for text in page.values() for name in re.findall(r"images/\S+png", text)}
    assert set(re.findall(r"images/\S+png", index)) == pictures


def test_no_run_shown_is_tiny():
    assert all(shown()[paper][name]["size"] != "tiny" for paper, name in SHOWN)


def test_the_list_says_which_runs_are_older_than_their_code(monkeypatch):
    now = {"size": "small", "budget": "little", "title": "Nobody 2025, Figure 3: lines", "weights": {}}
    now |= {"code": provenance.code_digest(fig3)}
    for code, reasons in ((now["code"], []), ("other", ["its code has changed"])):
        pages = {"clarkson2025": {"fig3": now | {"code": code}}}
        monkeypatch.setattr("measureflow.reproduce.shown", lambda pages=pages: pages)
        lines = CliRunner().invoke(cli.main, ["reproduce", "clarkson2025", "--list"]).output.splitlines()
        line = next(line for line in lines if line.split()[1] == "fig3")
        assert ("older than its code" in line) == bool(reasons)
        as_json = CliRunner().invoke(cli.main, ["reproduce", "clarkson2025", "--list", "--json"]).stdout
        assert json.loads(as_json)["clarkson2025"]["fig3"]["older"] == reasons
        assert sum("not shown in the pages" in line for line in lines) == len(artefacts("clarkson2025")) - 1


def test_changed_code_and_weights_make_a_record_stale(monkeypatch):
    record = {"code": provenance.code_digest(fig3), "weights": {}}
    assert provenance.stale(record, fig3) == []
    assert provenance.stale({**record, "code": "other"}, fig3) == ["its code has changed"]
    table2 = run.module_of("zimin2025", "table2")
    assert "flow-transformer-64" in table2.WEIGHTS
    record = {"code": provenance.code_digest(table2), "weights": provenance.weight_digests(table2.WEIGHTS)}
    assert record["weights"]["flow-transformer-64"] == ""
    now_ships = record["weights"] | {"flow-transformer-64": "abc"}
    monkeypatch.setattr(provenance, "weight_digests", lambda names: now_ships)
    assert provenance.stale(record, table2) == ["the weights flow-transformer-64 have changed"]


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes files of a package by name, of which "a" is an artefact, and gives its digests of code and computing."""
    home, artefact = tmp_path / "measureflow", ModuleType("measureflow.a")
    home.mkdir()
    monkeypatch.setitem(provenance.sys.modules, "measureflow", type("Home", (), {"__path__": [str(home)]}))
    monkeypatch.setattr(provenance, "sources", lambda module: sorted(home.glob("*.py")))

    def write(**texts):
        for name, text in texts.items():
            (home / f"{name}.py").write_text(text, encoding="utf-8")
        return provenance.code_digest(artefact), provenance.computing_digest(artefact)

    return write


def test_the_digest_sees_code_and_not_layout(written):
    first = written(a="def compute(x):\n    return x + 1\n")
    assert first == written(a='"""Words."""\n\ndef compute(x):\n    """More."""\n    return (x + 1)  # why\n')
    assert first != written(a="def compute(x):\n    return x + 2\n")


ARTEFACT = """
import json
from b import draw, flow
TITLE = {TITLE}
SIZES, STEPS = {SIZES}, 3
def compute():
    return {compute}, follow(json.loads(SIZES))
def follow(n):
    return flow(n, {follow})
def render():
    return draw({render})
def told():
    return {told}
class A:
    def verdicts(self):
        return {method}
"""
LIBRARY = """
import {unused}
def flow(n, m):
    return {flow}
def draw(n):
    return {draw}
def unused():
    return {unused}.loads
"""


def test_what_only_shows_does_not_enter_the_digest_of_what_computes(written):
    names = ("TITLE", "SIZES", "compute", "follow", "render", "told", "method", "flow", "draw", "unused")

    def digests(**parts):
        parts = dict.fromkeys(names, 1) | {"unused": "json"} | parts
        return written(a=ARTEFACT.format(**parts), b=LIBRARY.format(**parts))

    code, computing = digests()
    for shows in ("TITLE", "render", "draw"):
        assert digests(**{shows: 2})[0] != code, shows
        assert digests(**{shows: 2})[1] == computing, shows
    for computes in ("SIZES", "compute", "follow", "flow"):
        assert digests(**{computes: 2})[1] != computing, computes
    for neither in ("told", "method", "unused"):  # nothing that the artefact calls
        assert digests(**{neither: "os"}) == (code, computing), neither


def test_an_artefact_that_is_an_object_is_made_by_its_class_and_the_table_it_stands_in():
    table2, fig4 = run.module_of("zimin2025", "table2"), run.module_of("zimin2025", "fig4")
    assert provenance._roots(table2) == {"Table", "BY_NAME"}
    assert provenance.code_digest(table2) == provenance.code_digest(run.module_of("zimin2025", "table3"))
    assert provenance.code_digest(table2) != provenance.code_digest(fig4)


def test_an_artefact_reaches_what_it_imports():
    names = {path.name for path in provenance.sources(run.module_of("castin2025", "fig4"))}
    assert {"fig4.py", "panels.py", "fates.py", "values.py", "parameters.py", "drawing.py", "verdicts.py"} <= names
    assert not {"fig1.py", "__init__.py"} & names  # a list of artefacts computes nothing
    assert "orderings.py" in {path.name for path in provenance.sources(run.module_of("zimin2025", "table1"))}


class Counting:
    """An artefact that counts how often it is computed."""

    TITLE = "Nobody 2025, Figure 0: a count"
    computed = 0

    def compute(self, size, cache):
        self.computed += 1
        return {"counts": pd.DataFrame({"count": [self.computed]})}

    def render(self, tables):
        return {}

    def findings(self, tables):
        return "Found."

    def budget(self, size):
        return "nothing"

    def verdicts(self, tables):
        return [Verdict("it counts", "one", str(tables["counts"]["count"][0]), "holds")]


def test_a_run_records_itself_and_is_not_done_twice(tmp_path, monkeypatch):
    module, code = Counting(), ["first"]
    monkeypatch.setattr(run, "module_of", lambda paper, artefact: module)
    monkeypatch.setattr(run, "code_digest", lambda module: code[0])
    monkeypatch.setattr(provenance, "code_digest", lambda module: code[0])
    monkeypatch.setattr(run, "computing_digest", lambda module: code[0].split()[0])
    for _ in range(2):
        files = reproduce("castin2025", "fig1", "tiny", tmp_path)
    record = json.loads((tmp_path / "castin2025" / "fig1" / "run.json").read_text(encoding="utf-8"))
    assert module.computed == 1
    assert (record["size"], record["budget"], record["code"]) == ("tiny", "nothing", "first")
    assert record["verdicts"][0]["ours"] == "1"
    assert record["seconds"] >= 0
    files[0].unlink()
    reproduce("castin2025", "fig1", "tiny", tmp_path)
    code[0] = "second"
    reproduce("castin2025", "fig1", "tiny", tmp_path)
    reproduce("castin2025", "fig1", "small", tmp_path)
    assert module.computed == 4
    code[0] = "second shown-otherwise"  # the tables are read back, the record is new
    reproduce("castin2025", "fig1", "small", tmp_path)
    assert module.computed == 4
    record = json.loads((tmp_path / "castin2025" / "fig1" / "run.json").read_text(encoding="utf-8"))
    assert (record["code"], record["verdicts"][0]["ours"]) == ("second shown-otherwise", "4")


def test_a_file_that_changes_during_a_run_makes_its_record_stale(tmp_path, monkeypatch):
    module, code = Counting(), ["first"]
    monkeypatch.setattr(run, "module_of", lambda paper, artefact: module)
    monkeypatch.setattr(run, "code_digest", lambda module: code[0])
    monkeypatch.setattr(run, "computing_digest", lambda module: code[0])
    compute = module.compute
    monkeypatch.setattr(module, "compute", lambda size, cache: code.insert(0, "edited") or compute(size, cache))
    reproduce("castin2025", "fig1", "tiny", tmp_path)
    record = json.loads((tmp_path / "castin2025" / "fig1" / "run.json").read_text(encoding="utf-8"))
    assert (code[0], record["code"], record["computing"]) == ("edited", "first", "first")


def test_a_page_keeps_the_larger_run(tmp_path, monkeypatch, make_papers):
    monkeypatch.setattr(make_papers, "artefacts", lambda paper: ("fig1",))
    monkeypatch.setattr(make_papers, "stale", lambda record, module: [])
    monkeypatch.setattr(make_papers, "read_record", lambda folder: {"size": "small"})
    for size, taken in zip(SIZES, (True, True, False), strict=True):
        assert bool(make_papers.news(tmp_path, "castin2025", {"fig1": {"size": size}})) is taken
    monkeypatch.setattr(make_papers, "stale", lambda record, module: ["its code has changed"])
    assert not make_papers.news(tmp_path, "castin2025", {})


def test_kept_tables_are_drawn_again_and_not_computed(tmp_path, monkeypatch, make_papers):
    module, computing = Counting(), ["same"]
    monkeypatch.setattr(run, "module_of", lambda paper, artefact: module)
    monkeypatch.setattr(run, "code_digest", lambda module: "code")
    monkeypatch.setattr(provenance, "code_digest", lambda module: "code")
    monkeypatch.setattr(run, "computing_digest", lambda module: computing[0])
    here = tmp_path / "here" / "castin2025" / "fig1"
    reproduce("castin2025", "fig1", "tiny", tmp_path / "here")
    make_papers.keep_tables(here, tmp_path / "kept")
    record = json.loads((here / "run.json").read_text(encoding="utf-8")) | {"seconds": 7.0}
    for clone, computed in (("same", 1), ("other", 2)):
        computing[0] = clone
        there = tmp_path / clone / "castin2025" / "fig1"
        make_papers.restore(there, tmp_path / "kept", record, clone)
        reproduce("castin2025", "fig1", "tiny", tmp_path / clone)
        assert module.computed == computed
        seconds = json.loads((there / "run.json").read_text(encoding="utf-8"))["seconds"]
        assert (seconds >= 7.0) is (clone == "same")  # tables computed anew do not count the time of the old ones
    monkeypatch.setattr(make_papers, "HEAVY", 3)
    make_papers.keep_tables(here, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_heavy_tables_are_kept_packed(tmp_path, make_papers):
    run_folder, text = tmp_path / "run", "a,b\n" + "1,2\n" * make_papers.HEAVY
    run_folder.mkdir()
    (run_folder / "long.csv").write_text(text, encoding="utf-8")
    (run_folder / "run.json").write_text(json.dumps({"files": ["long.csv", "long.png"]}), encoding="utf-8")
    make_papers.keep_tables(run_folder, tmp_path / "kept")
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["long.csv.gz"]
    record = {"computing": "same", "size": "tiny", "seconds": 1.0}
    make_papers.restore(tmp_path / "again", tmp_path / "kept", record, "same")
    assert (tmp_path / "again" / "long.csv").read_text(encoding="utf-8") == text
    assert json.loads((tmp_path / "again" / "run.json").read_text(encoding="utf-8"))["files"] == ["long.csv"]


def test_a_verdict_is_one_of_four_words():
    with pytest.raises(ValueError, match="verdict must be one of holds, fails, corrected, open, got 'maybe'"):
        Verdict("a", "b", "c", "maybe")
