"""The pages show runs that are as new as the code and weights they are of, and say so where they are not."""

import importlib.util
import json
import re
from pathlib import Path

import pandas as pd
import pytest

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


def test_the_digest_sees_code_and_not_layout(tmp_path, monkeypatch):
    files = [tmp_path / "measureflow" / "a.py"]
    monkeypatch.setattr(provenance, "sources", lambda module: files)
    monkeypatch.setitem(provenance.sys.modules, "measureflow", type("Home", (), {"__path__": [str(tmp_path)]}))
    files[0].parent.mkdir()

    def digest(text):
        files[0].write_text(text, encoding="utf-8")
        return provenance.code_digest(None)

    first = digest("def f(x):\n    return x + 1\n")
    assert first == digest('"""Words."""\n\ndef f(x):\n    """More."""\n    return (x + 1)  # why\n')
    assert first != digest("def f(x):\n    return x + 2\n")


def test_what_only_shows_does_not_enter_the_digest_of_what_computes(tmp_path, monkeypatch):
    file = tmp_path / "measureflow" / "a.py"
    monkeypatch.setattr(provenance, "sources", lambda module: [file])
    monkeypatch.setitem(provenance.sys.modules, "measureflow", type("Home", (), {"__path__": [str(tmp_path)]}))
    file.parent.mkdir()

    def digests(**parts):
        parts = {"TITLE": "'t'", "compute": 1, "render": 1, "method": 1, "help": 1} | parts
        file.write_text(
            "TITLE = {TITLE}\ndef compute():\n    return {compute}\ndef render():\n    return {render}\n"
            "def help():\n    return {help}\nclass A:\n    def verdicts(self):\n        return {method}\n".format(
                **parts
            ),
            encoding="utf-8",
        )
        return provenance.code_digest(None), provenance.computing_digest(None)

    code, computing = digests()
    for shows in ({"TITLE": "'u'"}, {"render": 2}, {"method": 2}):
        assert digests(**shows)[0] != code
        assert digests(**shows)[1] == computing
    for computes in ({"compute": 2}, {"help": 2}):
        assert digests(**computes)[1] != computing


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
        make_papers.restore(there, tmp_path / "kept", record)
        reproduce("castin2025", "fig1", "tiny", tmp_path / clone)
        assert module.computed == computed
        assert json.loads((there / "run.json").read_text(encoding="utf-8"))["seconds"] >= 7.0
    monkeypatch.setattr(make_papers, "HEAVY", 3)
    make_papers.keep_tables(here, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_verdict_is_one_of_four_words():
    with pytest.raises(ValueError, match="verdict must be one of holds, fails, corrected, open, got 'maybe'"):
        Verdict("a", "b", "c", "maybe")
