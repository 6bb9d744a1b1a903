"""The heads that judge a set as a whole, fitted after the flow."""

import torch

from measureflow.models import AnyShapeConfig, AnyShapeFlow
from measureflow.training.calibration.fit_heads import Asked, asked, fit

SMALL = AnyShapeConfig(n_near=2, n_features=8, n_colours=4, n_messages=2, n_keys=2, hidden=16, n_layers=2)


def test_the_heads_learn_what_their_facts_hold_and_nothing_else_moves():
    torch.manual_seed(0)
    flow = AnyShapeFlow(SMALL)
    counts = torch.arange(400) % 7 + 1
    facts, features, is_round = 0.1 * torch.randn(400, 14), torch.randn(400, 16), torch.randn(400) > 0.5
    facts[:, 0] = counts.log() + 0.5  # P implies too many, always by the same factor
    features[:, 3] += 6.0 * is_round
    before = {name: t.clone() for name, t in flow.state_dict().items()}
    losses = fit(flow, Asked(facts, features, counts, is_round))
    first, last = losses["count"]
    assert last < 0.3 < first
    assert flow.count_logits(facts, features).argmax(-1).add(1).eq(counts).float().mean() > 0.95
    first, last = losses["one noise"]
    assert last < 0.1 < first
    assert ((flow.one_noise(features).squeeze(-1) > 0) == is_round).float().mean() > 0.95
    heads = ("count", "one_noise")
    assert all(torch.equal(t, before[name]) for name, t in flow.state_dict().items() if not name.startswith(heads))


def test_a_set_is_asked_alike_every_time():
    torch.manual_seed(0)
    flow = AnyShapeFlow(SMALL).eval()
    first, again = asked(flow, 3), asked(flow, 3)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert [part.shape for part in first] == [(14,), (16,), (), ()]


def test_one_set_in_five_is_round():
    flow = AnyShapeFlow(SMALL).eval()
    assert [bool(asked(flow, number)[3]) for number in range(6)] == [True, *[False] * 4, True]
