"""What happens to the columns of real tables: each effect takes points (n, d) and labels (n,) and returns points."""

from __future__ import annotations

import numpy as np

from measureflow.measures.shapes.catalogue import Rng, rotation


def irrelevant(rng: Rng, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Some columns have nothing to do with the clusters."""
    j = _some(rng, X.shape[1], rng.uniform(0, 0.6))
    noise = rng.standard_normal((len(X), len(j)))
    noise = np.where(rng.random(len(j)) < 0.3, rng.uniform(-1.7, 1.7, noise.shape), noise)
    X[:, j] = noise * _spread(X)
    return X


def redundant(rng: Rng, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Some columns repeat sums of others, with little noise."""
    j = _some(rng, X.shape[1], rng.uniform(0, 0.6))
    mixed = X @ (rng.standard_normal((X.shape[1], len(j))) / np.sqrt(X.shape[1]))
    X[:, j] = mixed + rng.uniform(0.01, 0.4) * _spread(mixed) * rng.standard_normal(mixed.shape)
    return X


def measured_again(rng: Rng, X: np.ndarray, d: int) -> np.ndarray:
    """A table of d columns, each of which measures one of the columns of X, with noise and in either direction."""
    source = np.concatenate([np.arange(X.shape[1]), rng.integers(X.shape[1], size=d - X.shape[1])])
    noise = rng.uniform(0.05, 0.6) * X.std(0)[source]
    again = X[:, source] * rng.choice([-1, 1], d) + noise * rng.standard_normal((len(X), d))
    return again[:, rng.permutation(d)]


def common_factor(rng: Rng, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """A size that varies from row to row and moves all columns together, whatever the cluster."""
    size = rng.standard_normal((len(X), 1)) if rng.random() < 0.6 else rng.uniform(-1.7, 1.7, (len(X), 1))
    return X + rng.uniform(0.5, 4) * _spread(X) * size * (1 + 0.3 * rng.standard_normal(X.shape[1]))


def stretched(rng: Rng, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Space stretched along a few directions, the same for all clusters."""
    factors = np.exp(rng.uniform(0, 1.2) * rng.standard_normal(X.shape[1]))
    return (X @ rotation(rng, X.shape[1])) * factors @ rotation(rng, X.shape[1])


def warped(rng: Rng, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Columns on a scale of their own: logarithmic, rooted, or bounded."""
    for j in _some(rng, X.shape[1], rng.uniform(0.2, 1)):
        z = (X[:, j] - X[:, j].mean()) / max(X[:, j].std(), 1e-9)
        strength, scale = rng.uniform(0.2, 0.9), rng.choice(3, p=[0.6, 0.2, 0.2])
        curved = (np.exp(strength * np.clip(z, -6, 6)), np.tanh(strength * z), np.arcsinh(2 * z))[int(scale)]
        X[:, j] = curved * _spread(X)
    return X


def cut_off(rng: Rng, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """A detection limit: what lies beyond it is set to it."""
    for j in _some(rng, X.shape[1], rng.uniform(0.1, 0.7)):
        edge = np.quantile(X[:, j], rng.uniform(0.02, 0.5 if X.shape[1] > 4 else 0.2))
        X[:, j] = np.maximum(X[:, j], edge)
    return X


def rounded(rng: Rng, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Columns of few values: scores, whole numbers, thermometers read by eye; in some tables all are."""
    d = X.shape[1]
    for j in range(d) if rng.random() < 0.4 else _some(rng, d, rng.uniform(0.1, 1)):
        low, high = np.quantile(X[:, j], [0.02, 0.98])
        step = max(high - low, 1e-9) / int(rng.integers(2 if d > 4 else 6, 40))
        X[:, j] = np.round(X[:, j] / step) * step
    return X


def categories(rng: Rng, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Columns that hold the code of a category, each more or less frequent in each cluster."""
    K = labels.max(initial=0) + 1
    for j in _some(rng, X.shape[1], rng.uniform(0.05, 0.5)):
        levels = int(rng.integers(2, 5))
        chances = rng.dirichlet(np.full(levels, rng.choice([0.3, 1.0, 3.0])), K).cumsum(1)
        X[:, j] = (rng.random((len(X), 1)) > chances[labels]).sum(1) * 1.7 * _spread(X)
    return X


def in_other_units(rng: Rng, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Columns multiplied by numbers of their own."""
    return X * np.exp(0.7 * rng.standard_normal(X.shape[1]))


def copied_rows(rng: Rng, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Some rows stand there twice or more; a copy keeps the cluster, so it is taken from the same one."""
    for i in np.flatnonzero(rng.random(len(X)) < rng.uniform(0, 0.3)):
        X[i] = X[rng.choice(np.flatnonzero(labels == labels[i]))]
    return X


# Each effect with the chance that a set shows it, and the fewest columns for those that need others beside them: a
# category in three columns would cut the rows into sheets, and nobody would call these one cluster.
COLUMN_EFFECTS = {
    stretched: 0.2,
    common_factor: 0.12,
    redundant: 0.12,
    warped: 0.15,
    irrelevant: 0.2,
    categories: 0.08,
    cut_off: 0.06,
    rounded: 0.16,
    copied_rows: 0.04,
    in_other_units: 0.2,
}
FEWEST_COLUMNS = {irrelevant: 3, redundant: 3, common_factor: 3, stretched: 3, categories: 5}
BUSY = 0.35  # the share of sets in which effects come together, as in most tables that people have ...
BUSIER = 2.5  # ... each of them so many times as often


def with_effects(rng: Rng, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The points after whatever effects were drawn, in the order of the list; then standardised, half of the time.

    Columns of real tables are correlated, skewed and rounded all at once, so in some sets effects are frequent.
    """
    often = BUSIER if rng.random() < BUSY else 1.0
    for effect, chance in COLUMN_EFFECTS.items():
        if rng.random() < often * chance and X.shape[1] >= FEWEST_COLUMNS.get(effect, 1):
            X = effect(rng, X, labels)
    if rng.random() < 0.5:
        X = X / np.maximum(X.std(0), 1e-9)
    return X


def _some(rng: Rng, d: int, share: float) -> np.ndarray:
    """Indices of about that share of d columns, at least one and never all but for a single column."""
    return rng.permutation(d)[: int(np.clip(round(share * d), 1, max(1, d - 1)))]


def _spread(X: np.ndarray) -> float:
    return float(np.median(np.std(X, 0))) + 1e-9
