"""FlowMixture on labelled data of scikit-learn and our own, as it comes: no target, every rival in the note."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn import datasets
from sklearn.metrics import adjusted_rand_score

import rivals
from bench_mixture_quality import row
from measureflow import FlowMixture
from measureflow.data import load_faithful, load_penguins


def penguins(return_X_y: bool = True):
    """Four measurements of three species."""
    whole = load_penguins().dropna()
    return whole[["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]].to_numpy(), whole["species"]


def real_rows() -> list[dict]:
    """Adjusted Rand index on labelled data as it comes; no target."""
    tables = {
        "iris": datasets.load_iris, "wine": datasets.load_wine, "breast cancer": datasets.load_breast_cancer,
        "digits": datasets.load_digits, "penguins": penguins,
    }  # fmt: skip
    out = []
    for name, load in tables.items():
        X, y = load(return_X_y=True)
        X = X[:, X.std(0) > 0]
        X = (X - X.mean(0)) / X.std(0)
        fit = FlowMixture().fit(X)
        scores = {"k-means (true K)": adjusted_rand_score(y, rivals.kmeans(X, len(set(y))).labels)}
        for rival, run in rivals.UNKNOWN_K.items():
            scores[rival] = adjusted_rand_score(y, run(X).labels)
        ours = adjusted_rand_score(y, fit.labels_)
        best = max(scores, key=scores.__getitem__)
        note = f"ARI, {fit.n_clusters_} clusters found of {len(set(y))}; best peer {best}; " + ", ".join(
            f"{rival} {score:.2f}" for rival, score in scores.items()
        )
        out.append(row(f"{name}, standardised", ours, scores[best], None, note, True))
    faithful = load_faithful()
    X = np.asarray(faithful, dtype=float)
    fit = FlowMixture().fit(X)
    out.append(row("Old Faithful, clusters found", fit.n_clusters_, 2, None, "no labels: two kinds are known", True))
    return out


def rows() -> list[dict]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return real_rows()
