"""A circuit comes apart into its heads, and the parts add up to the transformer."""

import warnings

import numpy as np
import pytest
import torch

from measureflow.circuits import kmeans_transformer
from measureflow.explorer import circuit
from measureflow.explorer.server import create_app

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # starlette would rather have a client newer than the lock's
    from fastapi.testclient import TestClient


@pytest.fixture
def client(tmp_path):
    with TestClient(create_app(results=tmp_path), base_url="http://127.0.0.1") as client:
        yield client


@pytest.mark.parametrize("algorithm", circuit.ALGORITHMS)
def test_every_circuit_comes_apart(client, algorithm):
    parts = client.post("/api/circuit", json={"algorithm": algorithm, "layers": 2}).json()
    for step in parts["steps"]:
        assert np.allclose(np.sum(step["attention"]["enc_ca"], -1), 1)
        assert set(step["attention"]) == set(parts["heads"])
    assert parts["steps"][1]["before"] == parts["steps"][0]["after"]


def test_the_parts_add_up_to_the_transformer():
    parts = circuit.take_apart("lloyd", 3, 24, 5, 1)
    at = slice(*parts["slots"]["point"])
    points, tokens = (
        torch.tensor(x, dtype=torch.float64) for x in (parts["points"], parts["steps"][0]["before"]["centres"])
    )
    trace = kmeans_transformer(2, 3, n_layers=5).trace(points, tokens[:, at])
    for step, iteration in zip(parts["steps"], trace, strict=True):
        centers = np.array(step["after"]["centres"])[:, at]
        assert np.abs(centers - iteration.centers.numpy()).max() < 1e-12


@pytest.mark.parametrize(
    "asked",
    [{"algorithm": "magic"}, {"k": 0}, {"n": 10**6}, {"k": 8, "n": 4}, {"seed": "x"}, {"points": [[1, 2]]}, {"a": 1}],
)
def test_a_circuit_that_cannot_be_is_422(client, asked):
    assert client.post("/api/circuit", json=asked).status_code == 422


def test_a_circuit_is_shown_the_points_that_were_moved(client):
    parts = client.post("/api/circuit", json={"seed": 3}).json()
    points = parts["points"]
    points[0] = [9.0, -9.0]
    moved = client.post("/api/circuit", json={"seed": 3, "points": points}).json()
    assert moved["points"] == points
    assert moved["steps"] != parts["steps"]
