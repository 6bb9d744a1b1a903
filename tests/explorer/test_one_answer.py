"""One answer everywhere: what the page is told of a table is what `FlowMixture` finds in it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets

from measureflow import FlowMixture
from measureflow.data import load_faithful, load_penguins
from measureflow.explorer.server import create_app

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # starlette would rather have a client newer than the lock's
    from fastapi.testclient import TestClient


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def with_gaps() -> np.ndarray:
    X = np.concatenate([rng().normal(c, 0.3, (40, 3)) for c in (0, 4)])
    X[[3, 50], [0, 2]] = np.nan
    return X


TABLES = {  # numbers (n, d); a row with a gap is left out
    "iris": lambda: datasets.load_iris().data,
    "wine": lambda: datasets.load_wine().data,
    "penguins": lambda: load_penguins().iloc[:, 2:6].to_numpy(float),
    "geyser": lambda: load_faithful().to_numpy(float),
    "moons": lambda: datasets.make_moons(150, noise=0.07, random_state=0)[0],
    "circles": lambda: datasets.make_circles(150, noise=0.05, factor=0.5, random_state=0)[0],
    "groups": lambda: datasets.make_blobs(150, centers=5, random_state=8)[0],
    "customers": lambda: np.exp(rng().normal(np.repeat([[1.0, 5.0], [3.0, 2.0], [0.0, 1.0]], 50, 0), 0.3)),
    "square": lambda: rng().uniform(size=(150, 2)),
    "gaps": with_gaps,
}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    app = create_app(results=tmp_path_factory.mktemp("results"))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


@pytest.mark.parametrize("name", TABLES)
def test_the_page_is_told_what_the_library_finds(client, name):
    X = TABLES[name]()
    frame = pd.DataFrame(X, columns=[f"column_{j}" for j in range(X.shape[1])])
    answer = client.post("/api/fit", content=frame.to_csv(index=False, float_format="%.17g").encode())
    assert answer.status_code == 200, answer.text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture = FlowMixture(missing="drop").fit(frame)
    assert answer.json()["n_clusters"] == mixture.n_clusters_
    assert answer.json()["labels"] == mixture.labels_.tolist()
    assert answer.json()["outliers"] == np.flatnonzero(mixture.outliers_ & frame.notna().all(axis=1)).tolist()
