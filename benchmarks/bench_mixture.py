"""FlowMixture: how fast, in how much memory, against the mixtures whose K is chosen by BIC."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings

import numpy as np
import torch

import rivals
from measureflow import FlowMixture
from measureflow.measures.priors import paper_test_prior
from measureflow.training.config import seeded
from speed.bench_kmeans import least_times, row, status

LARGE = (1_000_000, 8, 20)


def paper_sets(snr_db: float, sets: int, n: int = 1000) -> list[np.ndarray]:
    """Test sets of [Zimin 2025, E.1] as arrays."""
    batch = paper_test_prior(snr_db).sample(sets, n, seeded(3, "bench mixture", snr_db))
    return [points.double().numpy() for points in batch.points]


def speed_rows(sets: int) -> list[dict]:
    data = [X for snr in (15.0, 10.0, 5.0) for X in paper_sets(snr, sets)]
    ours, alone = (mean_time(data, **options) for options in ({}, {"assume": "gaussian"}))
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    one_core = mean_time(data)
    torch.set_num_threads(n_threads)
    goal = "the peer is the target"
    out = [
        row("fit, n=1,000 d=2, warm, on one core", one_core, 0.3, target=1.0, note=goal),
        row("fit, n=1,000 d=2, warm", ours, 0.3, target=1.0, note=f"{goal}; on all cores"),
        row("fit, n=1,000 d=2, Gaussians alone", alone, 0.15, target=1.0, note=f"{goal}; on all cores"),
    ]
    peers = (
        ("shared-variance EM + BIC in NumPy", rivals.shared_em_bic_numpy, 20.0),
        ("shared-variance EM + BIC compiled", rivals.shared_em_bic, None),
        ("GaussianMixture + BIC", rivals.gmm_bic, 5.0),
    )
    few = data[:: len(data) // 6 or 1]
    for name, fit, target in peers:
        theirs = sum(least_times([lambda X=X, fit=fit: fit(X)], 1)[0] for X in few) / len(few)
        note = f"12 numbers of clusters, 10 starts; mean of {len(few)} of our {len(data)} sets at 15, 10 and 5 dB"
        out.append(row(f"fit, n=1,000 d=2, against {name}", ours, theirs, target=target, note=note))
    return out


def mean_time(data: list[np.ndarray], **options) -> float:
    """The mean over the sets of the least of three times, once all is loaded."""
    for X in data[:2]:
        FlowMixture(**options).fit(X)
    return sum(min(least_times([lambda X=X: FlowMixture(**options).fit(X)], 3)) for X in data) / len(data)


def large_problem() -> np.ndarray:
    n, d, K = LARGE
    rng = np.random.default_rng(0)
    centers, labels = rng.normal(size=(K, d)), rng.choice(K, size=n, p=rng.dirichlet(np.ones(K)))
    X = np.empty((n, d))
    for part in np.array_split(np.arange(n), 20):
        X[part] = centers[labels[part]] + 0.3 * rng.normal(size=(len(part), d))
    return X


def report_large() -> None:
    X = large_problem()
    FlowMixture().fit(X[:3000])
    start = time.perf_counter()
    fit = FlowMixture().fit(X)
    print(time.perf_counter() - start, status("VmHWM") / 1024, fit.n_clusters_)


def large_rows() -> list[dict]:
    done = subprocess.run([sys.executable, __file__, "--large"], capture_output=True, text=True, check=True)
    seconds, megabytes, K = (float(word) for word in done.stdout.split())
    name = "fit, n={:,} d={}".format(*LARGE[:2])
    return [
        row(
            name,
            seconds,
            10.0,
            target=1.0,
            note=f"the peer is the target of 10 s; found {K:.0f} of {LARGE[2]} clusters",
        ),
        row(f"{name}, memory", megabytes, 1024.0, target=1.0, note="MB, the whole process with torch and the data"),
    ]


def startup_rows() -> list[dict]:
    out = []
    for name, words, target in (
        ("import measureflow", ["-c", "import measureflow"], 0.3),
        ("measureflow --help", ["-m", "measureflow.cli", "--help"], 0.5),
    ):
        run = lambda words=words: subprocess.run([sys.executable, *words], capture_output=True, check=True)  # noqa: E731
        bare = least_times([lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)], 5)[0]
        note = f"the peer is the target; Python alone takes {bare:.3f} s of it"
        out.append(row(name, least_times([run], 5)[0], target, target=1.0, note=note))
    return out


def rows(sets: int = 8) -> list[dict]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is timed is the work, not the advice
        return speed_rows(sets) + large_rows() + startup_rows()


if __name__ == "__main__":
    if "--large" in sys.argv:
        report_large()
    else:
        for line in rows():
            print(line)
