"""Every artefact of He 2025 at its tiny size, and the scores and opponents they stand on."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from measureflow.measures.he_mixtures import HeMixtures
from measureflow.reproduce import artefacts, reproduce
from measureflow.reproduce.he2025 import separation, theorem
from measureflow.reproduce.he2025.baselines import lloyd, lloyd_from_plus_plus, plus_plus, spectral
from measureflow.reproduce.he2025.scores import adjusted_rand_index, contingency, normalised_mutual_information
from measureflow.reproduce.he2025.trained import Setting, measured
from measureflow.training.in_context import Recipe


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("out")


@pytest.mark.parametrize("artefact", artefacts("he2025"))
def test_artefact_writes_tables_pictures_and_findings(artefact, out):
    paths = reproduce("he2025", artefact, "tiny", out)
    endings = {path.suffix for path in paths}
    assert endings == {".csv", ".png", ".pdf", ".md"}
    for path in paths:
        assert path.stat().st_size > 0
        if path.suffix == ".csv":
            assert not pd.read_csv(path).isna().any().any()
    text = next(path for path in paths if path.suffix == ".md").read_text()
    assert "nan" not in text.split("\n\n", 1)[1]


def test_finished_settings_are_not_trained_again(tmp_path, monkeypatch):
    setting = Setting(HeMixtures(n_classes=2, dimension=2, n_per_class=5), Recipe(n_steps=2, batch=2), n_test=4)
    first = measured([setting], tmp_path, "once")
    from measureflow.reproduce.he2025 import trained

    monkeypatch.setattr(trained, "measure", lambda setting: pytest.fail("trained twice"))
    pd.testing.assert_frame_equal(measured([setting], tmp_path, "twice"), first)
    assert json.loads(next(tmp_path.glob("*.json")).read_text())["seed"] == 0


def test_an_interrupted_run_keeps_what_it_finished(tmp_path, monkeypatch):
    from measureflow.reproduce.he2025 import trained

    mixtures = HeMixtures(n_classes=2, dimension=2, n_per_class=5)
    settings = [Setting(mixtures, Recipe(n_steps=1, batch=2), seed, n_test=4) for seed in range(3)]
    real, done, stopped = trained.measure, [], []

    def stops_at_the_second(setting):
        if done == [0] and not stopped:
            stopped.append(True)
            raise KeyboardInterrupt
        done.append(setting.seed)
        return real(setting)

    monkeypatch.setattr(trained, "measure", stops_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        measured(settings, tmp_path, "first")
    assert len(list(tmp_path.glob("*.json"))) == 1
    table = measured(settings, tmp_path, "second")
    assert list(table["seed"]) == [0, 1, 2]
    assert done == [0, 1, 2]


def test_scores_are_scikit_learns():
    rng = np.random.default_rng(0)
    truth, found = rng.integers(4, size=(2, 20, 60))
    found[:10] = np.where(rng.random((10, 60)) < 0.8, truth[:10], found[:10])
    found[0], truth[1], found[2], truth[2] = truth[0], 0, 0, 0
    table = contingency(torch.as_tensor(truth), torch.as_tensor(found), 4)
    ari = [adjusted_rand_score(a, b) for a, b in zip(truth, found, strict=True)]
    nmi = [normalized_mutual_info_score(a, b) for a, b in zip(truth, found, strict=True)]
    np.testing.assert_allclose(adjusted_rand_index(table), ari, atol=1e-12)
    np.testing.assert_allclose(normalised_mutual_information(table), nmi, atol=1e-12)


def test_batched_lloyd_is_scikit_learns_from_the_same_start():
    sets = HeMixtures(n_classes=3, dimension=4, n_per_class=30, minimum_distance=12.0).sample(
        3, torch.Generator().manual_seed(0)
    )
    points = sets.points.double()
    start = plus_plus(points, 3, torch.Generator().manual_seed(1))
    labels = lloyd(points, start, 100)
    for x, c, ours in zip(points.numpy(), start.numpy(), labels.numpy(), strict=True):
        theirs = KMeans(3, init=c, n_init=1, tol=0).fit(x).labels_
        np.testing.assert_array_equal(ours, theirs)


def test_opponents_solve_far_apart_clusters():
    sets = HeMixtures(minimum_distance=300.0).sample(8, torch.Generator().manual_seed(0))
    for method in (lloyd_from_plus_plus, spectral):
        labels = method(sets.points.double(), 4, torch.Generator().manual_seed(0))
        assert float(adjusted_rand_index(contingency(sets.labels, labels, 4)).mean()) > 0.9


def test_crossing_is_found_between_grid_points():
    sweep = pd.DataFrame({"value": [5, 10, 20], "ARI": [0.1, 0.4, 0.8]})
    assert separation.crossing(sweep) == pytest.approx(12.5)
    assert np.isnan(separation.crossing(sweep, 0.9))
    assert separation.crossing(sweep, 0.05) == 5


def test_slopes_of_known_powers():
    M = np.array([16, 64, 256])
    assert theorem.slope(M, 3.0 * M**-0.5) == pytest.approx(-0.5)
    assert -0.5 < theorem.theory(M) < -0.3  # the logarithm slows the decay a little
