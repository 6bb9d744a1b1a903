"""The average of two opinions: its weight, its file, and that its fit finds who is right."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from measureflow.coclustering.average import EXPONENTS, LEAST, SCALARS, SINGLE_ODDS, Average
from measureflow.coclustering.facts import FACTS
from measureflow.coclustering.opinions import GaussianOpinion, Opinion
from measureflow.training.fit_average import Asked, fit
from measureflow.training.judged_sets import PAIRS, draw

NOTHING, NOT_ROUND = (0.0,) * len(FACTS), -50.0
EVEN = Average(NOTHING, 0.0, NOTHING, NOT_ROUND, 1.0, 0.0, 1.0, (0.5, 0.5, 0.0, 0.0, 0.0, 0.0))


def of_gaussians(P, n_clusters: dict[int, float]) -> GaussianOpinion:
    return GaussianOpinion(np.array(P), n_clusters, np.zeros(len(P)), np.eye(len(P)), 0.1, True)


def test_without_facts_both_count_alike():
    shapes = Opinion(np.array([[1.0, 0.8], [0.8, 1.0]]), {1: 0.2, 2: 0.8}, np.array([0.9, 0.0]))
    gaussians = of_gaussians([[1.0, 0.2], [0.2, 1.0]], {2: 0.5, 3: 0.5})
    opinion, p_round, weight = EVEN.of(shapes, gaussians, np.zeros(len(FACTS)), n_cut=2)
    assert p_round < 1e-9
    assert weight == pytest.approx(0.5)
    assert opinion.together[0, 1] == pytest.approx(0.5)
    roots = np.sqrt((np.array([0.2, 0.8, 0.0]) + LEAST) * (np.array([0.0, 0.5, 0.5]) + LEAST))  # exponents of one half
    roots[0] *= SINGLE_ODDS
    assert [opinion.n_clusters[K] for K in (1, 2, 3)] == pytest.approx((roots / roots.sum()).tolist())
    assert opinion.outlying.tolist() == pytest.approx([0.9, 0.0])  # Gaussians say nothing of outliers


def test_the_probability_of_being_round_is_total_probability():
    """P, the number of clusters and the outliers: rho times what the Gaussians say, the rest as if not round."""
    shapes = Opinion(np.array([[1.0, 0.8], [0.8, 1.0]]), {1: 0.2, 2: 0.8}, np.array([0.9, 0.0]))
    gaussians = of_gaussians([[1.0, 0.2], [0.2, 1.0]], {2: 0.5, 3: 0.5})
    known = np.zeros(len(FACTS))
    not_round = EVEN.of(shapes, gaussians, known, n_cut=2).opinion
    opinion, p_round, weight = replace(EVEN, round_bias=np.log(3.0)).of(shapes, gaussians, known, n_cut=2)
    assert p_round == pytest.approx(0.75)
    assert weight == pytest.approx(0.75 + 0.25 * 0.5)
    assert opinion.together == pytest.approx(0.75 * gaussians.together + 0.25 * not_round.together)
    for K in (1, 2, 3):
        assert opinion.n_clusters[K] == pytest.approx(
            0.75 * gaussians.n_clusters.get(K, 0.0) + 0.25 * not_round.n_clusters[K]
        )
    assert opinion.outlying == pytest.approx(0.25 * shapes.outlying)


def test_the_number_of_clusters_in_the_cut_gains_by_its_exponent():
    shapes = of_gaussians(np.eye(2), {2: 0.5, 3: 0.5})
    average = replace(EVEN, exponents=(0.0, 0.0, np.log(3.0), 0.0, 0.0, 0.0))
    single = SINGLE_ODDS  # what one cluster has where nothing else is said
    found = average.of(shapes, shapes, np.zeros(len(FACTS)), n_cut=3).opinion.n_clusters
    assert found == pytest.approx({1: single / (single + 4), 2: 1 / (single + 4), 3: 3 / (single + 4)})
    sloping = replace(EVEN, exponents=(0.0, 0.0, 0.0, 0.0, 0.0, np.log(9.0)))  # half of it, as pi is one half
    assert sloping.of(shapes, shapes, np.zeros(len(FACTS)), n_cut=3).opinion.n_clusters == pytest.approx(found)


def test_the_file_must_weigh_the_same_facts(tmp_path):
    table = {"facts": list(FACTS), "exponents": [0.1] * 2 * len(EXPONENTS)}
    table |= dict.fromkeys(("weights", "round_weights"), [0.1] * len(FACTS))
    table |= dict.fromkeys(SCALARS, 1.0)
    path = tmp_path / "average.json"
    path.write_text(json.dumps(table | {"gaussian_scale": 0.5}))
    assert Average.read(path).gaussian_scale == 0.5
    path.write_text(json.dumps(table | {"gaussian_scale": 0.5, "facts": ["mood"]}))
    with pytest.raises(ValueError, match="other facts"):
        Average.read(path)
    for broken in ({"gaussian_scale": float("nan")}, {"gaussian_scale": "1"}, {"exponents": [0.1]}, {"weights": None}):
        path.write_text(json.dumps(table | broken))
        with pytest.raises(ValueError, match="finite"):
            Average.read(path)


@pytest.mark.parametrize("right", ["shapes", "gaussians"])
def test_the_fit_believes_who_is_right(right):
    generator = torch.Generator().manual_seed(0)
    same = (torch.rand(40, PAIRS, generator=generator, dtype=torch.float64) < 0.4).double()
    truth, guess = 0.05 + 0.9 * same, torch.rand(40, PAIRS, generator=generator, dtype=torch.float64)
    known = torch.randn(40, len(FACTS), generator=generator, dtype=torch.float64)
    opinions = (truth, guess) if right == "shapes" else (guess, truth)
    counts = torch.zeros(40, 60, len(EXPONENTS), dtype=torch.float64)
    counts[:, 0, 0 if right == "shapes" else 1] = 3.0  # who is right gives the true number more than the others
    counts[:, 7, 1 if right == "shapes" else 0] = 3.0
    table = fit(Asked(known, *opinions, same, counts, torch.arange(40) % 8 == 0))
    weight = torch.sigmoid(known @ torch.tensor(table["weights"]).double() + table["bias"]).mean()
    assert weight < 0.1 if right == "shapes" else weight > 0.9
    by_shapes, by_gaussians, *_ = np.array(table["exponents"]).reshape(2, -1).T @ [1.0, float(weight)]
    assert by_shapes > 0.5 > by_gaussians if right == "shapes" else by_gaussians > 0.5 > by_shapes


def test_the_fit_finds_which_sets_are_round():
    """By the fact that tells, and as if half of all sets were round, however few are."""
    generator = torch.Generator().manual_seed(0)
    is_round = torch.arange(400) % 10 == 0
    known = torch.randn(400, len(FACTS), generator=generator, dtype=torch.float64)
    telling = FACTS.index("misfit")
    known[:, telling] += torch.where(is_round, -1.0, 1.0)
    pairs = torch.rand(3, 400, PAIRS, generator=generator, dtype=torch.float64)
    table = fit(Asked(known, *pairs[:2], pairs[2].round(), torch.zeros(400, 60, len(EXPONENTS)).double(), is_round))
    weights = np.array(table["round_weights"])
    assert weights.argmin() == telling
    assert np.abs(np.delete(weights, telling)).max() < -weights[telling] / 3
    assert abs(table["round_bias"]) < 1.0  # halfway between the two kinds


def test_sets_of_the_fit_are_the_same_every_time():
    for number in (0, 1):
        (points, labels), (again, _) = draw(number), draw(number)
        assert np.array_equal(points, again)
        assert len(points) == len(labels)
