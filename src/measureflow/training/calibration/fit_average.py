"""Weigh both flows' posteriors: ``python -m measureflow.training.calibration.fit_average FOLDER``.

The sets and what the Gaussians say of them are those of `held_out_sets`; the flow of shapes looks at them again
whenever its weights changed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy, binary_cross_entropy_with_logits

from measureflow.coclustering.average import HIDDEN, SAID, SUREST, Average, standardised
from measureflow.coclustering.consensus import Agreement
from measureflow.coclustering.facts import FACTS
from measureflow.coclustering.partition import tree_cut
from measureflow.coclustering.posteriors import ShapePosterior, of_shapes, views
from measureflow.models import AnyShapeFlow
from measureflow.models.checkpoints import write_atomically
from measureflow.models.pretrained import load_model
from measureflow.training.calibration.held_out_sets import ROUND_EVERY, SEED, HeldOutSet, held_out_sets

SHRINK = 0.02  # how much squared exponents of the counts cost, so that few sets do not make them large
NEARLY = 1e-4  # how much it costs to put right what was said of pairs, so that few pairs do not say much
STEPS, RATE, DECAY = 400, 1e-2, 0.3  # of the fit of the network that weighs the facts


class Observations(NamedTuple):
    """What is known of S sets."""

    facts: Tensor  # (S, F)
    shapes: Tensor  # (S, PAIRS): what the shapes say of some pairs ...
    gaussians: Tensor  # ... what the Gaussians say ...
    same: Tensor  # ... and the truth
    counts: Tensor  # (S, 100, 2): what the shapes say of each number of clusters, the true one first
    is_round: Tensor  # (S,): which sets are Gaussians in one round noise

    @classmethod
    def of(cls, sets: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Observations:
        """What was `HeldOutSet.observations` of the first sets."""
        known, pairs, counts = (torch.from_numpy(np.stack(part)) for part in zip(*sets, strict=True))
        shapes, gaussians, same = pairs.unbind(1)
        return cls(known, shapes, gaussians, same, counts, torch.arange(len(sets)) % ROUND_EVERY == 0)

    def where(self, chosen: Tensor) -> Observations:
        """Some of the sets."""
        return Observations(*(part[chosen] for part in self))


def fit(observed: Observations) -> dict:
    """The numbers of largest likelihood: what is said of the number of clusters from sets that are not round, all else
    from all sets."""
    means, spreads = observed.facts.mean(0), observed.facts.std(0).clamp_min(1e-6)
    known = torch.from_numpy(standardised(observed.facts.numpy(), means.numpy(), spreads.numpy()))
    network, logits_of = _fit_round(known, observed.is_round)
    others = observed.where(~observed.is_round)
    counts = torch.zeros(2, dtype=known.dtype, requires_grad=True)

    def count_loss() -> Tensor:
        said = others.counts @ counts
        return (said.logsumexp(-1) - said[:, 0]).mean() + SHRINK * counts.square().mean()

    of_pairs, pair_loss = _fit_pairs(observed, torch.sigmoid(logits_of(known))[:, None])
    losses = [pair_loss, _minimise(count_loss, counts)]
    exponent, bonus = counts.detach()
    scalars = {"count_exponent": exponent, "cut_bonus": bonus}
    fitted = {"means": means, "spreads": spreads} | network | of_pairs | scalars
    return {
        "facts": list(FACTS),
        **{name: np.round(values.numpy(), 6).tolist() for name, values in fitted.items()},
        "losses": [round(loss, 6) for loss in losses],
    }


def _fit_pairs(observed: Observations, rho: Tensor) -> tuple[dict[str, Tensor], float]:
    """What the shapes should have said of pairs where they said `SAID`, and how it depends on the number of rows, given
    the weights (S, 1) of the Gaussians; and the loss."""
    said, log_rows = torch.from_numpy(SAID), observed.facts[:, FACTS.index("log rows"), None]
    near = _knots(torch.logit(observed.shapes.clamp(SUREST, 1 - SUREST)), said)
    start = torch.cat([said[:1], said.diff().log(), torch.zeros(1, dtype=said.dtype)])
    parts = start.clone().requires_grad_()  # the first logit, logs of the steps to the next, and the shift by rows

    def put_right() -> dict[str, Tensor]:
        return {"true_logits": torch.cat([parts[:1], parts[1:-1].exp()]).cumsum(0), "rows_shift": parts[-1]}

    def loss() -> Tensor:
        true_logits, rows_shift = put_right().values()
        P = rho * observed.gaussians + (1 - rho) * torch.sigmoid(near @ true_logits + rows_shift * log_rows)
        return binary_cross_entropy(P.clamp(1e-7, 1 - 1e-7), observed.same) + NEARLY * (parts - start).square().mean()

    least = _minimise(loss, parts)
    return {name: values.detach() for name, values in put_right().items()}, least


def _knots(x: Tensor, knots: Tensor) -> Tensor:
    """Weights (..., len(knots)) of a function's values at the knots in its linear interpolation at x."""
    above = torch.searchsorted(knots, x).clamp(1, len(knots) - 1)
    share = (x - knots[above - 1]) / (knots[above] - knots[above - 1])
    weights = torch.zeros(*x.shape, len(knots), dtype=x.dtype)
    weights.scatter_(-1, above[..., None], share[..., None])
    return weights.scatter_(-1, above[..., None] - 1, 1 - share[..., None])


def _fit_round(known: Tensor, is_round: Tensor) -> tuple[dict[str, Tensor], Callable[[Tensor], Tensor]]:
    """The network that says from standardised facts (S, F) whether a set is round: its numbers, and itself."""
    generator, target = torch.Generator().manual_seed(SEED), is_round.to(known)
    drawn = torch.randn(HIDDEN, known.shape[1] + 1, generator=generator, dtype=known.dtype) / known.shape[1] ** 0.5
    zero = torch.zeros(HIDDEN, dtype=known.dtype)
    network = {
        "hidden": drawn[:, :-1].contiguous(),
        "hidden_bias": zero,
        "hidden_weights": 0.1 * drawn[:, -1],
        "weights": torch.zeros(known.shape[1], dtype=known.dtype),
        "bias": torch.zeros((), dtype=known.dtype),
    }
    network = {name: values.clone().requires_grad_() for name, values in network.items()}

    def logits_of(facts: Tensor) -> Tensor:
        hidden = torch.tanh(facts @ network["hidden"].T + network["hidden_bias"])
        return hidden @ network["hidden_weights"] + facts @ network["weights"] + network["bias"]

    optimiser = torch.optim.AdamW(network.values(), lr=RATE, weight_decay=DECAY)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    for _ in range(STEPS):
        optimiser.zero_grad()
        binary_cross_entropy_with_logits(logits_of(known), target).backward()
        optimiser.step()
        rates.step()
    for values in network.values():
        values.requires_grad_(False)
    return network, logits_of


def _minimise(loss: Callable[[], Tensor], parameters: Tensor) -> float:
    """Move the parameters to where the loss is least; returns that loss."""
    optimiser = torch.optim.LBFGS([parameters], max_iter=500, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = loss()
        value.backward()
        return value

    optimiser.step(closure)  # type: ignore[arg-type]
    return loss().item()


def cross_validate(
    sets: list[HeldOutSet], posteriors: list[ShapePosterior], observed: Observations, folds: int = 5
) -> dict[str, np.ndarray]:
    """How well each answer does on sets that its weights were not fitted to: (sets, 3), the adjusted Rand index, the
    error in the number of clusters and whether it is exact, of the Gaussians, the shapes, and both together."""
    from sklearn.metrics import adjusted_rand_score

    scores = {name: np.empty((len(sets), 3)) for name in ("Gaussians", "shapes", "both")}
    place = torch.arange(len(sets)) // ROUND_EVERY % folds  # each fold has its share of round sets
    for fold in range(folds):
        average = Average.from_table(fit(observed.where(place != fold)))
        for number in torch.nonzero(place == fold).flatten().tolist():
            each, member = sets[number], sets[number].labels >= 0
            gaussians = each.posterior
            agreement = Agreement.of(average, posteriors[number], gaussians, each.points)
            answers = {"Gaussians": gaussians.labels, "shapes": tree_cut(posteriors[number]).labels}
            for name, found in (answers | {"both": agreement.partition.labels}).items():
                index = adjusted_rand_score(each.labels[member], found[member])
                error = abs(len(set(found.tolist())) - each.n_clusters)
                scores[name][number] = index, error, error == 0
    return scores


def validation_table(sets: list[HeldOutSet], scores: dict[str, np.ndarray]) -> str:
    """The means of `cross_validate` over all sets, over round ones, over the others, and over single clusters."""
    is_round = np.arange(len(sets)) % ROUND_EVERY == 0
    single = np.array([each.n_clusters == 1 for each in sets])
    kinds = {"all": is_round | ~is_round, "round": is_round, "other": ~is_round, "single": single}
    lines = ["sets        answer      index   clusters off by   exact"]
    for kind, chosen in kinds.items():
        for name, values in scores.items():
            index, error, exact = values[chosen].mean(0)
            lines.append(f"{kind:6s}{chosen.sum():5d} {name:10s} {index:6.3f} {error:6.2f} {exact:19.3f}")
    return "\n".join(lines)


def main() -> None:
    """Draw the sets, ask both flows, fit, and write average.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder of an any-shape model; average.json is written into it")
    parser.add_argument("--sets", type=int, default=600)
    parser.add_argument("--folder", type=Path, default=Path("out/average"), help="keeps what the Gaussians say")
    parser.add_argument("--validate", action="store_true", help="cross-validate the answer before")
    arguments = parser.parse_args()
    flow = cast(AnyShapeFlow, load_model(arguments.model))
    torch.set_num_threads(1)
    sets = held_out_sets(arguments.folder, arguments.sets)
    posteriors = [of_shapes(flow, views(each.points)) for each in sets]
    observed = Observations.of([each.observations(posteriors[number], number) for number, each in enumerate(sets)])
    if arguments.validate:
        print(validation_table(sets, cross_validate(sets, posteriors, observed)), flush=True)
    table = fit(observed) | {"sets": arguments.sets, "seed": SEED}
    write_atomically(arguments.model / "average.json", (json.dumps(table, indent=2) + "\n").encode())
    print(json.dumps(table, indent=2))


if __name__ == "__main__":
    main()
