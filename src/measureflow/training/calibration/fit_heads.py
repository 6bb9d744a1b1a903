"""Fit the heads that judge a set as a whole: ``python -m measureflow.training.calibration.fit_heads FOLDER``.

One says how many clusters there are, one whether all rows are Gaussian in one round noise. All else of an any-shape
model stays as it is. What a head reads takes a whole flow to find, and the head itself is small. So the flow looks at
thousands of sets once, and the heads are fitted to all of them together.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from measureflow.attention.threads import one_thread
from measureflow.coclustering.consensus import n_seen
from measureflow.models import AnyShapeFlow
from measureflow.models.checkpoints import read_json
from measureflow.models.pretrained import load_model, save_model
from measureflow.training.calibration.held_out_sets import ROUND_EVERY, draw

SEED = 78  # of sets that nothing else draws
HELD_OUT = 5  # one set in so many tells when to stop
STEPS = 3000
RATE = 2e-3
DECAY = 0.01


class Asked(NamedTuple):
    """What the heads read of S sets, and what they should say."""

    count_facts: Tensor  # (S, 14)
    features: Tensor  # (S, 2 p): pooled over the rows
    n_clusters: Tensor  # (S,)
    is_round: Tensor  # (S,): which sets are Gaussian in one round noise

    def where(self, chosen: Tensor) -> Asked:
        """Some of the sets."""
        return Asked(*(part[chosen] for part in self))


@torch.no_grad()
def asked(flow: AnyShapeFlow, number: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What the heads read of set ``number``, of as many rows as the flow would see of it, and the truth."""
    points, labels = draw(number, SEED)
    K = len(set(labels[labels >= 0].tolist()))
    said = flow.together(torch.from_numpy(points[: n_seen(K)]).float()[None])
    return said.count_facts[0], said.pooled[0], torch.tensor(K), torch.tensor(number % ROUND_EVERY == 0)


def fit(flow: AnyShapeFlow, sets: Asked) -> dict[str, tuple[float, float]]:
    """Fit both heads, that of the number to the sets not round; of each its loss on held-out sets before and after."""
    flow.requires_grad_(False)

    def count_loss(some: Asked) -> Tensor:
        logits = flow.count_logits(some.count_facts, some.features)
        return cross_entropy(logits, some.n_clusters.clamp(1, logits.shape[-1]) - 1)

    def noise_loss(some: Asked) -> Tensor:
        return binary_cross_entropy_with_logits(flow.one_noise(some.features).squeeze(-1), some.is_round.float())

    others = sets.where(~sets.is_round)  # of round ones the Gaussians know the number
    return {"count": _fit(flow.count, count_loss, others), "one noise": _fit(flow.one_noise, noise_loss, sets)}


def _fit(head: nn.Module, loss_of: Callable[[Asked], Tensor], sets: Asked) -> tuple[float, float]:
    """Fit one head until held-out sets gain no more; their loss before and after."""
    head.requires_grad_(True)
    held = torch.arange(len(sets.n_clusters)) % HELD_OUT == 0
    optimiser = torch.optim.AdamW(head.parameters(), lr=RATE, weight_decay=DECAY)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    first = best = loss_of(sets.where(held)).item()
    weights = {name: t.clone() for name, t in head.state_dict().items()}
    generator = torch.Generator().manual_seed(SEED)
    seen = torch.nonzero(~held).squeeze(-1)
    for step in range(STEPS):
        batch = seen[torch.randint(len(seen), (min(256, len(seen)),), generator=generator)]
        optimiser.zero_grad()
        loss_of(sets.where(batch)).backward()
        optimiser.step()
        rates.step()
        if step % 50 == 49:
            loss = loss_of(sets.where(held)).item()
            if loss < best:
                best, weights = loss, {name: t.clone() for name, t in head.state_dict().items()}
    head.load_state_dict(weights)
    return first, best


def main() -> None:
    """Draw the sets, ask the flow, fit the heads, and write the model anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of an any-shape model, which is written anew")
    parser.add_argument("--sets", type=int, default=4000)
    arguments = parser.parse_args()
    flow, found = cast(AnyShapeFlow, load_model(arguments.model)), []
    with one_thread():
        for number in range(arguments.sets):
            found.append(asked(flow, number))
            if number % 500 == 499:
                print(f"{number + 1} of {arguments.sets} sets", flush=True)
        losses = fit(flow, Asked(*map(torch.stack, zip(*found, strict=True))))
    save_model(flow, arguments.model, read_json(arguments.model / "config.json").get("facts"))
    for name, (before, after) in losses.items():
        print(f"{name}: cross entropy of held-out sets {before:.3f} before, {after:.3f} after")


if __name__ == "__main__":
    main()
