"""TransformerKMeans against its peers: same first centres, same number of iterations, same threads.

``python benchmarks/speed/bench_kmeans.py`` prints the table; `rows` gives it to ``make bench``. Times are the least of
a few runs of either side in turn, in one process: on all threads by the clock, which other work on the machine
disturbs, and on one thread by processor time, which it disturbs little. Memory is the growth of a fresh process from
after its imports to its peak, data included.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from measureflow import TransformerKMeans
from measureflow.circuits import textbook

ITERATIONS = 20
SIZES = [(1_000_000, 16, 64), (100_000, 64, 256)]
LARGE = (2_000_000, 8, 100)


def problem(n: int, d: int, k: int, dtype=np.float64) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping blobs, which do not settle within the iterations timed, and k of their points."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(k, d)).astype(dtype)
    X = np.empty((n, d), dtype)
    for rows in np.array_split(np.arange(n), 1 + n // 50_000):  # in parts, so that making the data is not the peak
        X[rows] = rng.normal(size=(len(rows), d)) + means[rng.integers(k, size=len(rows))]
    return X, X[:k].copy()


def ours(X, C, threads=None):
    return TransformerKMeans(len(C), init=C, max_iter=ITERATIONS, tol=0, n_threads=threads).fit(X)


def peer(X, C):
    return KMeans(len(C), init=C, n_init=1, max_iter=ITERATIONS, tol=0, algorithm="lloyd").fit(X)


def least_times(runs, repeats: int, clock=time.perf_counter) -> list[float]:
    """The least time of each of several functions, run in turn."""
    best = [math.inf] * len(runs)
    for _ in range(repeats):
        for r, run in enumerate(runs):
            start = clock()
            run()
            best[r] = min(best[r], clock() - start)
    return best


def row(name, ours_s, peer_s, target=None, note="") -> dict:
    ratio = peer_s / ours_s
    met = None if target is None else bool(ratio >= target)
    return {
        "name": name, "ours_s": ours_s, "peer_s": peer_s, "ratio": ratio, "target": target, "met": met, "note": note,
    }  # fmt: skip


def lloyd_rows(n, d, k, dtype, repeats) -> list[dict]:
    X, C = problem(n, d, k, dtype)
    ours(X[: 4 * k], C)  # compile before the clock starts
    a, b = ours(X, C), peer(X, C)
    gap = abs(a.cluster_centers_ - b.cluster_centers_).max()
    same = float(np.mean(a.labels_ == b.labels_))
    times = least_times([lambda: ours(X, C), lambda: peer(X, C)], repeats)
    note = f"{a.n_iter_} and {b.n_iter_} iterations; centres differ by {gap:.1e}, {100 * same:.4f} % of labels equal"
    name = f"Lloyd n={n:,} d={d} k={k} {np.dtype(dtype).name}"
    out = [row(name, *times, target=1.1, note=note)]
    with threadpool_limits(1):
        times = least_times([lambda: ours(X, C, 1), lambda: peer(X, C)], repeats, time.process_time)
    out.append(row(f"{name}, one thread", *times, target=1.1, note="processor time of one thread"))
    if dtype == np.float64:
        memory = [peak_megabytes(side, n, d, k) for side in ("ours", "peer")]
        out.append(row(f"{name}, memory", *memory, target=1 / 1.2, note="MB, not seconds; data included"))
    return out


def peak_megabytes(side: str, n: int, d: int, k: int) -> float:
    """Growth of a fresh process that makes the data and fits."""
    command = [sys.executable, __file__, "--memory", side, str(n), str(d), str(k)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def report_memory(side: str, n: int, d: int, k: int) -> None:
    X, C = problem(4 * k, d, k)
    {"ours": ours, "peer": peer}[side](X, C)  # compile and load before the measure starts
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the imports (Linux)
    before = status("VmRSS")
    X, C = problem(n, d, k)
    {"ours": ours, "peer": peer}[side](X, C)
    print((status("VmHWM") - before) / 1024)


def status(name: str) -> int:
    """A line of /proc/self/status in kB: resident memory now (VmRSS) or at its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def large_row() -> dict:
    n, d, k = LARGE
    used = peak_megabytes("ours", n, d, k)
    note = "MB, not seconds; must fit in 2 GB"
    return row(f"Lloyd n={n:,} d={d} k={k}, memory", used, 2048.0, target=1.0, note=note)


def medoid_rows(repeats: int) -> list[dict]:
    import kmedoids

    X, C = problem(2000, 8, 10)

    def package():
        D = cdist(X, X, "sqeuclidean")  # the package takes the matrix: it is part of the work
        return kmedoids.fasterpam(D, 10, random_state=0)

    def draws():
        options = {"algorithm": "medoids", "init": C, "max_iter": 50, "random_state": 0}
        return TransformerKMeans(10, **options).fit(X)

    loss, drawn = package().loss, draws().inertia_
    note = f"50 layers; loss {drawn / loss:.3f} times that of FasterPAM, which searches where Algorithm 6 draws"
    return [
        row("k-medoids n=2,000 d=8 k=10 against kmedoids.fasterpam", *least_times([draws, package], repeats), note=note)
    ]


def trimmed_rows(repeats: int) -> list[dict]:
    X, C = problem(20_000, 8, 20)

    def fused():
        return TransformerKMeans(20, algorithm="trimmed", init=C, max_iter=10, tol=0).fit(X)

    def loop():
        return textbook.run(textbook.trimmed, X, C, 10, 90.0)[-1][1]

    gap = abs(fused().cluster_centers_ - loop()).max()
    times = least_times([fused, loop], repeats)
    return [row("trimmed n=20,000 d=8 k=20 against a NumPy loop", *times, note=f"centres differ by {gap:.1e}")]


def rows(repeats: int = 3) -> list[dict]:
    out = []
    for size in SIZES:
        for dtype in (np.float64, np.float32):
            out += lloyd_rows(*size, dtype, repeats)
    return [*out, large_row(), *medoid_rows(repeats), *trimmed_rows(repeats)]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        report_memory(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        print(json.dumps(rows(), indent=1))
