"""Labelled tables and clouds to develop on: all from packages, none drawn by the prior that the flow learned from.

Choices about the flow, its prior and the estimator may look at these; tables kept elsewhere are the test.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets

from measureflow.data import load_penguins

Table = tuple[np.ndarray, np.ndarray]  # rows (n, d), labels (n,)
MOST_ROWS = 1500  # of larger tables every k-th row is taken


def packaged(package: str, path: str) -> Path:
    """A file of an installed package, which is not imported: some write into the home folder when they are."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is needed for the development tables: make setup installs it")
    return Path(spec.submodule_search_locations[0]) / path


def rdata(name: str, columns: list[str], label: str) -> Table:
    """A table of R's packages, as pydataset carries them."""
    with tarfile.open(packaged("pydataset", "resources.tar.gz")) as archive:
        member = next(m for m in archive.getmembers() if m.name.endswith(f"/csv/{name}.csv"))
        file = archive.extractfile(member)
        assert file is not None
        frame = pd.read_csv(io.BytesIO(file.read())).dropna()
    return frame[columns].to_numpy(float), frame[label].to_numpy()


def crabs() -> Table:
    """Five measurements of crabs of two colours and two sexes."""
    X, _ = rdata("MASS/crabs", ["FL", "RW", "CL", "CW", "BD"], "sp")
    kind = ["sp", "sex"]
    with tarfile.open(packaged("pydataset", "resources.tar.gz")) as archive:
        member = next(m for m in archive.getmembers() if m.name.endswith("/csv/MASS/crabs.csv"))
        file = archive.extractfile(member)
        assert file is not None
        frame = pd.read_csv(io.BytesIO(file.read()))
    return X, frame[kind].agg("".join, axis=1).to_numpy()


def glass() -> Table:
    """Refractive index and oxides of six kinds of glass."""
    return rdata("MASS/fgl", ["RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe"], "type")


def biopsy() -> Table:
    """Nine scores from 1 to 10 of benign and malignant biopsies."""
    return rdata("MASS/biopsy", [f"V{i}" for i in range(1, 10)], "class")


def segments() -> Table:
    """Image segments of seven kinds."""
    with zipfile.ZipFile(packaged("river", "datasets/segment.csv.zip")) as archive:
        frame = pd.read_csv(archive.open(archive.namelist()[0]))
    return frame.iloc[:, :-1].to_numpy(float), frame.iloc[:, -1].to_numpy()


def shuttle() -> Table:
    """Readings of the shuttle's radiators, most of one kind."""
    with gzip.open(packaged("river", "datasets/shuttle.csv.gz")) as file:
        frame = pd.read_csv(file)
    return frame.iloc[:, :-1].to_numpy(float), frame.iloc[:, -1].to_numpy()


def coffee() -> Table:
    """Infrared spectra of coffees from three countries, every tenth wave number."""
    spectra = pd.read_csv(packaged("chemotools", "datasets/data/coffee_spectra.csv"))
    labels = pd.read_csv(packaged("chemotools", "datasets/data/coffee_labels.csv"))
    return spectra.to_numpy(float)[:, ::10], labels.iloc[:, -1].to_numpy()


def penguins() -> Table:
    """Four measurements of three species."""
    whole = load_penguins().dropna()
    return whole[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]].to_numpy(float), whole[
        "species"
    ].to_numpy()


def lines(seed: int, d: int, K: int) -> Table:
    """Clusters along lines, drawn by pyclugen."""
    import pyclugen

    drawn = pyclugen.clugen(d, K, 400, np.ones(d), 0.5, np.full(d, 12.0), 8.0, 2.0, 1.0, rng=seed)
    return drawn.points, drawn.clusters


def density(seed: int, d: int, K: int) -> Table:
    """Clusters of even and uneven density along random walks, drawn by densired."""
    from densired import datagen

    drawn = datagen.densityDataGen(dim=d, clunum=K, core_num=60, seed=seed, ratio_noise=0.0, min_dist=1.3)
    X = drawn.generate_data(500)
    return X[:, :-1], X[:, -1]


REAL: dict[str, Callable[[], Table]] = {
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "penguins": penguins,
    "crabs": crabs,
    "glass": glass,
    "biopsy": biopsy,
    "segments": segments,
    "shuttle": shuttle,
    "coffee": coffee,
}
CLOUDS: dict[str, Callable[[], Table]] = {
    "moons": lambda: datasets.make_moons(500, noise=0.07, random_state=0),
    "circles": lambda: datasets.make_circles(500, noise=0.05, factor=0.5, random_state=0),
    **{f"lines, d={d}, K={K}": (lambda d=d, K=K: lines(d + K, d, K)) for d, K in ((2, 4), (3, 6), (8, 5), (2, 10))},
    **{f"density, d={d}, K={K}": (lambda d=d, K=K: density(d + K, d, K)) for d, K in ((2, 5), (4, 8), (10, 5))},
}


def standardised(load: Callable[[], Table]) -> Table:
    """Columns that vary, each of mean zero and variance one; large tables thinned."""
    X, y = load()
    step = -(-len(X) // MOST_ROWS)
    X, y = np.asarray(X[::step], dtype=float), np.unique(np.asarray(y[::step]), return_inverse=True)[1]
    X = X[:, X.std(0) > 1e-12 * np.abs(X).max(0).clip(1e-300)]
    return (X - X.mean(0)) / X.std(0), y
