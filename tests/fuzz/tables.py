"""Broken tables: small CSV files wounded at random, through the reader and a fit.

Each one must give a clustering whose numbers fit together, or a ValueError that says something.
``PYTHONPATH=tests python -m fuzz.tables [cases]`` tries 10,000; tables that were fitted before are read only.
"""

import hashlib
import sys
import warnings
from collections import Counter

import numpy as np
from rich.progress import track

from fuzz.limits import guarded, refusal
from fuzz.mutations import mutated
from measureflow import FlowMixture
from measureflow.tables.read import read_table


def small_table(rng: np.random.Generator) -> bytes:
    """A whole CSV of a few rows, with the separators, names, holes and columns that people have."""
    n, d = int(rng.integers(1, 25)), int(rng.integers(1, 5))
    separator = str(rng.choice([",", ";", "\t", "|"]))
    X = rng.normal(0, 5, (3, d))[rng.integers(0, 3, n)] + rng.normal(size=(n, d))
    names = [f"c{j}" for j in range(d)] + ["name"] * (d > 2)  # rows with more cells than names are refused
    lines = [separator.join(names)] if rng.random() < 0.7 else []
    for i, row in enumerate(X.round(int(rng.integers(0, 4)))):
        cells = [str(x) for x in row]
        if rng.random() < 0.05:
            cells[0] = str(rng.choice(["", "NA", "x", '"a b"']))
        lines.append(separator.join(cells + [f"row {i}"] * (d > 2)))
    return "\n".join(lines).encode()


def fuzz(cases: int, seed: int = 0) -> Counter:
    """How many broken tables were clustered, read again, and refused; anything else raises."""
    outcomes: Counter = Counter()
    fitted: set[bytes] = set()
    for case in track(range(seed, seed + cases), transient=True):
        rng = np.random.default_rng(case)
        whole = small_table(np.random.default_rng(case % 500))  # few whole tables, so that many broken ones are alike
        try:
            outcomes[tried(mutated(whole, rng), fitted)] += 1
        except BaseException:
            print(f"case {case} was not handled", file=sys.stderr)
            raise
    return outcomes


def tried(body: bytes, fitted: set[bytes]) -> str:
    """What became of one table."""
    try:
        with guarded(seconds=60, pickles=True), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", module="measureflow")  # UnfamiliarDataWarning, which is an answer
            table = read_table(body)
            X = table.values
            key = hashlib.sha256(X.tobytes() + repr(X.shape).encode()).digest()
            if key in fitted:
                return "seen before"
            fitted.add(key)
            mixture = FlowMixture(missing="drop").fit(X)
    except ValueError as error:
        return refusal(error)
    consistent(mixture, X)
    return "clustered"


def consistent(mixture: FlowMixture, X: np.ndarray) -> None:
    """The numbers of an answer fit together."""
    kept = np.isfinite(X).all(1)
    assert np.array_equal(mixture.labels_ >= 0, kept)
    assert mixture.labels_.max() < mixture.n_clusters_ == len(mixture.cluster_centers_) == len(mixture.weights_)
    assert np.isfinite(mixture.cluster_centers_).all()
    assert np.isclose(mixture.weights_.sum(), 1)
    probabilities = mixture.predict_proba(X[kept])
    assert np.allclose(probabilities.sum(1), 1)


if __name__ == "__main__":
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    print(f"{cases} broken tables: {dict(fuzz(cases))}")
