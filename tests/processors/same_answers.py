"""FlowMixture on 200 tables, on one, two and three threads, as three processors: how many answers differ, and in what.

On one processor no bit may depend on the threads. Between processors labels may differ only in rows whose two most
probable clusters are equally probable to a part in a thousand, and K only where its two most probable values are.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import warnings
from itertools import combinations

import numpy as np

from processors.stand_ins import OUT, ROOT, StandIn, of_name

SETS = 200
DOUBT = 1e-3
PROCESSORS = (
    "1 thread",
    "all of the oldest",
    "Intel's MKL, 1 thread",
    "MKL for COMPATIBLE",
)  # the first three there are


def table(seed: int) -> np.ndarray:
    """Rows of clusters that overlap hopelessly or lie far apart: round, long, of whole numbers, or with heavy tails."""
    rng = np.random.default_rng(seed)
    n, d = int(np.exp(rng.uniform(np.log(8), np.log(6000)))), int(rng.choice([1, 2, 2, 3, 5, 8, 16, 40, 80]))
    K, separation = int(rng.integers(1, 13)), rng.uniform(0.3, 8)
    noise = rng.standard_t(3, (n, d)) if seed % 8 == 7 else rng.standard_normal((n, d))
    if seed % 4 == 1:
        noise = noise @ (rng.standard_normal((d, d)) / np.sqrt(d))
    X = separation * rng.standard_normal((K, d))[rng.integers(K, size=n)] + noise
    return np.round(X) if seed % 8 == 3 else X


def answers(count: int, threads: int) -> list[dict]:
    """What this process answers for each table, where torch and BLAS have so many threads."""
    import torch
    from threadpoolctl import threadpool_limits

    from measureflow import FlowMixture

    warnings.simplefilter("ignore")
    torch.set_num_threads(threads)  # here, because the environment may not ask for more than there are cores
    threadpool_limits(threads, user_api="blas")
    found = []
    for seed in range(count):
        X = table(seed)
        mixture = FlowMixture().fit(X)
        probabilities = np.sort(mixture.predict_proba(X), axis=1)
        second = probabilities[:, -2] if mixture.n_clusters_ > 1 else np.zeros(len(X))
        bits = (mixture.labels_, mixture.cluster_centers_, mixture.weights_, mixture.flow_[-1].numpy(), probabilities)
        found.append({
            "bits": hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in bits)).hexdigest(),
            "K": mixture.n_clusters_,
            "labels": mixture.labels_.tolist(),
            "clear": (probabilities[:, -1] - second > DOUBT).tolist(),
            "posterior": {str(K): p for K, p in mixture.n_clusters_posterior_.items() if p > DOUBT},
        })  # fmt: skip
    return found


def asked(stand_in: StandIn, count: int, threads: int) -> list[dict]:
    """What a process of that kind answers."""
    path = OUT / "answers.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "--answer", str(count), str(threads), str(path)]
    subprocess.run(command, cwd=ROOT, env=stand_in.environment(), check=True)
    return json.loads(path.read_text())


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


def main(count: int = SETS) -> int:
    """Ask all, print who differs from whom; the exit code says whether threads changed a bit, or a label changed."""
    kinds = [each for each in map(of_name, PROCESSORS) if each is not None][:3]
    print(f"{count} tables                                     sets that differ in  bits     K  clear labels")
    first, bad = {}, False
    for kind in kinds:
        found = {n: asked(kind, count, n) for n in (1, 2, 3)}
        first[kind.name] = found[1]
        for n in (2, 3):
            bits, K, labels = differ(found[1], found[n])
            bad |= bits > 0
            print(f"{f'{kind.name}: {n} threads against 1':64} {bits:5d} {len(K):5d} {len(labels):5d}", flush=True)
    for a, b in combinations(first, 2):
        bits, K, labels = differ(first[a], first[b])
        bad |= bool(labels)
        print(f"{f'{a} against {b}':64} {bits:5d} {len(K):5d} {len(labels):5d}", flush=True)
        for seed in K + labels:
            here, there = first[a][seed], first[b][seed]
            print(f"    table {seed}: K {here['K']} or {there['K']}, {here['posterior']} or {there['posterior']}")
    return int(bad)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        from pathlib import Path

        Path(sys.argv[4]).write_text(json.dumps(answers(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        sys.exit(main(*map(int, sys.argv[1:2])))
