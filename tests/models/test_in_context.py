"""The in-context clusterer: its loss against brute force, its symmetries, its training, its estimator."""

from itertools import permutations

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch.nn.functional import cross_entropy

from measureflow.estimators.in_context import InContextClustering
from measureflow.measures.he_mixtures import HeMixtures
from measureflow.models import InContextClusterer
from measureflow.models.in_context import context_rows, rotations, standardised
from measureflow.training.assignment_loss import assignment_cross_entropy, best_names, pair_costs
from measureflow.training.in_context import FOUND, PRINTED, Recipe, train


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_loss_is_the_least_over_all_permutations(k):
    logits = torch.randn(4, 30, k, generator=generator(k), dtype=torch.float64)
    labels = torch.randint(k, (4, 30), generator=generator(k + 1))
    brute = [
        min(cross_entropy(x, torch.tensor(p)[z]) for p in permutations(range(k)))
        for x, z in zip(logits, labels, strict=True)
    ]
    torch.testing.assert_close(assignment_cross_entropy(logits, labels), torch.stack(brute), atol=1e-12, rtol=0)


def test_loss_does_not_mind_names_and_has_the_gradient_of_the_best_naming():
    logits = torch.randn(3, 20, 4, generator=generator(), dtype=torch.float64, requires_grad=True)
    labels = torch.randint(4, (3, 20), generator=generator(1))
    renamed = torch.tensor([2, 0, 3, 1])[labels]
    torch.testing.assert_close(assignment_cross_entropy(logits, labels), assignment_cross_entropy(logits, renamed))
    ours = torch.autograd.grad(assignment_cross_entropy(logits, labels).sum(), logits)[0]
    named = best_names(pair_costs(logits, labels)).gather(1, labels)
    theirs = torch.autograd.grad(sum(cross_entropy(x, z) for x, z in zip(logits, named, strict=True)), logits)[0]
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)


def test_loss_names_bad_labels():
    with pytest.raises(ValueError, match="labels must have shape"):
        assignment_cross_entropy(torch.zeros(3, 2), torch.zeros(4, dtype=torch.long))
    with pytest.raises(ValueError, match=r"labels must lie in 0\.\.1"):
        assignment_cross_entropy(torch.zeros(3, 2), torch.tensor([0, 1, 2]))


@pytest.mark.parametrize("averaged", [False, True], ids=["concatenated", "averaged"])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_model_follows_the_order_of_the_points_and_ignores_place_and_scale(averaged, layer_norm):
    model = InContextClusterer(3, 2, averaged_heads=averaged, layer_norm=layer_norm)
    x = torch.randn(2, 30, 2, generator=generator())
    order = torch.randperm(30, generator=generator(1))
    torch.testing.assert_close(model(x)[:, order], model(x[:, order]), atol=1e-5, rtol=0)
    torch.testing.assert_close(model(x), model(5 * x + 3), atol=1e-4, rtol=0)  # float32 after centring


def test_concatenated_and_averaged_heads_are_the_two_formulas():
    """Concatenation maps joined thin heads by one W; averaging takes the mean of full-width heads."""
    h = torch.randn(1, 9, 8, generator=generator())
    for averaged in (False, True):
        attention = InContextClusterer(2, 2, width=8, averaged_heads=averaged).layers[0].attention
        heads, e = attention.heads, 8 if averaged else 4
        outs = []
        for Q, K, V in zip(heads.score.Q.M, heads.score.K.M, heads.value.M, strict=True):
            weights = torch.softmax((h @ Q.T) @ (h @ K.T).mT / e**0.5, -1)
            outs.append(weights @ (h @ V.T))
        if averaged:
            expected = sum(outs) / 2
        else:
            W = attention.output.M.transpose(0, 1).flatten(1)
            expected = torch.cat(outs, -1) @ W.T
        torch.testing.assert_close(attention.attend(h, h, None), expected, atol=1e-5, rtol=0)


def test_context_rows_are_those_of_equation_4():
    x = torch.arange(8.0).reshape(1, 4, 2)
    rows = context_rows(x, torch.tensor([[0, 0, 1, 1]]), 2)[0]
    expected = torch.tensor([
        [1.0, 2, 1, 0, 1, 0, 1],  # centre of cluster 1, label, code, one
        [5, 6, 1, 0, 0, 1, 1],
        [0, 0, 0, 1, 0, 0, 1],
        [0, 0, 0, 1, 0, 0, 1],
    ])  # fmt: skip
    torch.testing.assert_close(rows, expected)


def test_context_is_asked_for_and_only_then():
    x, start = torch.randn(2, 10, 3, generator=generator()), torch.zeros(2, 10, dtype=torch.long)
    assert InContextClusterer(2, 3, context=True)(x, start).shape == (2, 10, 2)
    with pytest.raises(ValueError, match="start must be given"):
        InContextClusterer(2, 3, context=True)(x)
    with pytest.raises(ValueError, match="start must be left out"):
        InContextClusterer(2, 3)(x, start)


def test_standardised_sets_have_mean_zero_and_mean_square_one():
    x = standardised(torch.randn(4, 20, 3, generator=generator(), dtype=torch.float64) * 7 + 2)
    torch.testing.assert_close(x.mean(1), torch.zeros(4, 3).double(), atol=1e-12, rtol=0)
    torch.testing.assert_close(x.square().mean((1, 2)), torch.ones(4).double())
    assert not standardised(torch.ones(1, 5, 2)).any()  # one point five times


def test_training_learns_to_cluster_new_sets():
    mixtures = HeMixtures(n_classes=2, dimension=2, n_per_class=8)
    model = InContextClusterer(2, 2, n_layers=2, width=32)
    losses = train(model, mixtures, Recipe(120, 32, 3e-3, None, 20, clip=1.0), generator=generator())
    test = mixtures.sample(64, generator(9))
    found = model.labels(test.points)
    right = (found == test.labels).double().mean(1)
    assert torch.maximum(right, 1 - right).mean() > 0.9
    assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:5])


def test_each_set_keeps_the_turn_whose_names_are_surest():
    model, x = InContextClusterer(3, 4, width=16), torch.randn(20, 12, 4, generator=generator())
    turns = rotations(5, x)
    for turn in turns:
        torch.testing.assert_close(turn @ turn.T, torch.eye(4))
    torch.testing.assert_close(turns[0], torch.eye(4))
    logits = [torch.log_softmax(model(x @ turn), -1) for turn in turns]
    sure = torch.stack([p.amax(-1).mean(-1) for p in logits])
    expected = [logits[turn][i].argmax(-1) for i, turn in enumerate(sure.argmax(0))]
    assert len(sure.argmax(0).unique()) > 1
    assert torch.equal(model.labels(x, turns=5), torch.stack(expected))
    assert torch.equal(model.labels(x), model(x).argmax(-1))
    assert torch.equal(model.labels(x[0], turns=5), expected[0])
    with pytest.raises(ValueError, match="turns"):
        model.labels(x, turns=0)


def test_training_is_the_same_from_the_same_seed():
    def run():
        model = InContextClusterer(2, 2, n_layers=1, width=8, generator=generator(3))
        return train(model, HeMixtures(2, 2, 5), Recipe(3, 4), generator=generator(4))

    assert run() == run()


def test_printed_recipe_is_he_s_and_found_one_warms_up_then_falls():
    assert PRINTED.n_steps == 300
    assert [PRINTED.step_size(s) for s in (0, 1, 299)] == pytest.approx([5e-4, 5e-4 * 0.995, 5e-4 * 0.995**299])
    sizes = [FOUND.step_size(s) for s in range(FOUND.n_steps)]
    assert sizes[0] < FOUND.learning_rate / 10
    assert np.argmax(sizes) <= FOUND.warm_up + 1
    assert sizes[-1] < 1e-5


def test_mixtures_are_as_far_apart_balanced_and_noisy_as_asked():
    mixtures = HeMixtures(n_per_class=200, imbalance=0.1)
    sets = mixtures.sample(6, generator())
    apart = torch.stack([torch.pdist(c).min() for c in sets.centers])
    torch.testing.assert_close(apart, torch.full((6,), 30.0))  # distance 30 binds at spread 3
    assert [int((sets.labels[0] == j).sum()) for j in range(4)] == [200, 200, 20, 180] == mixtures.sizes
    at = sets.centers.gather(1, sets.labels[..., None].expand(-1, -1, 10))
    torch.testing.assert_close((sets.points - at).square().mean((1, 2)), sets.variances, rtol=0.1, atol=0)
    assert sets.variances.min() >= 10
    assert sets.variances.max() <= 40
    loose = HeMixtures(minimum_distance=0.01).sample(200, generator()).centers
    assert float(loose.std()) == pytest.approx(3.0, rel=0.05)  # nothing to blow up


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_classes": 0}, "n_classes"),
        ({"minimum_distance": 0.0}, "minimum_distance"),
        ({"spread": -1.0}, "spread"),
        ({"variance": (4.0, 1.0)}, "variance"),
        ({"imbalance": 1.5}, "imbalance"),
        ({"imbalance": 0.001}, "leaves a cluster empty"),
    ],
)
def test_mixtures_name_bad_arguments(settings, words):
    with pytest.raises(ValueError, match=words):
        HeMixtures(**settings)


def test_model_names_bad_input():
    with pytest.raises(ValueError, match="multiple of n_heads"):
        InContextClusterer(width=9)
    with pytest.raises(ValueError, match="n_layers"):
        InContextClusterer(n_layers=0)
    model = InContextClusterer(3, 2)
    with pytest.raises(ValueError, match="3 coordinates, the model takes 2"):
        model(torch.zeros(5, 3))
    with pytest.raises(ValueError, match="at least as many points"):
        model.labels(torch.zeros(2, 2))
    with pytest.raises(ValueError, match="non-finite"):
        model.labels(torch.full((5, 2), torch.nan))
    with pytest.raises(ValueError, match="n_steps must be a whole number, at least 1, got 0"):
        Recipe(n_steps=0)
    with pytest.raises(ValueError, match="agree on the number of classes"):
        train(model, HeMixtures(), Recipe(1, 1), generator=generator())


def blobs(seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 9])


def test_estimator_clusters_new_data_with_a_model_kept_from_before():
    first = InContextClustering(2, n_steps=40, random_state=0).fit(blobs())
    again = clone(first).set_params(model=first.model_).fit(blobs(1) * 100 + 5)
    for fitted in (first, again):
        assert len({*fitted.labels_[:30]}) == len({*fitted.labels_[30:]}) == 1
        assert fitted.labels_[0] != fitted.labels_[-1]
    np.testing.assert_array_equal(first.predict(blobs(2)), first.labels_)
    np.testing.assert_allclose(first.cluster_centers_[first.labels_[0]], blobs()[:30].mean(0))
    assert again.model_ is first.model_


def test_estimator_names_bad_input():
    with pytest.raises(ValueError, match=r"n_clusters must lie in 1\.\.3"):
        InContextClustering(4).fit(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="made for 3 clusters in 2 dimensions"):
        InContextClustering(2, model=InContextClusterer(3, 2)).fit(blobs())
    with pytest.raises(ValueError, match="context=False"):
        InContextClustering(2, model=InContextClusterer(2, 2, context=True)).fit(blobs())
    with pytest.raises(ValueError, match="NaN"):
        InContextClustering(2).fit(np.full((5, 2), np.nan))
