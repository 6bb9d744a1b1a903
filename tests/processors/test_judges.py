"""What `make test-processors` calls a difference, and what it calls a failure."""

import json

import numpy as np
import pytest

from processors.run import counted, main
from processors.same_answers import differ, in_doubt, table, write_answers
from processors.stand_ins import StandIn


def answer(K=2, labels=(0, 1), clear=(True, True), bits="same", posterior=None):
    posterior = {str(K): 1.0} if posterior is None else posterior
    return {"bits": bits, "K": K, "labels": list(labels), "clear": list(clear), "posterior": posterior}


@pytest.mark.parametrize(
    ("there", "found"),
    [
        (answer(), (0, [], [])),
        (answer(bits="other"), (1, [], [])),
        (answer(labels=(0, 0)), (0, [], [0])),
        (answer(labels=(0, 0), clear=(True, False)), (0, [], [])),  # only a row in doubt changes sides
        (answer(K=3, labels=(0, 2)), (0, [0], [])),  # labels of another K are not compared
    ],
)
def test_differences_are_counted_by_kind(there, found):
    assert differ([answer()], [there]) == found


def test_another_number_of_clusters_is_in_doubt_only_where_both_say_so():
    tie = {"2": 0.4998, "3": 0.5002}
    assert in_doubt(answer(2, posterior=tie), answer(3, posterior=tie))
    assert not in_doubt(answer(2, posterior=tie), answer(3))
    assert not in_doubt(answer(2), answer(3))


def test_tables_are_the_same_in_every_run_and_differ_from_each_other():
    assert np.array_equal(table(5), table(5))
    assert len({table(seed).shape for seed in range(20)}) > 15


def test_answers_go_on_where_they_stopped(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("processors.same_answers.answer", lambda X, threads: asked.append(X.shape) or answer())
    path = tmp_path / "answers.jsonl"
    write_answers(path, 2)
    write_answers(path, 3)
    assert asked == [table(seed).shape for seed in (0, 0, 0, 1, 1, 1, 2, 2, 2)]
    assert [len(json.loads(line)) for line in path.read_text().splitlines()] == [3, 3, 3]


def test_a_run_without_a_report_or_without_tests_has_failed(tmp_path):
    assert counted(tmp_path / "none.xml") == (0, ["no report: see the log"])
    report = tmp_path / "empty.xml"
    report.write_text("<testsuites><testsuite/></testsuites>")
    assert counted(report) == (0, ["no test was run: see the log"])


def test_failures_and_errors_are_named_and_skips_are_not_passes(tmp_path):
    outcomes = ("", "<failure/>", "<error/>", "<skipped/>")
    cases = "".join(f'<testcase classname="t" name="{i}">{outcome}</testcase>' for i, outcome in enumerate(outcomes))
    report = tmp_path / "report.xml"
    report.write_text(f"<testsuite>{cases}</testsuite>")
    assert counted(report) == (1, ["t::1", "t::2"])


def test_a_run_that_was_stopped_goes_on(tmp_path, monkeypatch, capsys):
    kinds = [StandIn("as it is"), StandIn("done", threads=2), StandIn("new", {"MKL_CBWR": "AVX2"})]
    monkeypatch.setattr("processors.run.all_stand_ins", lambda: kinds)
    monkeypatch.setattr("processors.run.OUT", tmp_path)
    (tmp_path / "done.xml").write_text('<testsuite><testcase classname="t" name="0"/></testsuite>')
    asked = []
    monkeypatch.setattr("processors.run.run", lambda kind, tests: asked.append(kind.name) or (7, ["t::1"]))
    assert main(["--resume"]) == 1
    assert asked == ["new"]
    rows = [line.split()[:3] for line in capsys.readouterr().out.splitlines()]
    assert rows[1:] == [["done", "1", "0"], ["new", "7", "1"], ["t::1"]]
    assert main([]) == 1
    assert asked == ["new", "done", "new"]
