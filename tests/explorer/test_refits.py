"""The server measures stability part by part, as the estimator does."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest

from measureflow import FlowMixture
from measureflow.explorer import fits
from measureflow.explorer.server import create_app

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # starlette would rather have a client newer than the lock's
    from fastapi.testclient import TestClient


@pytest.fixture
def client(tmp_path):
    with TestClient(create_app(results=tmp_path), base_url="http://127.0.0.1") as client:
        yield client


def two_blobs(n: int = 120) -> np.ndarray:
    noise = np.random.default_rng(0).normal(size=(n, 2))
    return noise + np.where(np.arange(n)[:, None] % 2, 12.0, 0.0)


def csv(values: np.ndarray) -> bytes:
    return b"x,y\n" + b"".join(b"%f,%f\n" % tuple(row) for row in values)


def test_stability_is_measured_when_asked_for(client):
    stable = client.post("/api/stability?n=2", content=csv(two_blobs())).json()
    assert stable["n_clusters"] == {"2": 1.0}
    assert stable["clusters"] == [1.0, 1.0]


@pytest.mark.filterwarnings("ignore::measureflow.mixtures.misfit.UnfamiliarDataWarning")
def test_parts_are_those_of_the_estimator_and_each_is_fitted_once(client, monkeypatch):
    """The page asks for one part more at a time, so that it can tell of each and stop; no part is fitted again."""
    values = np.random.default_rng(1).normal(size=(60, 2))  # of one Gaussian, parts differ in what is found
    body, fitted = csv(values), []
    labels = fits._labels
    monkeypatch.setattr(fits, "_labels", lambda X, *more: fitted.append(len(X)) or labels(X, *more))
    told = [client.post(f"/api/stability?n={n}&snr_db=12", content=body).json() for n in (1, 2, 4)]
    assert fitted == [48] * 4
    for n, said in zip((1, 2, 4), told, strict=True):
        mixture = FlowMixture(snr_db=12, n_stability=n, random_state=0).fit(pd.read_csv(io.BytesIO(body)))
        assert said["n_clusters"] == {str(K): share for K, share in mixture.stability_.n_clusters.items()}
        assert said["clusters"] == mixture.stability_.clusters.tolist()


def test_the_page_is_told_how_many_parts_to_ask_for(client):
    """The rule of the command line: none where K was asked for."""
    body = csv(two_blobs())
    assert client.post("/api/fit", content=body).json()["refits"] == 10
    assert client.post("/api/fit?n_clusters=2", content=body).json()["refits"] == 0
