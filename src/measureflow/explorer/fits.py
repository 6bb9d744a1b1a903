"""What the library finds in a table, as numbers for the page: the same answers as ``measureflow cluster`` gives."""

from __future__ import annotations

import warnings
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

from measureflow.report.samples import evenly
from measureflow.tables.files import is_text, read_bytes
from measureflow.tables.read import Table, choose_columns

MOST_NUMBERS = 400_000  # of a flow that is sent to the page
DIAL_ROWS = 1500  # that the curve of K against the dial is made from
PEER_ROWS = 3000  # that the peers are fitted to; all others get their labels by prediction
MOST_COMPONENTS = 12  # of a peer, to begin with


@lru_cache(maxsize=4)
def read(body: bytes, columns: tuple[str, ...] = ()) -> Table:
    """The table in the bytes of a file."""
    return choose_columns(read_bytes(body), list(columns) or None)


def describe(body: bytes, columns: tuple[str, ...] = ()) -> dict[str, Any]:
    """A table as it was read, and as a CSV that the page can read by itself."""
    table = read(body, columns)
    return {
        "rows": len(table.frame),
        "columns": table.columns,
        "skipped": table.skipped,
        "gaps": int((~table.complete).sum()),
        "notes": table.notes(),
        "csv": as_csv(body),
    }


def as_csv(body: bytes) -> str:
    """The table in the bytes of a file as a CSV, whatever it was."""
    return read_bytes(body).to_csv(index=False)


def page_can_read(body: bytes) -> bool:
    """Whether the page's own reader understands the bytes."""
    return is_text(body)


@lru_cache(maxsize=8)
def _summary(body: bytes, columns: tuple[str, ...], n_clusters: int | None, snr_db: float | None):
    from measureflow.report.summary import Summary  # loads torch: the page itself should open at once

    return Summary.fit(read(body, columns), n_clusters=n_clusters, snr_db=snr_db, missing="drop")


def fit(body: bytes, columns: tuple[str, ...], n_clusters: int | None, snr_db: float | None, most_rows: int) -> dict:
    """The clusters of a table: what ``measureflow cluster --json`` says, each row's label, and the flow."""
    table = read(body, columns)
    if len(table.frame) > most_rows:
        raise ValueError(f"the table has {len(table.frame):,} rows, more than {most_rows:,}; try `measureflow cluster`")
    from measureflow.report.summary import refits

    summary = _summary(body, columns, n_clusters, snr_db)
    return {
        **summary.to_dict(),
        "headline": summary.headline(),
        "refits": refits(len(table.frame), n_clusters),
        "certainty": summary.certainty(),
        "labels": summary.labels.tolist(),
        "probabilities": _numbers(summary.probabilities, 4),
        "rivals": summary.rivals.tolist(),
        "outliers": np.flatnonzero(summary.outliers).tolist(),
        "centres": summary.means.tolist(),
        "differences": np.round(summary.differences, 3).tolist(),
        "typical": [summary.typical(k) for k in range(summary.mixture.n_clusters_)],
        "flow": _flow(summary),
    }


def _numbers(values: np.ndarray, digits: int) -> list[float | None]:
    """Numbers that JSON can say: None for what is missing."""
    return [None if v != v else v for v in np.round(values, digits).tolist()]


def _flow(summary) -> dict[str, Any]:
    """The tokens of every layer in units of the data, layer after layer, and the clusters they end in."""
    states = np.stack([state.numpy() for state in summary.mixture.flow_])
    few = max(1, MOST_NUMBERS // (states.shape[0] * states.shape[2]))
    states = states[:, evenly(states.shape[1], few)]
    return {
        "layers": len(states) - 1,
        "n": states.shape[1],
        "points": [float(f"{v:.6g}") for v in states.ravel()],
        "labels": summary.predict(states[0]).tolist(),
        "times": [float(t) for t in summary.mixture.flow_.times],
        "snr_db": float(min(summary.mixture.flow_.snr_db, 1e3)),
    }


def stability(body: bytes, columns: tuple[str, ...], n_clusters: int | None, snr_db: float | None, n: int) -> dict:
    """How often K and each cluster come back when ``n`` parts of the rows are fitted again.

    The parts are those of ``measureflow cluster``. Each is fitted once: a call with one part more than
    before takes one fit.
    """
    from measureflow.estimators import checks
    from measureflow.estimators.stability import stability as measured
    from measureflow.report.summary import shares_of

    table = read(body, columns)
    kept = table.complete
    labels = _summary(body, columns, n_clusters, snr_db).labels[kept]
    done, numbers = _refitted(body, columns, n_clusters, snr_db), count()

    def fit_predict(X: np.ndarray, w: np.ndarray) -> np.ndarray:
        number = next(numbers)
        if number not in done:
            done[number] = _labels(X, w, n_clusters, snr_db)
        return done[number]

    seed = int(checks.generator(0).randint(2**31))
    return shares_of(measured(fit_predict, table.values[kept], labels, np.ones(int(kept.sum())), n, seed))


def _labels(X: np.ndarray, w: np.ndarray, n_clusters: int | None, snr_db: float | None) -> np.ndarray:
    from measureflow import FlowMixture
    from measureflow.mixtures.misfit import unwarned

    with unwarned():
        return FlowMixture(n_clusters=n_clusters, snr_db=snr_db).fit(X, sample_weight=w).labels_


@lru_cache(maxsize=4)
def _refitted(body: bytes, columns: tuple[str, ...], n_clusters: int | None, snr_db: float | None) -> dict:
    """The labels of the parts fitted so far, by number."""
    return {}


def dial(body: bytes, columns: tuple[str, ...], marks: tuple[float, ...]) -> list[int]:
    """The number of clusters that `FlowMixture` finds at each of these signal-to-noise ratios."""
    from measureflow.report.dial import dial_curve

    curve = dial_curve(read(body, columns), marks, DIAL_ROWS)
    return [K for _, K in curve] or [1] * len(marks)


def peers(body: bytes, columns: tuple[str, ...], n_clusters: int) -> list[dict[str, Any]]:
    """What scikit-learn's clusterers make of the same rows, their columns standardised."""
    from sklearn.cluster import HDBSCAN, KMeans

    table = read(body, columns)
    kept = table.complete
    Z = table.values[kept]
    Z = (Z - Z.mean(0)) / np.where(Z.std(0) > 0, Z.std(0), 1.0)
    few = Z[evenly(len(Z), PEER_ROWS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of EM that did not converge, of columns that are constant
        k_means = KMeans(min(n_clusters, len(np.unique(few, axis=0))), n_init=4, random_state=0).fit(few)
        mixture, words = mixture_by_bic(few)
        found = {
            "k-means": (k_means.predict(Z), f"K = {k_means.n_clusters}, as FlowMixture found"),
            "Gaussian mixture": (mixture.predict(Z), words),
        }
        if len(Z) <= PEER_ROWS and len(Z) >= 10:
            dense = HDBSCAN(min_cluster_size=max(5, len(Z) // 50), copy=True).fit_predict(Z)
            noise = f"{np.mean(dense < 0):.0%} of the rows are noise to it"
            found["HDBSCAN"] = (dense, f"K = {dense.max() + 1}; {noise}")
    return [
        {"name": name, "words": words, "labels": np.where(kept, _spread(kept, labels), -1).tolist()}
        for name, (labels, words) in found.items()
    ]


def mixture_by_bic(X: np.ndarray) -> tuple[Any, str]:
    """scikit-learn's Gaussian mixture of least BIC, over four kinds of covariance and any number of components."""
    from sklearn.mixture import GaussianMixture

    best, least, most = None, np.inf, min(MOST_COMPONENTS, max(1, len(X) // 4))
    for kind in ("spherical", "diag", "tied", "full"):
        worse = 0
        for K in range(1, len(X)):
            if (most < K and (best is None or best.n_components < K - 3)) or worse > 4 or len(X) < 2:
                break
            mixture = GaussianMixture(K, covariance_type=kind, random_state=0).fit(X)
            bic = mixture.bic(X)
            worse = 0 if bic < least else worse + 1
            if bic < least:
                best, least = mixture, bic
    if best is None:
        raise ValueError("a Gaussian mixture needs two rows")
    shape = {"full": "a shape each", "tied": "one shape", "diag": "upright shapes", "spherical": "spheres"}
    return best, f"K = {best.n_components} by BIC, {shape[best.covariance_type]}"


def _spread(kept: np.ndarray, labels: np.ndarray) -> np.ndarray:
    out = np.full(len(kept), -1)
    out[kept] = labels
    return out


def warm() -> None:
    """Load and compile what a first fit needs, so that the reader need not wait for it."""
    from measureflow import FlowMixture

    X = np.concatenate([np.random.default_rng(k).normal(9 * k, 1, (40, 2)) for k in range(3)])
    FlowMixture().fit(X)
    FlowMixture(snr_db=10.0).fit(X)
