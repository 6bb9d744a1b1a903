"""Tables 2 and 6 and Figure 8 at equal budgets: every kind of model from random weights, on the same sets.

The shipped rows saw different numbers of sets, and most of them began from the 16-layer weights, so their order says
little. Here nothing but the kind of the model differs. The budget is a small part of the paper's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from measureflow.measures import Empirical
from measureflow.measures.priors import paper_test_prior
from measureflow.reproduce.progress import counted
from measureflow.reproduce.verdicts import Verdict, judged, unsettled
from measureflow.reproduce.zimin2025.contestants import squared_errors
from measureflow.reproduce.zimin2025.measurements import CLEAR, LEVELS, summary
from measureflow.training.config import Stage, TrainingConfig, seeded
from measureflow.training.loop import Training

TITLE = "Zimin 2025, Tables 2 and 6 at equal budgets: depth, flow and shared layers, all from random weights"
BASE, AGAIN = "16 layers", "16 layers, second seed"
MODELS: dict[str, dict[str, Any]] = {
    BASE: {"n_layers": 16},
    AGAIN: {"n_layers": 16},
    "32 layers": {"n_layers": 32},
    "64 layers": {"n_layers": 64},
    "distinct layers": {"n_layers": 16, "distinct": True},
    "no flow": {"n_layers": 16, "schedule": "no-flow"},
    "unit flow": {"n_layers": 16, "schedule": "unit"},
}
# Which of two the paper finds better, at all three levels: Table 2, then Table 6.
PRINTED = (
    ("32 layers", BASE, "Table 2"),
    ("64 layers", "32 layers", "Table 2"),
    (BASE, "no flow", "Table 2"),
    ("distinct layers", BASE, "Table 6"),
    (BASE, "unit flow", "Table 6"),
)
DEPTHS = {BASE: 16, "32 layers": 32, "64 layers": 64}
STEPS = {"tiny": 2, "small": 400, "paper": 40_000}
SETS, POINTS = 16, 64  # of a step
TEST_SETS = {"tiny": 2, "small": 60, "paper": 500}
TEST_POINTS = {"tiny": 40, "small": 400, "paper": 1000}
HARDLY = 0.1  # the largest difference of a total flow that is called small


def budget(size: str) -> str:
    """What each model was trained and tested on."""
    steps, sets = STEPS[size], STEPS[size] * SETS
    return (
        f"every model from random weights, {steps} steps of {SETS} sets of {POINTS} points, the same {sets:,} for all "
        f"(the paper: 2.6 million); {TEST_SETS[size]} test sets of {TEST_POINTS[size]} points"
    )


def recipe(name: str, size: str) -> TrainingConfig:
    """The training of one model: all but its kind, and the seed of the second, is the same."""
    steps = STEPS[size]
    stage = Stage(steps=steps, n=POINTS, batch=SETS, rate=1e-3, rate_end=0.0, warmup=min(50, steps // 4))
    seed = 1 if name == AGAIN else 0
    return TrainingConfig(
        "flow-transformer", [stage], model=MODELS[name], seed=seed, optimiser="muon", average=0.98,
        checkpoint_seconds=60.0, evaluate_sets=2, evaluate_n=50,
    )  # fmt: skip


def compute(size: str, cache: Path) -> dict[str, pd.DataFrame]:
    """W2 squared of every test set for each model, and the total flow of each over the SNR."""
    scores, flows = [], []
    for name in counted(list(MODELS), "models"):
        folder = cache / "".join(c if c.isalnum() else "-" for c in name)
        model: Any = Training(recipe(name, size), folder, resume=True).run()
        scores.append(_scores(model, size).assign(column=name))
        with torch.no_grad():
            snr = torch.linspace(3, 15, 49)
            flows.append(pd.DataFrame({"column": name, "snr_db": snr, "total": model.speed(snr)}))
    return {"scores": pd.concat(scores, ignore_index=True), "flow": pd.concat(flows, ignore_index=True)}


@torch.no_grad()
def _scores(model: Any, size: str) -> pd.DataFrame:
    """W2 squared of every test set at the three levels."""
    parts = []
    for label, snr_db in LEVELS.items():
        generator = seeded("equal budgets", size, snr_db)
        sets = paper_test_prior(snr_db).sample(TEST_SETS[size], TEST_POINTS[size], generator)
        tokens = [model(sets.points[i : i + 1], sets.snr_db[i : i + 1])[0] for i in range(TEST_SETS[size])]
        errors = squared_errors([Empirical(t) for t in tokens], sets)
        parts.append(pd.DataFrame({"data": label, "set": range(len(errors)), "w2": errors}))
    return pd.concat(parts, ignore_index=True)


def gaps(tables: dict[str, pd.DataFrame], low: str, high: str) -> pd.DataFrame:
    """By how much the second lies above the first at each level, the error of that, and how far two seeds are apart."""
    rows = []
    for label in LEVELS:
        here = tables["scores"].query("data == @label").pivot(index="set", columns="column", values="w2")
        gap, seeds = here[high] - here[low], abs((here[AGAIN] - here[BASE]).mean())
        rows.append({"data": label, "gap": gap.mean(), "error": gap.sem(), "seeds": seeds})
    return pd.DataFrame(rows)


def order(found: pd.DataFrame) -> list[str]:
    """At each level "holds", "fails" or "close": clear only beyond its error and beyond what another seed changes."""
    clear = found["gap"].abs() > np.hypot(CLEAR * found["error"], found["seeds"])
    return list(np.where(~clear, "close", np.where(found["gap"] > 0, "holds", "fails")))


def apart(tables: dict[str, pd.DataFrame]) -> tuple[float, float]:
    """How far the total flow differs between depths at most, and from where it began, both over its mean.

    The model without flow learns nothing of it, so its curve is where all began.
    """
    total = tables["flow"].pivot(index="snr_db", columns="column", values="total")
    depths = total[list(DEPTHS)]
    between, moved = depths.max(axis=1) - depths.min(axis=1), depths.sub(total["no flow"], axis=0).abs().max(axis=1)
    mean = depths.mean(axis=1)
    return float((between / mean).max()), float((moved / mean).max())


def verdicts(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """Each order that the paper prints, judged with paired errors; then the total flow over the depth."""
    said = []
    for low, high, where in PRINTED:
        found = gaps(tables, low, high)
        words = order(found)
        each = "; ".join(f"{row.data} {row.gap:+.4f} ± {row.error:.4f}" for row in found.itertuples())
        claim, ours = f"equal budgets, from random weights: {low} before {high}", f"{high} minus {low}: {each}"
        if "holds" not in words and "fails" not in words:
            said.append(unsettled(claim, f"at three levels ({where})", f"{ours}; within what another seed changes"))
        else:
            said.append(judged(claim, f"at three levels ({where})", ours, "fails" not in words))
    claim = "equal budgets, from random weights: the total flow hardly depends on the depth"
    far, moved = apart(tables)
    ours = f"{far:.0%} apart at most, after a change of {moved:.0%} from where it began"
    if moved < 2 * HARDLY:  # what has hardly moved is the same at every depth
        return [*said, unsettled(claim, "hardly (Figure 8)", f"{ours}: too few steps to tell")]
    return [*said, judged(claim, "hardly (Figure 8)", ours, far < HARDLY)]


def tabulate(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """A row for each model: W2 squared at each level with its error, and the total flow at both ends."""
    means = summary(tables["scores"], ["column", "data"])
    cells = means.assign(cell=[f"{row.w2:.4f} ± {row.w2_error:.4f}" for row in means.itertuples()])
    wide = cells.pivot(index="column", columns="data", values="cell").reindex(list(MODELS))[list(LEVELS)]
    ends = tables["flow"].groupby("column", sort=False)["total"].agg(["first", "last"]).astype(float).round(2)
    flow = {"total flow at 3 dB": ends["first"], "at 15 dB": ends["last"]}
    moving = [name for name in MODELS if MODELS[name].get("schedule") != "no-flow"]  # without flow F has no part in it
    return {"models": wide.assign(**{k: v.reindex(moving) for k, v in flow.items()}).reset_index()}


def render(tables: dict[str, pd.DataFrame]) -> dict[str, Figure]:
    """W2 squared of each model at the three levels, and the total flow of each depth."""
    figure, axes = plt.subplots(1, len(LEVELS) + 1, figsize=(11, 3.2), layout="constrained")
    means, names = summary(tables["scores"], ["column", "data"]), list(MODELS)
    for i, (axis, label) in enumerate(zip(axes, LEVELS, strict=False)):
        here = means[means["data"] == label].set_index("column").reindex(names)
        axis.errorbar(here["w2"], range(len(names)), xerr=here["w2_error"], fmt="o", ms=4.5, color="#1f6feb")
        axis.set_yticks(range(len(names)), names if i == 0 else [""] * len(names))
        axis.set(title=label, xlabel="W2 squared", ylim=(len(names) - 0.5, -0.5))
        axis.grid(axis="y", alpha=0.25)
    for name, layers in DEPTHS.items():
        curve = tables["flow"][tables["flow"]["column"] == name]
        axes[-1].plot(curve["snr_db"], curve["total"], label=f"{layers} layers")
    axes[-1].set(title="total flow", xlabel="SNR (dB)")
    axes[-1].legend(frameon=False, fontsize=8)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return {"equal_budgets": figure}


def findings(tables: dict[str, pd.DataFrame]) -> str:
    """What was done, how far two seeds are apart, and which orders are clear."""
    seeds = gaps(tables, BASE, AGAIN)
    apart_by = ", ".join(f"{row.seeds:.4f} ({row.data})" for row in seeds.itertuples())
    lines, printed = [], 0
    for low, high, _ in PRINTED:
        found = gaps(tables, low, high)
        words, printed = order(found), printed + int((found["gap"] > 0).sum())
        count = {word: words.count(word) for word in ("holds", "fails", "close")}
        lines.append(
            f"{low} below {high}: holds at {count['holds']}, fails at {count['fails']}, too close at {count['close']}"
        )
    return (
        "The paper compares depth, flow and shared layers after 2.6 million sets each. Found, each from random weights "
        f"on the same few sets, at {len(LEVELS)} levels: the means are in the printed order in {printed} of "
        f"{len(LEVELS) * len(PRINTED)} cases. {'; '.join(lines)}. Two seeds of the 16-layer model are apart by "
        f"{apart_by}, and an order counts as clear only beyond that and its own error. What a hundred times the sets "
        "would give, this cannot say."
    )
