"""The shelf of papers: what was printed beside what was found, and made here on demand."""

import importlib.util
import io
import json
import sys
import warnings
from pathlib import Path

import pytest
from PIL import Image

from measureflow.explorer import papers
from measureflow.explorer.server import create_app
from measureflow.reproduce import PAPERS, artefacts, shown

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # starlette would rather have a client newer than the lock's
    from fastapi.testclient import TestClient

LOCAL = "http://127.0.0.1"
HOLDS = {"claim": "EM is best", "printed": "0.0018", "ours": "0.0016", "verdict": "holds"}
FAILS = HOLDS | {"ours": "0.0020", "verdict": "fails"}


@pytest.fixture
def client(tmp_path):
    records = {"zimin2025": {"table1": {"verdicts": [HOLDS]}}}
    app = create_app(results=tmp_path, artefacts={"zimin2025": ["table1"]}, records=records)
    with TestClient(app, base_url=LOCAL) as client:
        yield client


def test_printed_numbers_without_results_and_the_command_that_makes_them(client):
    zimin = client.get("/api/papers").json()[0]
    (table1,) = zimin["artefacts"]
    assert not table1["made"]
    assert table1["verdicts"] == [HOLDS]
    assert table1["command"] == "measureflow reproduce zimin2025 table1 --size tiny"
    assert {"data": "High SNR", "column": "K-means", "value": 0.0441} in table1["printed"]


def test_results_in_the_folder_are_shown(client, tmp_path):
    folder = tmp_path / "zimin2025" / "table1"
    folder.mkdir(parents=True)
    (folder / "findings.md").write_text("Zimin 2025, Table 1: what it is\n\nThe paper says so. Found: all is well.\n")
    (folder / "cells.csv").write_text("column,ours\nK-means,0.1\nNo flow,\n")
    (folder / "table1.png").write_bytes(b"\x89PNG")
    (folder / "run.json").write_text(json.dumps({"verdicts": [FAILS]}))
    (table1,) = client.get("/api/papers").json()[0]["artefacts"]
    assert table1["made"]
    assert table1["title"] == "what it is"
    assert table1["said"] == "The paper says so."
    assert table1["found"] == "all is well."
    assert table1["verdicts"] == [FAILS]
    assert client.get(f"/api/papers/{table1['pictures'][0]}").content == b"\x89PNG"
    shown = client.get(f"/api/papers/{table1['tables'][0]}").json()
    assert shown == {"total": 2, "columns": ["column", "ours"], "rows": [["K-means", 0.1], ["No flow", None]]}
    whole = client.get(f"/api/papers/{table1['tables'][0]}", params={"download": True})
    assert whole.text == (folder / "cells.csv").read_text()
    assert "attachment" in whole.headers["content-disposition"]


def test_an_artefact_is_made_on_demand(tmp_path, monkeypatch):
    script = tmp_path / "reproduce.py"
    script.write_text(
        "import sys, pathlib\n"
        "paper, name, _, size, _, out = sys.argv[1:]\n"
        "if name == 'fig2': sys.exit('Cannot reproduce: no luck')\n"
        "folder = pathlib.Path(out, paper, name); folder.mkdir(parents=True)\n"
        "(folder / 'findings.md').write_text(f'A title: made\\n\\nFound: at size {size}.')\n"
    )
    monkeypatch.setattr(papers, "COMMAND", (sys.executable, str(script)))
    shown = {"castin2025": ["fig1", "fig2"]}
    with TestClient(create_app(results=tmp_path / "out", artefacts=shown), base_url=LOCAL) as client:
        assert client.post("/api/papers/castin2025/fig99").status_code == 404
        fig1 = client.post("/api/papers/castin2025/fig1").json()
        assert (fig1["made"], fig1["title"], fig1["found"]) == (True, "made", "at size tiny.")
        refused = client.post("/api/papers/castin2025/fig2")
        assert (refused.status_code, refused.json()["detail"]) == (422, "Cannot reproduce: no luck")


def test_the_shelf_ships_a_picture_and_a_finding_for_every_artefact_of_the_pages():
    shelf = papers.shelf(Path("nowhere"), {paper: artefacts(paper) for paper in PAPERS}, shown())
    for paper in shelf:
        for one in paper["artefacts"]:
            on_page = one["name"] in shown()[paper["paper"]]
            assert bool(one["found"]) == on_page, one["name"]
            assert bool(one["pictures"]) == on_page, one["name"]
            assert bool(one["face"]) == (on_page and one["name"].startswith("table")), one["name"]


def test_what_ships_is_served_whole_until_a_run_of_ones_own_takes_its_place(client, tmp_path):
    (table1,) = client.get("/api/papers").json()[0]["artefacts"]
    (picture,), (file,) = table1["pictures"], table1["tables"]
    image = Image.open(io.BytesIO(client.get(f"/api/papers/{picture}").content))
    assert image.width == 1000  # as in docs/papers
    table = client.get(f"/api/papers/{file}").json()
    assert table["columns"][0] == table1["face"][0][0]
    assert table["rows"][0][0] == table1["face"][1][0] == "K-means"
    folder = tmp_path / "zimin2025" / "table1"
    folder.mkdir(parents=True)
    assert client.get("/api/papers").json()[0]["artefacts"] == [table1]  # a run that left nothing
    (folder / "findings.md").write_text("Zimin 2025, Table 1: again\n\nFound: the same.\n")
    (again,) = client.get("/api/papers").json()[0]["artefacts"]
    assert (again["pictures"], again["tables"], again["face"]) == ([], [], None)
    assert client.get(f"/api/papers/{picture}").status_code == 404


@pytest.mark.parametrize("path", ["..%2f..%2fcells.csv", "../../cells.csv", "zimin2025/..%2f../cells.csv"])
def test_names_that_lead_out_of_the_folder_find_nothing(client, tmp_path, path):
    (tmp_path / "cells.csv").write_text("a\n1\n")
    assert client.get(f"/api/papers/{path}").status_code == 404
    for paper, name, file in [
        ("zimin2025", "..", "cells.csv"),
        ("..", "zimin2025", "cells.csv"),
        ("zimin2025", "table1", "../../../cells.csv"),
    ]:
        assert papers.find(tmp_path, paper, name, file, ".csv") is None


def test_the_shelf_is_what_the_pages_of_the_papers_show(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("shelf", Path(__file__).parents[2] / "tools" / "shelf.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    monkeypatch.setattr(tool, "SHELF", tmp_path / "papers")
    tool.write()
    files = {path.relative_to(tool.SHELF): path.read_bytes() for path in tool.SHELF.rglob("*.*") if path.is_file()}
    shipped = {
        path.relative_to(papers.SHIPPED): path.read_bytes() for path in papers.SHIPPED.rglob("*.*") if path.is_file()
    }
    assert files.keys() == shipped.keys()
    stale = [str(name) for name in files if files[name] != shipped[name]]
    assert not stale, "run `python tools/shelf.py` and commit what it writes"
