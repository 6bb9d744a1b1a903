"""Experiment 2: blocks of the constructed transformer against Lloyd's iterations, one for one."""

import numpy as np
import pandas as pd

from measureflow.circuits import em_transformer
from measureflow.circuits.textbook_em import lloyd_path
from measureflow.reproduce.he2025.constructed.draws import rough_start
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "He 2025, experiment 2: layers L = tau (3 + 3k) against iterations tau, constructed"
DRAWS = {"tiny": 2, "small": 10, "paper": 100}
TAU, K, D, N = 4, 3, 4, 100


def budget(size: str) -> str:
    """Draws."""
    return f"{DRAWS[size]} draws, k = {K}, d = {D}, N = {N}, 256 heads; the paper has no such run"


def compute(size, cache):
    """How many labels agree with Lloyd's final ones after each block, for the construction and for Lloyd itself."""
    net, rows = em_transformer(K, D, N, TAU, 256, radius=1.5, margin=0.01), []
    for seed in range(DRAWS[size]):
        x, start = rough_start(seed, K, D, N)
        path, states = lloyd_path(x, start, TAU), net.states(net.context(x, start))
        for tau in range(1, TAU + 1):
            built = net.readout(states[tau * (3 + 3 * K)]).argmax(-1).numpy()
            agree = {
                "same as Lloyd": built == path[tau][0],
                "built": built == path[-1][0],
                "Lloyd": path[tau][0] == path[-1][0],
            }
            rows.append(
                {"draw": seed, "iterations": tau, "layers": tau * (3 + 3 * K)} | {n: v.mean() for n, v in agree.items()}
            )
    return {"layers": pd.DataFrame(rows)}


def render(tables):
    """Agreement with the end of Lloyd, against layers."""
    import matplotlib.pyplot as plt

    mean = tables["layers"].groupby("layers").mean()
    figure, ax = plt.subplots(figsize=(5, 3.2))
    ax.plot(mean.index, mean["built"], "o-", label="constructed transformer")
    ax.plot(mean.index, mean["Lloyd"], "k--", label="Lloyd after L / (3 + 3k) iterations")
    ax.set_xlabel("layers L")
    ax.set_ylabel("labels equal to the final ones")
    ax.legend(frameon=False)
    figure.tight_layout()
    return {"layers": figure}


def verdicts(tables) -> list[Verdict]:
    """Block by block the construction is Lloyd stopped early, and it moves: the first block is not the last."""
    mean = tables["layers"].groupby("iterations")[["same as Lloyd", "built", "Lloyd"]].mean()
    found = ", ".join(f"{share:.1%} after {tau}" for tau, share in mean["same as Lloyd"].items())
    moves = mean["Lloyd"].iloc[0] < 0.99
    return [
        judged(
            "3 + 3k layers are one iteration", "labels equal", found, bool(moves and mean["same as Lloyd"].min() > 0.98)
        )
    ]


def findings(tables):
    """Fewer layers than tau (3 + 3k) are Lloyd stopped early."""
    table = tables["layers"]
    mean = table.groupby("iterations")[["built", "Lloyd"]].mean()
    steps = ", ".join(f"tau={tau}: {row['built']:.3f} ({row['Lloyd']:.3f})" for tau, row in mean.iterrows())
    same = np.mean(table["same as Lloyd"])
    return (
        f"After each block of 3 + 3k layers labels equal those of as many Lloyd iterations at {same:.2%} of points. "
        f"Share equal to Lloyd's final labels, constructed (Lloyd): {steps}."
    )
