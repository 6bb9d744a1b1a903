"""The head for the number of clusters, fitted after the flow."""

import torch

from measureflow.models import AnyShapeConfig, AnyShapeFlow
from measureflow.training.calibration.fit_count import asked, fit

SMALL = AnyShapeConfig(n_near=2, n_features=8, n_colours=4, n_messages=2, n_keys=2, hidden=16, n_layers=2)


def test_the_head_learns_a_number_that_its_facts_hold_and_nothing_else_moves():
    torch.manual_seed(0)
    flow = AnyShapeFlow(SMALL)
    counts = torch.arange(400) % 7 + 1
    facts = 0.1 * torch.randn(400, 10)
    facts[:, 0] = counts.log() + 0.5  # P implies too many, always by the same factor
    before = {name: t.clone() for name, t in flow.state_dict().items()}
    first, last = fit(flow, facts, counts)
    assert last < 0.3 < first
    assert flow.count_logits(facts).argmax(-1).add(1).eq(counts).float().mean() > 0.95
    assert all(torch.equal(t, before[name]) for name, t in flow.state_dict().items() if not name.startswith("count"))


def test_a_set_is_asked_alike_every_time():
    torch.manual_seed(0)
    flow = AnyShapeFlow(SMALL).eval()
    (facts, count), (again, same) = asked(flow, 3), asked(flow, 3)
    assert torch.equal(facts, again)
    assert count == same
    assert facts.shape == (10,)
