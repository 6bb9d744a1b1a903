"""Clusterers that FlowMixture is measured against: rows (n, d) in, labels and a mixing measure out."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import logsumexp
from sklearn.cluster import HDBSCAN, KMeans, MeanShift, estimate_bandwidth, kmeans_plusplus
from sklearn.metrics import silhouette_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from measureflow.reproduce.opponents import em_with_bic


@dataclass(frozen=True)
class Answer:
    """Atoms and masses, and a label for each row (-1 for noise)."""

    atoms: np.ndarray
    masses: np.ndarray
    labels: np.ndarray


def from_labels(X: np.ndarray, labels: np.ndarray) -> Answer:
    """The measure of the cluster means; rows called noise count with their nearest mean."""
    names = np.unique(labels[labels >= 0])
    if len(names) == 0:
        return Answer(X.mean(0, keepdims=True), np.ones(1), np.zeros(len(X), int))
    atoms = np.stack([X[labels == name].mean(0) for name in names])
    nearest = ((X[:, None] - atoms) ** 2).sum(-1).argmin(1)
    return Answer(atoms, np.bincount(nearest, minlength=len(atoms)) / len(X), labels)


def kmeans(X, K):
    """k-means told the true K, the best of ten starts."""
    return from_labels(X, KMeans(K, n_init=10, random_state=0).fit_predict(X))


def gmm_bic(X, most=12, shape="full"):
    """scikit-learn's GaussianMixture, K by BIC, ten starts."""
    numbers = range(1, most + 1)
    fits = [GaussianMixture(K, covariance_type=shape, n_init=10, random_state=0).fit(X) for K in numbers]
    best = min(fits, key=lambda fit: fit.bic(X))
    return Answer(best.means_, best.weights_, best.predict(X))


def shared_em_bic(X, most=12):
    """EM with one shared variance, K by BIC, ten starts: the likelihood that made the data."""
    fit = em_with_bic(X, 0, most=most, starts=10)
    gaps = ((X[:, None] - fit.atoms) ** 2).sum(-1) / (2 * fit.variance) - np.log(np.maximum(fit.masses, 1e-300))
    return Answer(fit.atoms, fit.masses, gaps.argmin(1))


def shared_em_bic_numpy(X, most=12, starts=10):
    """The same in plain NumPy, start after start, as it is usually written."""
    n, d = X.shape
    best = np.inf
    for K in range(1, most + 1):
        for seed in range(starts if K > 1 else 1):
            atoms = kmeans_plusplus(X, K, random_state=seed)[0]
            masses, variance, last = np.full(K, 1 / K), X.var(0).mean() / K, -np.inf
            for _ in range(500):
                gaps = (X**2).sum(1)[:, None] - 2 * X @ atoms.T + (atoms**2).sum(1)
                joint = np.log(masses) - gaps / (2 * variance) - d / 2 * np.log(2 * np.pi * variance)
                total = logsumexp(joint, axis=1)
                if total.mean() - last < 1e-6:
                    break
                last, r = total.mean(), np.exp(joint - total[:, None])
                masses, atoms = r.mean(0), r.T @ X / r.sum(0)[:, None]
                variance = ((X**2).sum() - n * (masses * (atoms**2).sum(1)).sum()) / (n * d)
            bic = -2 * total.sum() + (K * d + K) * np.log(n)
            if bic < best:
                best, answer = bic, Answer(atoms, masses, joint.argmax(1))
    return answer


SHAPES = ("spherical", "diag", "tied", "full")


def gmm_four(X, most=12, criterion="BIC"):
    """scikit-learn's GaussianMixture, K and one of four covariances by BIC or by ICL, three starts.

    ICL [Biernacki, Celeux and Govaert 2000] adds to BIC twice the entropy of the responsibilities.
    """
    scored = []
    for shape in SHAPES:
        for K in range(1, most + 1):
            fit = GaussianMixture(K, covariance_type=shape, n_init=3, reg_covar=1e-4, random_state=0).fit(X)
            r = fit.predict_proba(X)
            doubt = -2 * (r * np.log(np.maximum(r, 1e-300))).sum() if criterion == "ICL" else 0.0
            scored.append((fit.bic(X) + doubt, fit))
    best = min(scored, key=lambda pair: pair[0])[1]
    return Answer(best.means_, best.weights_, best.predict(X))


def gmm_told(X, K):
    """scikit-learn's GaussianMixture told the true K, its covariance by BIC, five starts."""
    fits = [GaussianMixture(K, covariance_type=s, n_init=5, reg_covar=1e-4, random_state=0).fit(X) for s in SHAPES]
    best = min(fits, key=lambda fit: fit.bic(X))
    return Answer(best.means_, best.weights_, best.predict(X))


def plscan(X, most=None):
    """PLSCAN at its defaults, on one thread; it needs no largest K."""
    from fast_plscan import PLSCAN

    return from_labels(X, PLSCAN(num_threads=1).fit_predict(np.ascontiguousarray(X, dtype=np.float32)))


def bayesian(X, most=12, shape="full"):
    """BayesianGaussianMixture; components that hold less than one row in a hundred do not count."""
    fit = BayesianGaussianMixture(n_components=most, covariance_type=shape, n_init=3, max_iter=500, random_state=0).fit(
        X
    )
    return from_labels(X, _without_small(fit.predict(X)))


def hdbscan(X, most=None, smallest=5):
    """HDBSCAN, at its defaults unless told otherwise; it needs no largest K."""
    return from_labels(X, HDBSCAN(min_cluster_size=smallest, copy=True).fit_predict(X))


def mean_shift(X, most=None, quantile=0.3):
    """MeanShift, at its defaults unless told otherwise; it needs no largest K."""
    bandwidth = estimate_bandwidth(X, quantile=quantile) or None
    try:
        return from_labels(X, MeanShift(bandwidth=bandwidth, bin_seeding=True).fit_predict(X))
    except ValueError:  # in many columns no bin may hold a row; every row is a seed then, which takes longer
        return from_labels(X, MeanShift(bandwidth=bandwidth).fit_predict(X))


def silhouette(X, most=12):
    """k-means with the K of the best silhouette, never one."""
    fits = [KMeans(K, n_init=10, random_state=0).fit_predict(X) for K in range(2, most + 1)]
    return from_labels(X, max(fits, key=lambda labels: silhouette_score(X, labels)))


def _without_small(labels):
    counts = np.bincount(labels)
    return np.where(counts[labels] * 100 >= len(labels), labels, -1)


UNKNOWN_K = {
    "shared-variance EM + BIC": shared_em_bic,
    "GaussianMixture + BIC": gmm_bic,
    "BayesianGaussianMixture": bayesian,
    "HDBSCAN": hdbscan,
    "MeanShift": mean_shift,
    "k-means + silhouette": silhouette,
}

ANY_SHAPE = {
    "GaussianMixture (four) + ICL": partial(gmm_four, criterion="ICL"),
    "GaussianMixture (four) + BIC": gmm_four,
    "BayesianGaussianMixture": bayesian,
    "HDBSCAN (5)": hdbscan,
    "HDBSCAN (root n)": lambda X, most=None: hdbscan(X, smallest=max(2, round(len(X) ** 0.5))),
    "k-means + silhouette": silhouette,
    "MeanShift": mean_shift,
    "PLSCAN": plscan,
}

TUNED = {
    "GaussianMixture (spherical) + BIC": partial(gmm_bic, shape="spherical"),
    "GaussianMixture (tied) + BIC": partial(gmm_bic, shape="tied"),
    "BayesianGaussianMixture (spherical)": partial(bayesian, shape="spherical"),
    "HDBSCAN (at least 15 rows)": partial(hdbscan, smallest=15),
    "MeanShift (quantile 0.1)": partial(mean_shift, quantile=0.1),
}


def remembered(name: str, X: np.ndarray, most: int, folder: Path = Path("out") / "rivals") -> Answer:
    """The answer of a rival by its name, from a file where the same lines of code have seen the same rows before."""
    run = (UNKNOWN_K | TUNED | ANY_SHAPE)[name]
    lines = inspect.getsource(getattr(run, "func", run))
    asked = f"{name}/{most}/{X.shape}/{lines}".encode() + np.ascontiguousarray(X).tobytes()
    file = folder / f"{hashlib.sha256(asked).hexdigest()[:24]}.npz"
    if file.exists():
        with np.load(file, allow_pickle=False) as kept:
            return Answer(kept["atoms"], kept["masses"], kept["labels"])
    answer = run(X, most=most)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(file, atoms=answer.atoms, masses=answer.masses, labels=answer.labels)
    return answer
