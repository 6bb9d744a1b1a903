"""The server answers, refuses with a reason, and stays up."""

import io
import json
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from measureflow import FlowMixture, cli
from measureflow.explorer import jobs
from measureflow.explorer.limits import Limits
from measureflow.explorer.server import create_app
from measureflow.flows import Dopri5

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # starlette would rather have a client newer than the lock's
    from fastapi.testclient import TestClient

LOCAL = "http://127.0.0.1"


@pytest.fixture
def client(tmp_path):
    with TestClient(create_app(results=tmp_path, artefacts={"zimin2025": ["table1"]}), base_url=LOCAL) as client:
        yield client


def test_the_page_is_there_and_sealed(client):
    answer = client.get("/")
    assert answer.status_code == 200
    assert "<title>" in answer.text
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert "http" not in answer.text.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_another_name_for_this_host_is_refused(client):
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400


def test_models_and_examples(client):
    for model in client.get("/api/models").json():
        assert client.get(f"/models/{model['name']}.onnx").status_code == 200
    for example in client.get("/api/examples").json():
        assert client.get(f"/api/examples/{example['name']}").text.count("\n") > 100
    assert client.get("/api/examples/nothing").status_code == 404


def test_the_users_own_table_comes_first(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("x,y\n1,2\n3,4\n")
    with TestClient(create_app(file), base_url=LOCAL) as client:
        assert client.get("/api/examples").json()[0] == {"name": "own", "title": "mine.csv"}
        assert client.get("/api/examples/own").text == file.read_text()


def test_a_table_that_the_page_cannot_read_is_sent_as_csv(tmp_path):
    pytest.importorskip("pyarrow")
    file = tmp_path / "mine.parquet"
    pd.DataFrame({"x": [1, 3], "y": [2.5, 4.0]}).to_parquet(file)
    with TestClient(create_app(file), base_url=LOCAL) as client:
        assert client.get("/api/examples/own").text == "x,y\n1,2.5\n3,4.0\n"


@pytest.mark.parametrize(
    "path",
    [
        *("/../server.py", "/%2e%2e/server.py", "/..%2f..%2fcli.py", "/models/..%5c..%5cserver.py", "//etc/passwd"),
        *("/api/papers/..%2f..%2f/x/secret.png", "/api/papers/zimin2025/..%2f..%2f/secret.csv"),
        *("/api/papers/zimin2025/%2e%2e/secret.csv", "/api/examples/..%2fserver.py"),
    ],
)
def test_no_path_leads_out(client, path, tmp_path):
    (tmp_path.parent / "secret.csv").write_text("a\n1\n")
    (tmp_path / "zimin2025").mkdir()
    answer = client.get(path)
    assert answer.status_code in (400, 404)


# fitting ------------------------------------------------------------------------------------------------------


def two_blobs(n: int = 120) -> np.ndarray:
    noise = np.random.default_rng(0).normal(size=(n, 2))
    return noise + np.where(np.arange(n)[:, None] % 2, 12.0, 0.0)


def csv(values: np.ndarray) -> bytes:
    return b"x,y\n" + b"".join(b"%f,%f\n" % tuple(row) for row in values)


def test_fit_is_what_the_command_line_says(client, tmp_path):
    """Labels, numbering, columns, gaps and words of the page are those of ``measureflow cluster``."""
    body = b"name,x,y\nodd,,1\n" + b"".join(b"a,%f,%f\n" % tuple(row) for row in two_blobs())
    (tmp_path / "table.csv").write_bytes(body)
    asked = ["cluster", str(tmp_path / "table.csv"), "--out", str(tmp_path), "--json", "--stability", "0"]
    told = CliRunner().invoke(cli.main, asked)
    said = json.loads(told.stdout)
    report = client.post("/api/fit", content=body).json()
    assert {name: report[name] for name in said if name != "files"} == {
        name: value for name, value in said.items() if name != "files"
    }
    labels = pd.read_csv(tmp_path / "labels.csv")
    assert report["labels"] == labels["cluster"].tolist()
    assert report["labels"][0] == -1
    assert report["probabilities"][0] is None
    assert report["notes"] == ["121 rows, 1 of them with gaps left out"]
    assert set(report["labels"][1:]) == {0, 1}
    assert report["rivals"][1:] == [1 - k for k in report["labels"][1:]]
    assert all(report["labels"][row] == k for k in (0, 1) for row in report["typical"][k])


def test_the_flow_that_is_sent_is_the_one_that_was_fitted(client):
    values = two_blobs()
    report = client.post("/api/fit", content=csv(values)).json()
    flow = report["flow"]
    states = np.reshape(flow["points"], (flow["layers"] + 1, flow["n"], 2))
    mixture = FlowMixture().fit(pd.read_csv(io.BytesIO(csv(values))))
    assert np.allclose(states, np.stack([state.numpy() for state in mixture.flow_]), rtol=1e-5, atol=1e-5)
    assert flow["labels"] == mixture.predict(pd.DataFrame(states[0], columns=["x", "y"])).tolist()


def test_the_dial_is_obeyed_and_its_curve_says_the_same(client):
    body = csv(two_blobs())
    counts = client.post("/api/dial", params={"db": [0, 10, 20]}, content=body).json()
    fitted = [client.post("/api/fit", params={"snr_db": db}, content=body).json()["n_clusters"] for db in (0, 10, 20)]
    assert counts == fitted
    assert client.post("/api/fit", params={"n_clusters": 3}, content=body).json()["n_clusters"] == 3


def test_columns_are_obeyed(client):
    report = client.post("/api/fit", params={"columns": ["y"]}, content=csv(two_blobs())).json()
    assert report["columns"] == ["y"]
    assert report["skipped"] == {"x": "not asked for"}


def test_peers_are_what_scikit_learn_says(client):
    values = two_blobs()
    values[::2, 1] *= 3  # one cluster is long: spheres of one size are wrong
    answers = {peer["name"]: peer for peer in client.post("/api/peers?n_clusters=2", content=csv(values)).json()}
    assert list(answers) == ["k-means", "Gaussian mixture", "HDBSCAN"]
    assert answers["Gaussian mixture"]["words"] == "K = 2 by BIC, upright shapes"
    for peer in answers.values():
        labels = np.array(peer["labels"])
        assert len({*labels[::2]} - {-1}) == len({*labels[1::2]} - {-1}) == 1


def test_a_body_too_large_is_413_declared_or_not():
    def stream():
        for _ in range(20):
            yield b"1,2\n" * 1000

    with TestClient(create_app(limits=Limits(body=10_000)), base_url=LOCAL) as client:
        for body in (b"1" * 10_001, stream()):
            answer = client.post("/api/fit", content=body, headers={"content-type": "text/csv"})
            assert answer.status_code == 413
            assert "MB" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["table", "fit", "dial?db=3", "peers?n_clusters=2"])
@pytest.mark.parametrize("body", [b"\xff\xfe\x00", b"a,b\nx,y\nz,w\n", b"{", b"[[1, 2], [3]]"])
def test_a_bad_table_is_422_with_a_reason(client, body, path):
    answer = client.post(f"/api/{path}", content=body)
    assert answer.status_code == 422
    assert len(answer.json()["detail"]) > 10


@pytest.mark.parametrize("asked", ["columns=z", "n_clusters=0", "n_clusters=many", "snr_db=nan", "n_clusters=999"])
def test_a_bad_question_is_422_with_a_reason(client, asked):
    answer = client.post(f"/api/fit?{asked}", content=csv(two_blobs()))
    assert answer.status_code == 422
    assert isinstance(answer.json()["detail"], str)


# simulations --------------------------------------------------------------------------------------------------


def finished(client, job: dict) -> dict:
    deadline = time.monotonic() + 60
    while job["state"] in ("waiting", "running") and time.monotonic() < deadline:
        time.sleep(0.02)
        job = client.get(f"/api/simulate/{job['id']}").json()
    return job


def test_a_simulation_runs_to_its_end(client):
    answer = client.post(
        "/api/simulate", json={"attention": "l2", "n": 50, "layers": 4, "time": 1.0, "V": [[-1, 0], [0, -1]]}
    )
    assert answer.status_code == 202
    job = finished(client, answer.json())
    assert job["state"] == "done"
    assert job["progress"] == 1
    points = np.array(job["result"]["points"])
    assert points.shape == (5, 50, 2)
    assert job["result"]["times"] == [0, 0.25, 0.5, 0.75, 1]
    assert job["result"]["entropy"][-1] < job["result"]["entropy"][0]  # V = -I draws the tokens together


def test_the_cloud_that_was_sent_is_the_one_that_flows(client):
    points = [[float(i), float(i * i % 5)] for i in range(8)]
    asked = {"attention": "l2", "points": points, "layers": 2, "time": 0.5}
    result = finished(client, client.post("/api/simulate", json=asked).json())["result"]
    assert result["points"][0] == points


def test_a_gaussian_that_blows_up_has_a_time(client):
    asked = {"attention": "linear", "gaussian": True, "time": 10.0}
    result = finished(client, client.post("/api/simulate", json=asked).json())["result"]
    assert result["divergence"] == "finite time"
    assert result["blow_up_time"] == pytest.approx(0.5, abs=1e-4)  # S' = 2 S^2 from S = I
    assert result["ending"].startswith("Blow-up in finite time, at t = 0.5")


def test_a_cloud_that_takes_forever_to_leave_is_said_to_have_left(client):
    asked = {"attention": "l2", "n": 40, "time": 60.0, "layers": 4}  # V = I: the cloud grows like exp(t)
    result = finished(client, client.post("/api/simulate", json=asked).json())["result"]
    assert result["divergence"] == "infinite time"
    assert result["ending"] == "It outgrew the limit: divergence in infinite time."
    assert result["blow_up_time"] is None


@pytest.mark.parametrize(
    "asked",
    [b"{", b"[]", b'{"attention": "magic"}', b'{"n": 10000000}', b'{"time": -1}', b'{"colour": 1}', b'{"time": NaN}'],
)
def test_a_bad_simulation_is_422_with_a_reason(client, asked):
    answer = client.post("/api/simulate", content=asked, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert isinstance(answer.json()["detail"], str)


def test_a_simulation_that_cannot_be_says_so(client):
    job = finished(client, client.post("/api/simulate", json={"V": [[1.0]], "n": 10}).json())
    assert job["state"] == "failed"
    assert "V must have shape" in job["reason"]


def test_a_simulation_that_runs_out_of_steps_is_not_done(client, monkeypatch):
    monkeypatch.setattr("measureflow.simulate.METHOD", Dopri5(max_steps=3))
    asked = {"attention": "softmax", "gaussian": True, "time": 1.0, "layers": 4}
    job = finished(client, client.post("/api/simulate", json=asked).json())
    assert job["state"] == "failed"
    assert "ran out of steps" in job["reason"]


def test_simulations_are_cancelled_and_bounded(monkeypatch):
    entered = threading.Event()

    def endless(asked, tell):
        entered.set()
        while True:
            tell(0.5)
            time.sleep(0.001)

    monkeypatch.setattr(jobs, "simulated", endless)
    with TestClient(create_app(limits=Limits(running=1, waiting=1)), base_url=LOCAL) as client:
        first, second = (client.post("/api/simulate", json={}).json() for _ in range(2))
        refused = client.post("/api/simulate", json={})
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) > 0
        assert entered.wait(10)
        for job in (first, second):
            client.delete(f"/api/simulate/{job['id']}")
            assert finished(client, job)["state"] == "cancelled"
        assert client.post("/api/simulate", json={}).status_code == 202
        assert client.get("/api/simulate/unknown").status_code == 404


def test_a_crowd_is_refused_not_queued():
    app = create_app(limits=Limits(requests=0))
    with TestClient(app, base_url=LOCAL) as client:
        answer = client.get("/api/models")
        assert answer.status_code == 503
        assert "retry-after" in answer.headers


def test_a_full_gate_is_503():
    with TestClient(create_app(limits=Limits(running=1, waiting=-1)), base_url=LOCAL) as client:
        answer = client.post("/api/circuit", json={})
        assert answer.status_code == 503
        assert "retry-after" in answer.headers
