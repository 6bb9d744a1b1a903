"""FlowMixture on 200 tables, on one, two and three threads, as three processors: how many answers differ, and in what.

On one processor no bit may depend on the threads. Between processors labels may differ only in rows whose two most
probable clusters are equally probable to a part in a thousand, and K only where its two most probable values are.
Answers are kept in out/processors table by table: ``--resume`` goes on where a run of the same code was stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np

from processors.stand_ins import OUT, ROOT, StandIn, of_name

SETS = 200
THREADS = (1, 2, 3)
DOUBT = 1e-3
PROCESSORS = (
    "this one, 1 thread",
    "Prescott, 2 threads",
    "Intel's MKL, 1 thread",
    "Nehalem, 1 thread",
)  # the first three there are


def table(seed: int) -> np.ndarray:
    """Rows of clusters that overlap hopelessly or lie far apart: round, long, of whole numbers, or with heavy tails.

    Most have 8 to 1,000 rows, which are quick to fit; every tenth has up to 6,000.
    """
    rng = np.random.default_rng(seed)
    fewest, most = (1000, 6000) if seed % 10 == 4 else (8, 1000)
    n, d = int(np.exp(rng.uniform(np.log(fewest), np.log(most)))), int(rng.choice([1, 2, 2, 3, 5, 8, 16, 40, 80]))
    K, separation = int(rng.integers(1, 13)), rng.uniform(0.3, 8)
    noise = rng.standard_t(3, (n, d)) if seed % 8 == 7 else rng.standard_normal((n, d))
    if seed % 4 == 1:
        noise = noise @ (rng.standard_normal((d, d)) / np.sqrt(d))
    X = separation * rng.standard_normal((K, d))[rng.integers(K, size=n)] + noise
    return np.round(X) if seed % 8 == 3 else X


def answer(X: np.ndarray, threads: int) -> dict:
    """What this process answers where torch and BLAS have so many threads."""
    import torch
    from threadpoolctl import threadpool_limits

    from measureflow import FlowMixture

    torch.set_num_threads(threads)  # here, because the environment may not ask for more than there are cores
    with threadpool_limits(threads, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture = FlowMixture().fit(X)
        probabilities = np.sort(mixture.predict_proba(X), axis=1)
    second = probabilities[:, -2] if mixture.n_clusters_ > 1 else np.zeros(len(X))
    bits = (mixture.labels_, mixture.cluster_centers_, mixture.weights_, mixture.flow_[-1].numpy(), probabilities)
    return {
        "bits": hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in bits)).hexdigest(),
        "K": mixture.n_clusters_,
        "labels": mixture.labels_.tolist(),
        "clear": (probabilities[:, -1] - second > DOUBT).tolist(),
        "posterior": {str(K): p for K, p in mixture.n_clusters_posterior_.items() if p > DOUBT},
    }


def write_answers(path: Path, count: int) -> None:
    """Add a line for each table that the file has none for: the answers on each number of threads."""
    done = len(path.read_text().splitlines()) if path.exists() else 0
    with path.open("a") as file:
        for seed in range(done, count):
            X = table(seed)
            file.write(json.dumps([answer(X, threads) for threads in THREADS]) + "\n")
            file.flush()


def asked(stand_in: StandIn, count: int, resume: bool) -> list[list[dict]]:
    """What a process of that kind answers for each table, on each number of threads."""
    path = OUT / f"answers-{stand_in.stem}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not resume:
        path.unlink(missing_ok=True)
    command = [sys.executable, __file__, str(count), "--answer", str(path)]
    subprocess.run(command, cwd=ROOT, env=stand_in.environment(), check=True)
    return [json.loads(line) for line in path.read_text().splitlines()[:count]]


def differ(here: list[dict], there: list[dict]) -> tuple[int, list[int], list[int]]:
    """How many sets differ in any bit, which in K, and which in the label of a row that is not in doubt."""
    pairs = list(zip(here, there, strict=True))
    bits = sum(a["bits"] != b["bits"] for a, b in pairs)
    K = [seed for seed, (a, b) in enumerate(pairs) if a["K"] != b["K"]]
    labels = [seed for seed, (a, b) in enumerate(pairs) if a["K"] == b["K"] and _relabelled(a, b)]
    return bits, K, labels


def _relabelled(a: dict, b: dict) -> bool:
    other = np.array(a["labels"]) != np.array(b["labels"])
    return bool((other & np.array(a["clear"]) & np.array(b["clear"])).any())


def in_doubt(a: dict, b: dict) -> bool:
    """Whether both processors find the two numbers of clusters equally probable."""
    return all(
        abs(one["posterior"].get(str(a["K"]), 0) - one["posterior"].get(str(b["K"]), 0)) <= DOUBT for one in (a, b)
    )


def _print_row(what: str, bits: int, K: list[int], labels: list[int]) -> None:
    print(f"{what:64} {bits:5d} {len(K):5d} {len(labels):5d}", flush=True)


def main(count: int, resume: bool) -> int:
    """Ask all, print who differs from whom; the exit code says if threads changed a bit or processors an answer."""
    kinds = [each for each in map(of_name, PROCESSORS) if each is not None][:3]
    print(f"{count} tables                                     sets that differ in  bits     K  clear labels")
    first, bad = {}, False
    for kind in kinds:
        one, *more = zip(*asked(kind, count, resume), strict=True)
        first[kind.name] = one
        for threads, found in zip(THREADS[1:], more, strict=True):
            bits, K, labels = differ(one, found)
            bad |= bits > 0
            _print_row(f"{kind.name}: {threads} threads against 1", bits, K, labels)
    for a, b in combinations(first, 2):
        bits, K, labels = differ(first[a], first[b])
        _print_row(f"{a} against {b}", bits, K, labels)
        for seed in K + labels:
            here, there = first[a][seed], first[b][seed]
            bad |= seed in labels or not in_doubt(here, there)
            print(f"    table {seed}: K {here['K']} or {there['K']}, {here['posterior']} or {there['posterior']}")
    return int(bad)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", nargs="?", type=int, default=SETS, help="how many tables")
    parser.add_argument("--resume", action="store_true", help="keep the answers of a run that was stopped")
    parser.add_argument("--answer", type=Path, help="only answer, into this file")
    given = parser.parse_args()
    if given.answer:
        write_answers(given.answer, given.count)
    else:
        sys.exit(main(given.count, given.resume))
