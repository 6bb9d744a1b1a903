"""FlowMixture on tables and clouds that are not round: ``python benchmarks/bench_tables.py [--only iris wine ...]``.

Adjusted Rand index, number of clusters and seconds of ours and of every peer; rows that a peer calls noise are one more
cluster of its. In the table "ours" and "peer" are scores, not seconds, and the ratio is ours over the peer's. The lab
book says which choices saw these tables.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import rivals
import tables
from bench_mixture_quality import row
from measureflow import FlowMixture

MOST = 20  # clusters that peers which need a largest number look for
ICL = "GaussianMixture (four) + ICL"
TOLD = "GaussianMixture told K"


@dataclass(frozen=True)
class Score:
    """How one method did on one table."""

    ari: float
    n_clusters: int
    seconds: float


def ours(X: np.ndarray) -> np.ndarray:
    return FlowMixture().fit(X).labels_


def methods(n_clusters: int) -> dict:
    """Labels by every method; the last was told how many clusters there are."""
    unknown = {name: lambda X, run=run: run(X, most=MOST).labels for name, run in rivals.ANY_SHAPE.items()}
    return {"FlowMixture": ours, **unknown, TOLD: lambda X: rivals.gmm_told(X, n_clusters).labels}


def scored(label, X: np.ndarray, y: np.ndarray) -> Score:
    start = time.process_time()
    labels = label(X)
    seconds = time.process_time() - start
    return Score(adjusted_rand_score(y, labels), len(set(labels[labels >= 0].tolist())), seconds)


def measured(sets: dict[str, Callable[[], tables.Table]], kept: Path) -> dict[str, dict]:
    """Scores of all methods on the sets; those of peers are kept in a file, because they do not change."""
    found = json.loads(kept.read_text()) if kept.exists() else {}
    for name, load in sets.items():
        X, y = load()
        facts = found.setdefault(name, {})
        facts["shape"] = [*X.shape, len(set(y.tolist()))]
        for method, label in methods(facts["shape"][2]).items():
            if method not in facts or method == "FlowMixture":
                facts[method] = asdict(scored(label, X, y))
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps(found))
    return found


def summary(found: dict[str, dict], names) -> dict[str, tuple[float, float, float]]:
    """Mean index, mean error in the number of clusters and seconds of each method."""
    out = {}
    for method in [*methods(1)]:
        scores = [(found[name][method], found[name]["shape"][2]) for name in names]
        out[method] = (
            float(np.mean([s["ari"] for s, _ in scores])),
            float(np.mean([abs(s["n_clusters"] - K) for s, K in scores])),
            float(np.sum([s["seconds"] for s, _ in scores])),
        )
    return out


def compared(sets: dict[str, Callable[[], tables.Table]], word: str, kept: Path) -> list[dict]:
    """Ours against every peer over all sets, then how each set was answered."""
    names = list(sets)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        found = measured(sets, kept)
    means = summary(found, names)
    here = means.pop("FlowMixture")
    out = []
    for method, (ari, k_error, seconds) in means.items():
        target = None if method == TOLD else (ari + 0.05) / ari if method == ICL else 1.0
        note = f"mean ARI of {len(names)} {word}; number of clusters off by {k_error:.1f}, {seconds:.0f} s"
        out.append(row(f"{word}, against {method}", here[0], ari, target, note, True))
    out.append(row(f"{word}, clusters off by", here[1], 1.5, 1.0, f"mean over {len(names)} {word}; at most 1.5"))
    excess = [n for n in names if _found(found, n) > max(10, 2 * found[n]["shape"][2])]
    note = ", ".join(excess) or "more than twice the true number, and than ten"
    out.append(row(f"{word}, with far too many clusters", len(excess), 0, None, note))
    for name in names:
        facts = found[name]
        peers = {m: s["ari"] for m, s in facts.items() if m not in ("shape", "FlowMixture", TOLD)}
        best = max(peers, key=peers.__getitem__)
        n, d, K = facts["shape"]
        note = f"ARI; {n} rows, {d} columns, {_found(found, name)} clusters found of {K}; best peer {best}"
        out.append(row(name, facts["FlowMixture"]["ari"], peers[best], None, note, True))
    return out


def rows(only=None, kept: Path = Path("out") / "tables.json") -> list[dict]:
    names = only or [*tables.REAL, *tables.CLOUDS]
    made = {name: partial(tables.standardised, (tables.REAL | tables.CLOUDS)[name]) for name in names}
    return compared(made, "tables", kept)


def _found(found: dict[str, dict], name: str) -> int:
    return found[name]["FlowMixture"]["n_clusters"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=[*tables.REAL, *tables.CLOUDS])
    for line in rows(parser.parse_args().only):
        print(f"{line['name']:45s} {line['ours_s']:.3f} {line['peer_s']:.3f} {line['ratio']:.2f} {line['note']}")
