"""The any-shape flow: who belongs with whom does not depend on names, axes, units or the order of the rows."""

import json

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
from measureflow.models.any_shape.merges import MergeJudge
from measureflow.models.any_shape.tokens import on_sphere
from measureflow.models.any_shape.trees import MOST_CORE, TIE, pair_trees, path_trees
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


@pytest.mark.parametrize(("rows", "near"), [(40, 1), (700, MOST_CORE)])
def test_paths_are_the_shortest_longest_steps(rows, near):
    """Against every path: the least over paths of their longest step, by repeated relaxation."""
    X = torch.randn(1, rows, 5, generator=torch.Generator().manual_seed(1)).double()
    gaps = squared_distances(X)[0]
    n = len(gaps)
    core = gaps.sort(-1).values[:, near]
    best = torch.maximum(torch.maximum(gaps, core), core[:, None])
    for k in range(n):
        best = torch.minimum(best, torch.maximum(best[:, k : k + 1], best[k]))
    best[range(n), range(n)] = core
    paths = torch.exp(2 * path_trees(gaps[None])[1][0])
    torch.testing.assert_close(paths, best, rtol=2 * TIE, atol=0)  # what ties are broken by is added to each step


def test_rows_of_one_ring_are_connected_and_those_of_two_are_not():
    paths = path_trees(squared_distances(two_rings()))[1][0].exp()
    assert paths[:100, :100].max() < 0.2
    assert paths[:100, 100:].min() > 0.9


def two_rings() -> torch.Tensor:
    """A hundred rows on the unit circle, then as many on a circle of twice its radius."""
    angle = torch.arange(100).double() * 2 * torch.pi / 100
    ring = torch.stack([angle.cos(), angle.sin()], -1)
    return torch.cat([ring, 2 * ring])[None]


def test_two_rings_meet_at_the_last_merge_of_the_tree_of_paths():
    tree, _ = path_trees(squared_distances(two_rings()))
    assert (tree.joined[0, :100, 100:] == 198).all()
    assert (tree.joined[0, :100, :100] < 198).all()
    assert (tree.joined[0, 100:, 100:] < 198).all()
    assert sorted(tree.sizes[0, -1].tolist()) == [100, 100]


def test_merges_know_their_rows():
    """Means over children, and the merge of each pair, against sets of rows merged one by one."""
    X = data(3)
    tree, _ = path_trees(squared_distances(X))
    order, bounds = tree.order[0], tree.bounds[0].tolist()
    for v, (start, middle, end) in enumerate(bounds):
        left, right = order[start:middle], order[middle:end]
        assert (tree.joined[0][left][:, right] == v).all()
        assert (tree.joined[0][right][:, left] == v).all()
        torch.testing.assert_close(tree.means(X)[0, v], torch.stack([X[0, left].mean(0), X[0, right].mean(0)]))
    assert (tree.below <= tree.heights[..., None]).all()
    assert (tree.above >= tree.heights).all()


def test_geometry_of_two_clusters_side_by_side():
    """Three rows at -1, 0, 1 and three at 9, 10, 11: nobody reaches a quarter of the way, which is ten long."""
    X = torch.tensor([[[-1.0], [0.0], [1.0], [9.0], [10.0], [11.0]]]).double()
    tree, _ = path_trees(squared_distances(X))
    shares, deviation, on_fisher, deviation_there, scatter = tree.geometry(X)[0, -1].split([4, 1, 4, 1, 1], -1)
    assert (shares == 0).all()
    assert (on_fisher == 0).all()
    for found in (deviation, deviation_there, scatter):  # one column has one line
        torch.testing.assert_close(found, torch.full_like(found, 0.5 * np.log(2 / 300 + 1e-4)))


def test_fishers_line_parts_long_clusters_side_by_side():
    """Two long clusters whose means differ more along them than across: Fisher's line looks across."""
    rng = np.random.default_rng(0)
    long = rng.normal(size=(2, 50, 2)) * [10.0, 0.1]
    long[1] += [8.0, 2.0]
    X = torch.from_numpy(long.reshape(1, 100, 2))
    apart = torch.where(torch.arange(100)[:, None] // 50 == torch.arange(100) // 50, 5.0, -5.0)[None].double()
    through_means, fishers = pair_trees(apart).geometry(X)[0, -1].split([5, 6], -1)
    assert (through_means[:, 2] > 0.2).all()  # more than a fifth of the rows lie beyond the middle
    assert (fishers[:, :4] == 0).all()


def test_numbers_of_clusters_are_a_distribution_without_gaps():
    weight, mean, width = torch.zeros(1, 3), torch.tensor([[1.0, 2.0, 3.0]]), torch.full((1, 3), -1.0)
    p = torch.softmax(log_counts(weight, mean, width, torch.zeros(1, 1)), -1)[0]
    edges = torch.arange(1, 100).add(0.5).log()
    below = torch.stack([torch.sigmoid((edges - m) / np.exp(-1)) for m in mean[0]]).mean(0)
    torch.testing.assert_close(p.cumsum(0)[:-1], below, atol=1e-3, rtol=0)  # 1e-5 is added to each
    more = torch.softmax(log_counts(weight, mean, width, torch.full((1, 1), 2.0)), -1)[0]
    assert more[0] / more[5] == pytest.approx(float(p[0] / p[5]) * np.exp(2.0), rel=1e-4)


def test_the_tree_of_pairs_joins_first_who_belongs_together():
    labels = torch.tensor([0, 1, 0, 1, 1])
    logits = torch.where(labels[:, None] == labels, 3.0, -2.0)[None].double()
    tree = pair_trees(logits)
    assert tree.heights[0].tolist() == pytest.approx([-3, -3, -3, 2])
    assert torch.equal(tree.joined[0] == 3, labels[:, None] != labels)


def test_a_judge_does_not_mind_which_child_comes_first():
    torch.manual_seed(0)
    judge, X = MergeJudge(4).double(), data(3)
    torch.nn.init.normal_(judge.judge[-1].weight)
    tree, _ = path_trees(squared_distances(X))
    f, unit = torch.randn(1, 40, 4).double(), torch.randn(1, 40, 1).double()
    start, middle, end = tree.bounds.unbind(-1)
    order = tree.order.clone()
    a, b, c = (int(t[0, -1]) for t in (start, middle, end))
    order[0] = torch.cat([tree.order[0, b:c], tree.order[0, a:b]])
    turned = tree._replace(order=order, bounds=tree.bounds.clone(), below=tree.below.flip(-1))
    turned.bounds[0, -1, 1] = c - b
    torch.testing.assert_close(judge(turned, f, X, unit)[0, -1], judge(tree, f, X, unit)[0, -1])


@pytest.mark.parametrize("judge", ["of_paths", "of_pairs", "again"])
def test_a_merge_that_is_judged_apart_parts_the_rows_that_meet_there(judge):
    model, X = AnyShapeFlow().double(), data(5)
    tree, _ = path_trees(squared_distances(X))
    before = torch.logit(model(X))
    torch.nn.init.constant_(getattr(model, judge).judge[-1].bias, -1.0)
    torch.testing.assert_close(torch.logit(model(X)), before - 1)
    judged = torch.arange(39).double()[None]
    assert torch.equal(tree.of_pairs(judged), tree.joined.double())


def test_tight_clusters_do_not_blow_the_gradient_up():
    """In tight clusters much of the gradient is rounding, which differs between processors: so the median of five."""
    norms = []
    for seed in range(5):
        torch.manual_seed(seed)
        model, generator = AnyShapeFlow(), torch.Generator().manual_seed(seed)
        labels = torch.arange(120)[None] % 6
        X = 3 * torch.randn(6, 2, generator=generator)[labels] + 1e-3 * torch.randn(1, 120, 2, generator=generator)
        together_loss(model.together(X), LabelledShapes(X, labels)).backward()
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
    marked = LabelledShapes(sets.points, labels)
    torch.testing.assert_close(together_loss(said, marked), together_loss(said._replace(logits=wrong), marked))


def test_perfect_answers_have_no_loss_between_pairs():
    labels = torch.tensor([[0, 0, 1, 1, 1]])
    same = (labels[:, :, None] == labels[:, None, :]).float()
    said = AnyShapeFlow(SMALL).together(torch.randn(1, 5, 2))
    counts = torch.full((1, 100), -99.0).index_fill(1, torch.tensor([1]), 99.0)
    sure = said._replace(logits=200 * same - 100, noise=torch.full((1, 5), -99.0), n_clusters=counts)
    assert together_loss(sure, LabelledShapes(torch.zeros(1, 5, 2), labels)) < 1e-6


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-3)])
def test_answers_and_gradients_stay_what_they_were(dtype, tolerance):
    """Weights are trained for what the flow says: rounding moves a float64 answer by 2e-13, a float32 one by 2e-5."""
    expected, found = json.loads(golden.FILE.read_text()), golden.answer(dtype)
    assert found.keys() == expected.keys()
    for name, numbers in expected.items():
        np.testing.assert_allclose(found[name], numbers, rtol=tolerance, atol=tolerance, err_msg=name)
