"""Tables as people have them, read alike by the library, the command line and the server."""

import contextlib
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from measureflow import cli
from measureflow.report.summary import Summary
from measureflow.tables.read import read_table

FOLDER = Path(__file__).parents[1] / "files"
CASES = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
GOOD = [case for case in CASES if "refused" not in case]
BAD = [case for case in CASES if "refused" in case]


def named(case: dict) -> str:
    return case["file"]


def available(case: dict) -> None:
    if case["file"].endswith(".xlsx"):
        pytest.importorskip("python_calamine")
    if case["file"].endswith(".parquet"):
        pytest.importorskip("pyarrow")


def test_there_are_thirty_of_them_and_each_file_is_listed():
    assert len(GOOD) >= 30
    listed = {case["file"] for case in CASES} | {"cases.json", "make.py"}
    assert {file.name for file in FOLDER.iterdir() if file.is_file()} == listed


@pytest.mark.parametrize("case", GOOD, ids=named)
def test_what_is_read(case):
    available(case)
    for table in (read_table(FOLDER / case["file"]), read_table((FOLDER / case["file"]).read_bytes())):
        assert len(table.frame) == case["rows"]
        assert table.columns == case["columns"]
        assert table.skipped == case["skipped"]
        assert int((~table.complete).sum()) == case["gaps"]
        assert table.values[table.complete].sum() == pytest.approx(case["total"], rel=1e-12)
        assert not set(case.get("notes", [])) - set(table.notes())


@pytest.mark.parametrize("case", BAD, ids=named)
def test_what_is_refused(case):
    with pytest.raises(ValueError, match=re.escape(case["refused"])):
        read_table(FOLDER / case["file"])


@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_command_line_reads_the_same(case, tmp_path, monkeypatch):
    """What ``measureflow cluster`` is about to fit, or the words with which it refuses."""
    available(case)
    read = []

    def instead_of_fitting(table, **_):
        read.append(table)
        raise ValueError("that is enough")

    monkeypatch.setattr(Summary, "fit", instead_of_fitting)
    asked = ["cluster", str(FOLDER / case["file"]), "--out", str(tmp_path / "report")]
    result = CliRunner().invoke(cli.main, asked)
    assert result.exit_code == 2
    if "refused" in case:
        assert case["refused"] in result.output
        assert not read
        return
    (table,) = read
    assert (len(table.frame), table.columns, table.skipped) == (case["rows"], case["columns"], case["skipped"])
    assert int((~table.complete).sum()) == case["gaps"]
    assert table.values[table.complete].sum() == pytest.approx(case["total"], rel=1e-12)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # starlette would rather have a client newer than the lock's
    from fastapi.testclient import TestClient


@pytest.fixture(scope="module")
def client():
    from measureflow.explorer.server import create_app

    with TestClient(create_app(), base_url="http://127.0.0.1") as client:
        yield client


@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_server_reads_the_same(client, case):
    available(case)
    answer = client.post("/api/table", content=(FOLDER / case["file"]).read_bytes())
    if "refused" in case:
        assert answer.status_code == 422
        assert case["refused"] in answer.json()["detail"]
        return
    table = answer.json()
    assert {name: table[name] for name in ("rows", "columns", "skipped", "gaps")} == {
        name: case[name] for name in ("rows", "columns", "skipped", "gaps")
    }
    again = read_table(table["csv"].encode())
    assert again.columns == case["columns"]
    assert np.nansum(again.values[again.complete]) == pytest.approx(case["total"], rel=1e-12)


def test_columns_that_may_be_identifiers_are_asked_about():
    rows = "".join(f"{(i * i * 7919) % 100003},{i % 5}\n" for i in range(60))
    notes = read_table(b"code,x\n" + rows.encode()).notes()
    assert notes == ["Column 'code' has another whole number in every row. Is it an identifier?"]


def test_a_code_can_be_asked_for():
    body = b"zip,x\n10001,1\n10002,5\n10003,2\n"
    assert read_table(body).columns == ["x"]
    assert read_table(body, ["zip", "x"]).columns == ["zip", "x"]


def test_a_folder_and_a_missing_file_are_told_apart(tmp_path):
    with pytest.raises(ValueError, match="is a folder; name a file in it"):
        read_table(tmp_path)
    with pytest.raises(ValueError, match="there is no file"):
        read_table(tmp_path / "nothing.csv")


@pytest.mark.parametrize("body", [b"[1, 2]", b"{", b'{"a": [1]}', b"[[1], [2, 3]]", b"[" * 9999, b"[]"])
def test_json_that_is_no_table_is_refused(body):
    with pytest.raises(ValueError, match="JSON"):
        read_table(body)


@pytest.mark.parametrize("body", [b"\x1f\x8b broken", b"PAR1 but not really", b"\x1f\x8b\x08"])
def test_a_broken_container_is_refused(body):
    with pytest.raises(ValueError, match=r"gzip|Parquet"):
        read_table(body)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_table_or_a_reason(body):
    with contextlib.suppress(ValueError):
        table = read_table(body)
        assert table.values.shape == (len(table.frame), len(table.columns))
