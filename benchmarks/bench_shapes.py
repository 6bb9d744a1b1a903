"""FlowMixture on sets of its prior of shapes that nothing was fitted to: ``python benchmarks/bench_shapes.py``.

How well its clusters agree with the true ones, whether its probabilities of pairs come true, and whether it knows a
single cluster of each shape. In the table "ours" and "peer" are scores, not seconds.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import rivals
from bench_mixture_quality import row
from measureflow import FlowMixture
from measureflow.measures.shapes import ShapePrior
from measureflow.measures.shapes.catalogue import SHAPES, draw_shape

SEED = 2024  # training draws from other seeds, and so do its validation and the fit of the average
BINS = 10
PAIRS = 500  # of each set
AGAIN = 100  # draws of the sets for standard errors


def drawn(number: int) -> tuple[np.ndarray, np.ndarray]:
    """A set of 100 to 800 rows, and labels, -1 being noise."""
    rng = np.random.default_rng([SEED, number])
    n = int(np.exp(rng.uniform(np.log(100), np.log(800))))
    sets = ShapePrior().sample(1, n, rng)
    return sets.points[0].double().numpy(), sets.labels[0].numpy()


def prior_rows(n_sets: int) -> list[dict]:
    """Agreement with the truth."""
    scores = {name: [] for name in ("ours", "gaussian", "told", "k-means told")}
    errors, gaussian_errors = [], []
    for number in range(n_sets):
        X, y = drawn(number)
        member, K = y >= 0, len(set(y[y >= 0].tolist()))
        ours, gaussian = FlowMixture().fit(X), FlowMixture(assume="gaussian").fit(X)
        labels = {
            "ours": ours.labels_,
            "gaussian": gaussian.labels_,
            "told": rivals.gmm_told(X, K).labels,
            "k-means told": rivals.kmeans(X, K).labels,
        }
        for name, found in labels.items():
            scores[name].append(adjusted_rand_score(y[member], found[member]))
        errors.append(abs(ours.n_clusters_ - K))
        gaussian_errors.append(abs(gaussian.n_clusters_ - K))
    mean = {name: float(np.mean(values)) for name, values in scores.items()}
    sets = f"mean ARI of {n_sets} sets of the prior"
    return [
        row("shapes, against GaussianMixture told K", mean["ours"], mean["told"], 1.0, sets, True),
        row("shapes, against k-means told K", mean["ours"], mean["k-means told"], None, sets, True),
        row("shapes, against our Gaussians alone", mean["ours"], mean["gaussian"], 1.0, sets, True),
        row("shapes, clusters off by", np.mean(errors), np.mean(gaussian_errors), 1.0, "peer: our Gaussians alone"),
    ]


def calibration_row(n_sets: int) -> dict:
    """The largest gap over ten bins between what was said of pairs and what came true.

    Pairs of one set are right or wrong together, so it takes many sets: the standard error of each bin is that over
    sets drawn again with repetitions.
    """
    said, true = np.empty((n_sets, PAIRS)), np.empty((n_sets, PAIRS))
    for number in range(n_sets):
        X, y = drawn(number)
        rng, member = np.random.default_rng([SEED, number, 1]), np.flatnonzero(y >= 0)
        i = rng.choice(member, PAIRS)
        j = rng.choice(member, PAIRS)
        j = np.where(i == j, np.roll(j, 1), j)
        said[number], true[number] = FlowMixture().fit(X).co_clustering_[i, j], y[i] == y[j]
    promised, came = came_true(said, true)
    rng = np.random.default_rng(SEED)
    again = [np.subtract(*came_true(said[rows], true[rows])) for rows in rng.integers(n_sets, size=(AGAIN, n_sets))]
    errors = np.std(again, 0)
    words = ", ".join(f"{p:.2f} came true {q:.2f} ± {e:.2f}" for p, q, e in zip(promised, came, errors, strict=True))
    gap = float(np.abs(promised - came).max())
    return row("shapes, probabilities of pairs off by", gap, 0.03, 1.0, f"at most 0.03; {n_sets} sets: {words}")


def came_true(said: np.ndarray, true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean probability in each of ten bins, and the share of pairs that did belong together."""
    place = np.minimum((said * BINS).astype(int), BINS - 1).ravel()
    count = np.maximum(np.bincount(place, minlength=BINS), 1)
    return tuple(np.bincount(place, values.ravel(), minlength=BINS) / count for values in (said, true))


def single_rows(n_sets: int) -> list[dict]:
    """How often a single cluster is taken for one, for each shape of the catalogue."""
    shares = {}
    for number, shape in enumerate(SHAPES):
        found = []
        for again in range(n_sets):
            rng = np.random.default_rng([SEED, 10**6 + number, again])
            n, d = int(rng.integers(150, 500)), int(rng.choice([2, 2, 3, 5, 8]))
            found.append(FlowMixture().fit(draw_shape(rng, shape, n, d)).n_clusters_ == 1)
        shares[shape.__name__] = float(np.mean(found))
    worst = min(shares, key=shares.__getitem__)
    note = f"least: {worst}; " + ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    return [row("shapes, single clusters known as one", shares[worst], 0.95, 1.0, note, True)]


def speed_row() -> dict:
    """Processor time for a thousand rows on one thread."""
    X, _ = rivals_set()
    FlowMixture().fit(X[:100])
    start = time.process_time()
    FlowMixture().fit(X)
    seconds = time.process_time() - start
    return row("any shape, 1,000 rows", seconds, 0.3, 1.0, "seconds of one processor; at most 0.3")


def rivals_set() -> tuple[np.ndarray, np.ndarray]:
    """A thousand rows in four columns."""
    sets = ShapePrior().sample(1, 1000, np.random.default_rng([SEED, 7]), d=4)
    return sets.points[0].double().numpy(), sets.labels[0].numpy()


def rows(n_sets: int = 400, n_pairs: int = 3000, n_single: int = 60) -> list[dict]:
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        return [*prior_rows(n_sets), calibration_row(n_pairs), *single_rows(n_single), speed_row()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=400)
    parser.add_argument("--pairs", type=int, default=3000, help="sets on which probabilities of pairs are judged")
    parser.add_argument("--single", type=int, default=60)
    chosen = parser.parse_args()
    for line in rows(chosen.sets, chosen.pairs, chosen.single):
        print(f"{line['name']:45s} {line['ours_s']:.3f} {line['peer_s']:.3f} {line['ratio']:.2f} {line['note']}")
