"""The any-shape flow: who belongs with whom does not depend on names, axes, units or the order of the rows."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from golden import any_shape as golden
from measureflow.measures.shapes import LabelledShapes, ShapePrior
from measureflow.models import AnyShapeConfig, AnyShapeFlow
from measureflow.models.any_shape.features import (
    density_of,
    landmark_features,
    local_facts,
    squared_distances,
)
from measureflow.models.any_shape.flow import log_counts
from measureflow.models.any_shape.tokens import on_sphere
from measureflow.models.any_shape.trees import SUREST, pair_trees
from measureflow.models.pretrained import save_model, warm_start
from measureflow.training.losses import together_loss

SMALL = AnyShapeConfig(n_near=2, n_features=16, n_colours=8, n_messages=4, n_keys=4, hidden=16, n_layers=3)


def stirred(config=SMALL, seed=0) -> AnyShapeFlow:
    """A model whose weights are all away from their first values."""
    torch.manual_seed(seed)
    model = AnyShapeFlow(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def data(d, n=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    centers = 3 * torch.randn(3, d, generator=generator)
    return (centers[torch.arange(n) % 3] + torch.randn(n, d, generator=generator)).double()[None]


@pytest.fixture(scope="module")
def model():
    return stirred()


@pytest.mark.parametrize("d", [1, 2, 7])
def test_rotating_shifting_and_scaling_change_nothing(model, d):
    X = data(d)
    Q = torch.linalg.qr(torch.randn(d, d, generator=torch.Generator().manual_seed(1)).double())[0]
    with torch.no_grad():
        here, there = model.together(X), model.together(5 * X @ Q + 11)
    for a, b in zip(here[:3], there[:3], strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)  # rounding through a few sharp softmaxes


def test_every_distinct_layer_begins_as_the_shared_one_and_has_a_say(model, tmp_path):
    distinct = AnyShapeFlow(replace(SMALL, distinct=True)).double().eval()
    warm_start(distinct, str(save_model(model, tmp_path)))
    assert (len(model.layers), len(distinct.layers)) == (1, SMALL.n_layers)
    with torch.no_grad():
        shared = model(data(2))
        torch.testing.assert_close(distinct(data(2)), shared, rtol=0, atol=0)
        for layer in distinct.layers:
            before = {name: t.clone() for name, t in layer.state_dict().items()}
            for parameter in layer.parameters():
                parameter.mul_(1.1)
            assert (distinct(data(2)) - shared).abs().max() > 1e-6
            layer.load_state_dict(before)


def test_further_layers_of_a_deeper_flow_begin_at_rest_and_learn(model, tmp_path):
    """They move and say nothing: features stay, positions stay, colours are only put back on their sphere."""
    distinct = AnyShapeFlow(replace(SMALL, distinct=True)).double()
    warm_start(distinct, str(save_model(model, tmp_path)))
    deeper = AnyShapeFlow(replace(SMALL, distinct=True, n_layers=SMALL.n_layers + 2)).double().eval()
    warm_start(deeper, str(save_model(distinct, tmp_path / "distinct")))
    path = deeper.together(data(2)).path
    before, after = path[SMALL.n_layers], path[-1]
    torch.testing.assert_close(after.positions, before.positions, rtol=0, atol=0)
    torch.testing.assert_close(after.features, before.features, rtol=0, atol=0)
    torch.testing.assert_close(after.colours, on_sphere(on_sphere(before.colours)), rtol=0, atol=1e-12)
    deeper(data(2)).square().sum().backward()
    for layer in deeper.layers[SMALL.n_layers :]:
        assert layer.update[-1].weight.grad.abs().max() > 0
        assert layer.reads.weight.grad.abs().max() > 0


def test_the_head_for_a_single_cluster_changes_nothing_but_its_odds(model):
    with torch.no_grad():
        before = model.together(data(2)).n_clusters
        model.single[-1].bias += 1.5
        after = model.together(data(2)).n_clusters
        model.single[-1].bias -= 1.5
    torch.testing.assert_close(after - before, 1.5 * torch.eye(100).double()[:1])


def test_the_most_doubtful_merge_is_that_of_parts_that_are_large_enough(model):
    """Of 100 rows 3 hang on by a logit of -5 and 12 by one of -2: so it is a small part that is likely not right."""
    groups = torch.cat([torch.zeros(85), torch.ones(12), torch.full((3,), 2.0)]).long()
    between = torch.tensor([[6.0, -2.0, -5.0], [-2.0, 6.0, -5.0], [-5.0, -5.0, 6.0]]).double()
    logits = between[groups][:, groups][None]
    trees = pair_trees(logits)
    facts = model.count_facts(logits, [-trees.heights, -trees.heights], trees)
    torch.testing.assert_close(facts[0, -4:] * SUREST, torch.tensor([-5.0, -2.0, -2.0, 6.0]).double())


@pytest.mark.parametrize("d", [1, 3])
def test_permuting_the_rows_permutes_the_answer(model, d):
    X, order = data(d), torch.randperm(40, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        here, there = model(X), model(X[:, order])
    torch.testing.assert_close(here[:, order][:, :, order], there, rtol=0, atol=1e-6)


def test_sets_of_a_batch_do_not_see_each_other(model):
    X = torch.cat([data(2, seed=s) for s in range(3)])
    with torch.no_grad():
        together, alone = model(X), torch.cat([model(x[None]) for x in X])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-9)


def test_probabilities_are_symmetric_and_between_zero_and_one(model):
    with torch.no_grad():
        P = model(data(2))
    torch.testing.assert_close(P, P.mT, rtol=0, atol=1e-12)
    assert ((P >= 0) & (P <= 1)).all()


def test_colours_stay_on_the_sphere_and_sum_to_nothing(model):
    with torch.no_grad():
        for tokens in model.together(data(3)).path:
            c = tokens.colours
            assert c.norm(dim=-1).max() <= 1
            torch.testing.assert_close(on_sphere(c), c, rtol=0.3, atol=0.3)


@pytest.mark.parametrize("points", [torch.zeros(1, 5, 2), torch.ones(1, 2, 1), data(2).repeat_interleave(3, 1)])
def test_rows_that_repeat_are_answered(model, points):
    with torch.no_grad():
        said = model.together(points.double())
    assert all(torch.isfinite(part).all() for part in said[:3])


@pytest.mark.parametrize("shape", [(5, 2), (1, 1, 2), (1, 5, 0)])
def test_wrong_shapes_are_named(model, shape):
    with pytest.raises(ValueError, match="points must have shape"):
        model(torch.zeros(shape).double())


def test_what_is_not_finite_is_named(model):
    with pytest.raises(ValueError, match="points"):
        model(torch.full((1, 4, 2), torch.nan).double())


def test_distances_are_those_of_the_definition():
    X = data(4)
    torch.testing.assert_close(squared_distances(X)[0], torch.cdist(X, X)[0] ** 2, rtol=1e-9, atol=1e-9)


def test_equal_distances_are_equal_in_single_precision():
    grid = torch.cartesian_prod(torch.arange(9.0), torch.arange(7.0)).double()
    whole = torch.cdist(grid, grid).square().round()
    x = 0.1234567 * (grid - grid.mean(0))
    gaps = local_facts(x[None], torch.float32)[2][0]
    assert gaps.dtype == torch.float32
    assert len(gaps.unique()) == len(whole.unique())  # single precision throughout makes four times as many


def test_local_facts_of_evenly_spaced_rows_by_hand():
    """A hundred rows on a line, one apart: the nearest one in a hundred is the next row."""
    x = torch.arange(100.0).double()[None, :, None]
    x = (x - x.mean()) / x.std(unbiased=False)
    step = x[0, 1, 0] - x[0, 0, 0]
    facts, log_scale, gaps = local_facts(x)
    assert facts.shape == (1, 100, 16)
    assert gaps[0, 3, 5] == pytest.approx(float(4 * step**2))
    assert log_scale[0, 50, 0].exp() == pytest.approx(
        float(4 * step), rel=0.05
    )  # eight of a hundred: four to each side


def test_landmarks_are_spread_over_far_groups():
    """Eight tight groups, eight landmarks: every group has a colour of its own."""
    centers = 50 * torch.eye(8).double()
    X = (centers.repeat_interleave(10, 0) + torch.randn(80, 8, generator=torch.Generator().manual_seed(0)))[None]
    _, log_scale, gaps = local_facts(X)
    colours = on_sphere(landmark_features(gaps, density_of(gaps, log_scale), 8))[0]
    groups = torch.stack([colours[10 * k : 10 * k + 10].mean(0) for k in range(8)])
    cosines = torch.nn.functional.normalize(groups) @ torch.nn.functional.normalize(groups).T
    assert (cosines - torch.eye(8)).max() < 0.2


def test_numbers_of_clusters_are_a_distribution_without_gaps():
    weight, mean, width = torch.zeros(1, 3), torch.tensor([[1.0, 2.0, 3.0]]), torch.full((1, 3), -1.0)
    p = torch.softmax(log_counts(weight, mean, width, torch.zeros(1, 1)), -1)[0]
    edges = torch.arange(1, 100).add(0.5).log()
    below = torch.stack([torch.sigmoid((edges - m) / np.exp(-1)) for m in mean[0]]).mean(0)
    torch.testing.assert_close(p.cumsum(0)[:-1], below, atol=1e-3, rtol=0)  # 1e-5 is added to each
    more = torch.softmax(log_counts(weight, mean, width, torch.full((1, 1), 2.0)), -1)[0]
    assert more[0] / more[5] == pytest.approx(float(p[0] / p[5]) * np.exp(2.0), rel=1e-4)


def test_tight_clusters_do_not_blow_the_gradient_up():
    """In tight clusters much of the gradient is rounding, which differs between processors: so the median of five."""
    norms = []
    for seed in range(5):
        torch.manual_seed(seed)
        model, generator = AnyShapeFlow(), torch.Generator().manual_seed(seed)
        labels = torch.arange(120)[None] % 6
        X = 3 * torch.randn(6, 2, generator=generator)[labels] + 1e-3 * torch.randn(1, 120, 2, generator=generator)
        together_loss(model.together(X), LabelledShapes(X, labels, torch.zeros(1, dtype=torch.bool))).backward()
        norms.append(float(torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).norm()))
    assert np.median(norms) < 100


def test_the_loss_leaves_rows_out_that_belong_to_nothing():
    sets = ShapePrior().sample(1, 60, np.random.default_rng(0), d=2)
    labels = sets.labels.clone()
    labels[0, :10] = -1
    torch.manual_seed(0)
    said = AnyShapeFlow(SMALL).together(sets.points)
    wrong = said.logits.clone()
    wrong[0, :10], wrong[0, :, :10] = 99.0, 99.0
    marked = LabelledShapes(sets.points, labels, sets.is_round)
    torch.testing.assert_close(together_loss(said, marked), together_loss(said._replace(logits=wrong), marked))


def test_perfect_answers_have_no_loss_between_pairs():
    labels = torch.tensor([[0, 0, 1, 1, 1]])
    same = (labels[:, :, None] == labels[:, None, :]).float()
    said = AnyShapeFlow(SMALL).together(torch.randn(1, 5, 2))
    counts = torch.full((1, 100), -99.0).index_fill(1, torch.tensor([1]), 99.0)
    sure = said._replace(logits=200 * same - 100, noise=torch.full((1, 5), -99.0), n_clusters=counts)
    sure = sure._replace(one_noise=torch.tensor([99.0]))
    for is_round, least, most in ((True, 0, 1e-6), (False, 10, 30)):  # a fifth of 99
        sets = LabelledShapes(torch.zeros(1, 5, 2), labels, torch.tensor([is_round]))
        assert least <= together_loss(sure, sets) <= most


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-3)])
def test_answers_and_gradients_stay_what_they_were(dtype, tolerance):
    """Weights are trained for what the flow says: rounding moves a float64 answer by 2e-13, a float32 one by 2e-5."""
    expected, found = json.loads(golden.FILE.read_text()), golden.answer(dtype)
    assert found.keys() == expected.keys()
    for name, numbers in expected.items():
        np.testing.assert_allclose(found[name], numbers, rtol=tolerance, atol=tolerance, err_msg=name)
