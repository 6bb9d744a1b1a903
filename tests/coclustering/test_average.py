"""The average of two posteriors: its weight, its file, and that its fit finds who is right."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from measureflow.coclustering.average import HIDDEN, LEAST, SAID, SCALARS, Average
from measureflow.coclustering.facts import FACTS
from measureflow.coclustering.posteriors import PairPosterior
from measureflow.training.calibration.fit_average import Observations, fit
from measureflow.training.calibration.held_out_sets import PAIRS, draw

F = len(FACTS)
H = HIDDEN
LISTS = {
    "means": [0.0] * F,
    "spreads": [1.0] * F,
    "hidden": [[0.0] * F] * H,
    "hidden_bias": [0.0] * H,
    "hidden_weights": [0.0] * H,
    "weights": [0.0] * F,
    "true_logits": SAID.tolist(),
}
AS_SAID = Average(*map(np.array, LISTS.values()), 0.0, 0.0, 1.0, 0.0)


def test_the_weight_is_what_a_network_says_of_facts_in_units_of_their_spread():
    """By hand: two facts count, one of them in two ways, and none beyond three spreads."""
    facts, means, spreads = np.zeros(F), np.zeros(F), np.ones(F)
    facts[0], facts[1] = 5.0, -400.0
    means[0], spreads[0] = 1.0, 4.0
    weights, hidden, bias, out = np.zeros(F), np.zeros((H, F)), np.zeros(H), np.zeros(H)
    weights[0], weights[1] = 0.5, 0.25
    hidden[2, 1], bias[2], out[2] = 0.4, 0.1, 2.0
    average = replace(AS_SAID, means=means, spreads=spreads, weights=weights, bias=0.2)
    average = replace(average, hidden=hidden, hidden_bias=bias, hidden_weights=out)
    logit = 0.2 + 0.5 * 1 + 0.25 * -3 + 2.0 * np.tanh(0.4 * -3 + 0.1)
    assert average.gaussian_weight(facts) == pytest.approx(1 / (1 + np.exp(-logit)))


def test_shapes_are_believed_as_far_as_the_numbers_say():
    shapes = PairPosterior(np.array([[1.0, 0.8], [0.8, 1.0]]), {1: 0.2, 2: 0.8}, np.array([0.9, 0.0]))
    as_said = AS_SAID.of_shapes(shapes, n_cut=2)
    assert as_said.together[0, 1] == pytest.approx(0.8)
    assert as_said.outlying.tolist() == [0.9, 0.0]
    odds = (0.2 + LEAST) / (0.8 + LEAST)
    assert as_said.n_clusters[1] / as_said.n_clusters[2] == pytest.approx(odds)
    surer = replace(AS_SAID, true_logits=2 * SAID + np.log(2.0), count_exponent=2.0).of_shapes(shapes, n_cut=2)
    assert surer.together[0, 1] == pytest.approx(32 / 33)  # odds of four, squared and doubled
    assert surer.n_clusters[1] / surer.n_clusters[2] == pytest.approx(odds**2)


def test_of_more_rows_more_belong_together_by_the_shift():
    """Of two hundred rows nothing is shifted, of e times as many by the number itself."""
    for n, shift in ((200, 0.0), (544, np.log(544 / 200))):
        shapes = PairPosterior(np.full((n, n), 0.5), {1: 1.0}, np.zeros(n))
        said = replace(AS_SAID, rows_shift=0.7).of_shapes(shapes, n_cut=1).together
        np.testing.assert_allclose(np.log(said / (1 - said)), 0.7 * shift, atol=1e-12)


def test_the_number_of_clusters_in_the_cut_gains_by_its_bonus():
    shapes = PairPosterior(np.eye(2), {2: 0.5, 3: 0.5}, np.zeros(2))
    found = replace(AS_SAID, count_exponent=0.0, cut_bonus=np.log(3.0)).of_shapes(shapes, n_cut=3).n_clusters
    assert found == pytest.approx({2: 1 / 4, 3: 3 / 4})


def test_the_file_must_weigh_the_same_facts(tmp_path):
    table = {"facts": list(FACTS)} | LISTS | dict.fromkeys(SCALARS, 1.0)
    path = tmp_path / "average.json"
    path.write_text(json.dumps(table | {"cut_bonus": 0.5}))
    assert Average.read(path).cut_bonus == 0.5
    path.write_text(json.dumps(table | {"facts": ["mood"]}))
    with pytest.raises(ValueError, match="other facts"):
        Average.read(path)
    for broken in (
        {"count_exponent": float("nan")},
        {"count_exponent": "1"},
        {"cut_bonus": [0.1, 0.2]},
        {"weights": [0.0] * (F + 1)},
        {"hidden": [0.0] * F},
        {"hidden": [[0.0], [0.0, 0.0]]},
        {"hidden": [["0.0"] * F] * H},
        {"hidden_bias": None},
    ):
        path.write_text(json.dumps(table | broken))
        with pytest.raises(ValueError, match="finite"):
            Average.read(path)


@pytest.mark.parametrize("spread", [0.0, -1.0])
def test_spreads_of_facts_must_be_positive(spread):
    table = {"facts": list(FACTS)} | LISTS | dict.fromkeys(SCALARS, 1.0) | {"spreads": [spread] * F}
    with pytest.raises(ValueError, match="spreads above zero"):
        Average.from_table(table)


def test_what_is_put_right_must_rise():
    table = {"facts": list(FACTS)} | LISTS | dict.fromkeys(SCALARS, 1.0) | {"true_logits": SAID[::-1].tolist()}
    with pytest.raises(ValueError, match="rise"):
        Average.from_table(table)


def random_sets(n_sets: int, is_round: torch.Tensor) -> Observations:
    """Sets of which nothing is known, and whose pairs say nothing."""
    generator = torch.Generator().manual_seed(0)
    known = torch.randn(n_sets, len(FACTS), generator=generator, dtype=torch.float64)
    pairs = torch.rand(3, n_sets, PAIRS, generator=generator, dtype=torch.float64)
    counts = torch.zeros(n_sets, 60, 2, dtype=torch.float64)
    return Observations(known, pairs[0], pairs[1], pairs[2].round(), counts, is_round)


def test_the_fit_learns_how_sure_the_shapes_should_have_been():
    observed = random_sets(40, torch.arange(40) % 8 == 0)
    said = 0.98 * observed.same + 0.01  # nearly certain ...
    wrong = observed.gaussians < 0.2  # ... and wrong of a fifth of the pairs
    observed = observed._replace(shapes=torch.where(wrong, 1 - said, said), gaussians=torch.full_like(said, 0.5))
    counts = observed.counts.clone()
    counts[:, 0, 0] = 3.0  # the true number is said to be the likelier by this
    average = Average.from_table(fit(observed._replace(counts=counts)))
    pair = PairPosterior(np.array([[0.99, 0.01]]), {1: 1.0}, np.zeros(1))
    np.testing.assert_allclose(average.of_shapes(pair, 1).together, [[0.8, 0.2]], atol=0.05)
    assert average.count_exponent > 0.5


def test_the_fit_bends_what_was_said_where_it_was_wrong():
    """Below one half what is said comes true, above it half as much of what is beyond."""
    observed = random_sets(400, torch.arange(400) % 8 == 0)
    true = torch.where(observed.shapes < 0.5, observed.shapes, 0.25 + observed.shapes / 2)
    drawn = torch.rand(true.shape, generator=torch.Generator().manual_seed(1), dtype=true.dtype)
    same = (drawn < true).double()
    average = Average.from_table(fit(observed._replace(same=same, gaussians=torch.full_like(same, 0.5))))
    pairs = PairPosterior(np.array([[0.1, 0.3, 0.7, 0.9]]), {1: 1.0}, np.zeros(1))
    np.testing.assert_allclose(average.of_shapes(pairs, 1).together, [[0.1, 0.3, 0.6, 0.7]], atol=0.06)


def test_the_fit_finds_how_what_is_said_depends_on_the_number_of_rows():
    observed = random_sets(400, torch.arange(400) % 8 == 0)
    logits = torch.logit(observed.shapes.clamp(0.01, 0.99)) + 0.5 * observed.facts[:, FACTS.index("log rows"), None]
    drawn = torch.rand(logits.shape, generator=torch.Generator().manual_seed(1), dtype=logits.dtype)
    same = (drawn < torch.sigmoid(logits)).double()
    table = fit(observed._replace(same=same, gaussians=torch.full_like(same, 0.5)))
    assert table["rows_shift"] == pytest.approx(0.5, abs=0.1)


def test_the_fit_finds_which_sets_are_round():
    """By the fact that tells, and over all sets as many are said to be round as are."""
    is_round = torch.arange(1600) % 10 == 0
    observed, telling = random_sets(1600, is_round), FACTS.index("misfit")
    observed.facts[:, telling] += torch.where(is_round, -1.5, 1.5)
    average = Average.from_table(fit(observed))
    said = np.array([average.gaussian_weight(facts) for facts in observed.facts.numpy()])
    assert said[is_round].mean() > 0.8
    assert said[~is_round].mean() < 0.05
    assert said.mean() == pytest.approx(0.1, abs=0.01)


def test_the_fit_finds_what_two_facts_say_together():
    """Sets are round where two facts have the same sign: neither tells anything alone."""
    is_round = torch.arange(1600) % 2 == 0
    observed = random_sets(1600, is_round)
    observed.facts[:, 1] = observed.facts[:, 1].abs() * observed.facts[:, 0].sign() * torch.where(is_round, 1.0, -1.0)
    average = Average.from_table(fit(observed))
    said = np.array([average.gaussian_weight(facts) for facts in observed.facts.numpy()])
    assert said[is_round].mean() > 0.6  # a function of each fact alone would say half of all
    assert said[~is_round].mean() < 0.2


def test_sets_of_the_fit_are_the_same_every_time():
    for number in (0, 1):
        (points, labels), (again, _) = draw(number), draw(number)
        assert np.array_equal(points, again)
        assert len(points) == len(labels)
