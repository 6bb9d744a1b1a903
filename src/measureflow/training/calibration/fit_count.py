"""Fit the head that reads off the number of clusters: ``python -m measureflow.training.calibration.fit_count FOLDER``.

All else of an any-shape model stays as it is. What the head reads takes a whole flow to find, and the head itself is
small. So the flow looks at thousands of sets once, and the head is fitted to all of them together.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from measureflow.attention.threads import one_thread
from measureflow.measures.shapes import ShapePrior
from measureflow.models import AnyShapeFlow
from measureflow.models.checkpoints import read_json
from measureflow.models.pretrained import load_model, save_model

SEED = 78  # of sets that nothing else draws
ROWS = (60, 900)  # between so many, evenly on a logarithmic scale
HELD_OUT = 5  # one set in so many tells when to stop
STEPS = 3000
RATE = 2e-3
DECAY = 0.01


@torch.no_grad()
def asked(flow: AnyShapeFlow, number: int) -> tuple[Tensor, int]:
    """What the head reads of set ``number``, and the true number of clusters."""
    rng = np.random.default_rng([SEED, number])
    n = int(np.exp(rng.uniform(*np.log(ROWS))))
    sets = ShapePrior().sample(1, n, rng)
    return flow.together(sets.points).count_facts[0], int(sets.n_clusters[0])


def fit(flow: AnyShapeFlow, facts: Tensor, counts: Tensor) -> tuple[float, float]:
    """Fit the head to facts (S, 10) and counts (S,) until held-out sets gain no more; their loss before and after."""
    held = torch.arange(len(counts)) % HELD_OUT == 0
    flow.requires_grad_(False)
    flow.count.requires_grad_(True)
    optimiser = torch.optim.AdamW(flow.count.parameters(), lr=RATE, weight_decay=DECAY)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    first = best = _loss(flow, facts[held], counts[held]).item()
    weights = {name: t.clone() for name, t in flow.count.state_dict().items()}
    generator = torch.Generator().manual_seed(SEED)
    seen = torch.nonzero(~held).squeeze(-1)
    for step in range(STEPS):
        batch = seen[torch.randint(len(seen), (min(256, len(seen)),), generator=generator)]
        optimiser.zero_grad()
        _loss(flow, facts[batch], counts[batch]).backward()
        optimiser.step()
        rates.step()
        if step % 50 == 49:
            loss = _loss(flow, facts[held], counts[held]).item()
            if loss < best:
                best, weights = loss, {name: t.clone() for name, t in flow.count.state_dict().items()}
    flow.count.load_state_dict(weights)
    return first, best


def _loss(flow: AnyShapeFlow, facts: Tensor, counts: Tensor) -> Tensor:
    logits = flow.count_logits(facts)
    return cross_entropy(logits, counts.clamp(1, logits.shape[-1]) - 1)


def main() -> None:
    """Draw the sets, ask the flow, fit the head, and write the model anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of an any-shape model, which is written anew")
    parser.add_argument("--sets", type=int, default=4000)
    arguments = parser.parse_args()
    flow = cast(AnyShapeFlow, load_model(arguments.model))
    facts, counts = [], []
    with one_thread():
        for number in range(arguments.sets):
            known, n_clusters = asked(flow, number)
            facts.append(known)
            counts.append(n_clusters)
            if number % 500 == 499:
                print(f"{number + 1} of {arguments.sets} sets", flush=True)
        before, after = fit(flow, torch.stack(facts), torch.tensor(counts))
    save_model(flow, arguments.model, read_json(arguments.model / "config.json").get("facts"))
    print(f"held-out sets: minus the mean log-probability of the true number {before:.3f} before, {after:.3f} after")


if __name__ == "__main__":
    main()
