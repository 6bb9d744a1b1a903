"""Every table and figure of Zimin 2025 runs at its tiny size and says something."""

import numpy as np
import pandas as pd
import pytest
import torch

from measureflow.measures.priors import paper_test_prior
from measureflow.models import load_pretrained
from measureflow.reproduce import artefacts, reproduce
from measureflow.reproduce.opponents import em_with_bic, kmeans, shared_variance_em
from measureflow.reproduce.zimin2025.contestants import BASE
from measureflow.reproduce.zimin2025.tables import DEPTHS, TABLES_BY_NAME, _orderings, printed

MADE = [name for name in artefacts("zimin2025") if name != "theorem2.1"]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """One folder for all, because the tables share their scores."""
    return tmp_path_factory.mktemp("out")


@pytest.mark.parametrize("name", MADE)
def test_artefact_is_made(name, out):
    paths = reproduce("zimin2025", name, "tiny", out)
    endings = {path.suffix for path in paths}
    assert endings == {".csv", ".png", ".pdf", ".md"}
    assert all(path.stat().st_size > 0 for path in paths)


def test_printed_numbers_are_all_there():
    for name, table in TABLES_BY_NAME.items():
        columns = {f"{c.name}, n={n}" for c in table.columns for n in (100, 500, 1000, 2000)}
        expected = columns if table.all_sizes else {c.name for c in table.columns}
        numbers = printed(name)
        assert set(numbers["column"]) == expected
        assert len(numbers) == 3 * len(expected)


def test_orderings_are_counted_pair_by_pair():
    cells = pd.DataFrame(
        [("High", "a", 1.0, 0.1), ("High", "b", 3.0, 0.2), ("High", "c", 2.0, 0.3), ("High", "d", np.nan, 0.4)],
        columns=["data", "column", "ours", "printed"],
    ).assign(n=1000)
    assert _orderings(cells) == (
        "Of the 3 orderings of two columns that the paper prints, 2 hold; not: b below c (High)."
    )


def test_scores_of_other_weights_are_not_taken_for_these(monkeypatch):
    model = DEPTHS[1]
    before = model.key
    monkeypatch.setattr("measureflow.reproduce.zimin2025.contestants.digest", lambda _: "others")
    assert model.key != before


def test_base_weights_ship():
    assert BASE in load_pretrained.available()


def problem(snr_db: float, seed: int = 0):
    m = paper_test_prior(snr_db).sample(1, 600, torch.Generator().manual_seed(seed))
    return m.points[0].double().numpy(), int(m.n_components[0]), float(m.noise_variance[0])


def test_shared_variance_em_finds_the_noise_and_never_loses_likelihood():
    x, K, variance = problem(20.0)
    fit = shared_variance_em(x, K, seed=0)
    assert fit.variance == pytest.approx(variance, rel=0.15)  # 600 points in 2-d: a standard error of 4 %
    assert fit.masses.sum() == pytest.approx(1.0)
    fewer = shared_variance_em(x, K, seed=0, starts=1)
    assert fit.log_likelihood >= fewer.log_likelihood - 1e-6 * len(x)
    oracle = kmeans(x, K, 0, starts=10, init="k-means++")
    assert np.sort(fit.masses) == pytest.approx(np.sort(oracle.masses), abs=0.05)


def test_bic_finds_one_cluster_where_there_is_one():
    x = np.random.default_rng(0).normal(size=(300, 2))
    assert len(em_with_bic(x, seed=0, most=4, starts=3).masses) == 1
