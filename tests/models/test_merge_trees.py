"""Trees of merges over the rows of a set, what is known at each merge, and the networks that judge merges."""

import numpy as np
import pytest
import torch

from measureflow.models import AnyShapeFlow
from measureflow.models.any_shape.features import squared_distances
from measureflow.models.any_shape.merges import MergeJudge
from measureflow.models.any_shape.trees import MOST_CORE, TIE, pair_trees, path_trees


def data(d, n=40, seed=0):
    generator = torch.Generator().manual_seed(seed)
    centers = 3 * torch.randn(3, d, generator=generator)
    return (centers[torch.arange(n) % 3] + torch.randn(n, d, generator=generator)).double()[None]


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
