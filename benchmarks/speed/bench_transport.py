"""Exact few-atom transport against a loop of POT's network simplex, the cost matrix included for both.

The targets are for one thread, by processor time, which a busy machine disturbs little. The simplex cannot use more;
what our batches gain from all threads, on the clock, is shown beside it and depends on what else is running.
"""

import time
from collections.abc import Callable

import numpy as np
import ot
import torch

from measureflow.measures.transport import wasserstein2

BATCH, N, D = 64, 1000, 2
TARGETS = {5: 18.0, 20: 8.0}  # number of atoms: how many times faster


def rows() -> list[dict]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = [race(k, target, time.process_time, "one thread") for k, target in TARGETS.items()]
    finally:
        torch.set_num_threads(threads)
    return found + [race(k, None, time.perf_counter, f"{threads} threads on the clock") for k in TARGETS]


def race(k: int, target: float | None, clock: Callable[[], float], how: str, repeats: int = 11) -> dict:
    x, y, v = problems(k)
    ours, peer = lambda: exact(x, y, v), lambda: simplex(x, y, v)
    np.testing.assert_allclose(ours(), peer(), rtol=1e-10)  # also the warm-up
    times = [(seconds(ours, clock), seconds(peer, clock)) for _ in range(repeats)]
    fast, slow = min(t for t, _ in times), min(t for _, t in times)
    return {
        "name": f"exact W2, {BATCH} x ({N} points, {k} atoms), {how}",
        "ours_s": fast,
        "peer_s": slow,
        "ratio": slow / fast,
        "target": target,
        "met": None if target is None else slow / fast >= target,
        "note": "a loop of ot.dist and ot.emd2",
    }


def problems(k: int) -> tuple[np.ndarray, ...]:
    """Normal points of equal weight and normal atoms of Dirichlet weight, as in the training prior."""
    rng = np.random.default_rng(k)
    return rng.normal(size=(BATCH, N, D)), rng.normal(size=(BATCH, k, D)), rng.dirichlet(np.ones(k), BATCH)


def exact(x, y, v) -> np.ndarray:
    x, y, v = map(torch.from_numpy, (x, y, v))
    return wasserstein2(x, y, atom_weights=v).cost.numpy()


def simplex(x, y, v) -> np.ndarray:
    return np.array([ot.emd2([], v[p], ot.dist(x[p], y[p])) for p in range(BATCH)])  # []: equal weights


def seconds(function: Callable, clock: Callable[[], float]) -> float:
    start = clock()
    function()
    return clock() - start


if __name__ == "__main__":
    for row in rows():
        print(f"{row['name']:70} {row['ratio']:6.1f} (target {row['target']}) {row['note']}")
