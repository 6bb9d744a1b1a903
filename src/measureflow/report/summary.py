"""A clustering in words and numbers: how many, how sure, and what distinguishes each cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from measureflow.estimators.flow_mixture import FlowMixture
from measureflow.estimators.stability import Stability
from measureflow.mixtures.misfit import unwarned
from measureflow.report.continuum import pieces
from measureflow.report.words import again, brief, count, more_probable, odds, percent, sentence, times
from measureflow.tables.read import Table

SURE = 0.9  # a row whose most probable cluster is less probable than this is called uncertain
NOTABLE = 0.25  # standard deviations from the mean of all rows that are worth a word
MOST_TRAITS = 3
MOST_LISTED = 8  # clusters named in one sentence


@dataclass(frozen=True)
class Summary:
    """What there is to say about the clusters of a table."""

    table: Table
    mixture: FlowMixture
    labels: np.ndarray  # (n,), -1 for rows that were left out
    probabilities: np.ndarray  # (n,) of the cluster each row was given; NaN for rows that were left out
    rivals: np.ndarray  # (n,) the next most probable cluster; -1 where there is none
    outliers: np.ndarray  # (n,) whether a row that was not left out lies far from the rest
    pieces: list[list[int]]  # clusters that meet without a gap

    @classmethod
    def fit(cls, table: Table, **options) -> Summary:
        """The clusters of a table, found by a `FlowMixture` with these options."""
        with unwarned():
            return cls.of(table, FlowMixture(**options).fit(table.numbers))

    @classmethod
    def of(cls, table: Table, mixture: FlowMixture) -> Summary:
        """The summary of a mixture fitted to the table."""
        kept = table.complete
        posterior = mixture.predict_proba(_as_fitted(mixture, table.values[kept]))
        at, labels = np.arange(len(posterior)), posterior.argmax(1)
        probabilities, rivals = np.full(len(kept), np.nan), np.full(len(kept), -1)
        probabilities[kept] = posterior[at, labels]
        if mixture.n_clusters_ > 1:
            posterior[at, labels] = -1.0
            rivals[kept] = posterior.argmax(1)
        outliers = mixture.outliers_ & kept
        together = pieces(table.values, np.where(outliers, -1, mixture.labels_))
        return cls(table, mixture, mixture.labels_, probabilities, rivals, outliers, together)

    @property
    def diagnosis(self) -> list[str]:
        """What is unusual about the rows, in sentences."""
        return [sentence(words) for words in self.mixture.diagnosis_] + [_without_gap(group) for group in self.pieces]

    @property
    def sizes(self) -> np.ndarray:
        """Rows in each cluster."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.mixture.n_clusters_)

    @property
    def shares(self) -> np.ndarray:
        """Each cluster's share of the rows that were not left out."""
        return self.sizes / max(1, self.sizes.sum())

    @property
    def dropped(self) -> int:
        """Rows left out because a value was missing."""
        return int((~self.table.complete).sum())

    @property
    def uncertain(self) -> float:
        """The share of rows whose cluster is less than 90 % probable."""
        return float(np.mean(self.probabilities[self.table.complete] < SURE))

    @property
    def usual(self) -> np.ndarray:
        """The values (m, d) that centres are compared with: rows neither left out nor far from the rest."""
        inside = (self.labels >= 0) & ~self.outliers
        return self.table.values[inside if inside.any() else self.labels >= 0]

    @property
    def spread(self) -> np.ndarray:
        """The standard deviation of each column (d,) over the usual rows, one where that is zero."""
        spread = self.usual.std(0)
        return np.where(spread > 0, spread, 1.0)

    @property
    def differences(self) -> np.ndarray:
        """Centres as standard deviations of the usual rows from their mean, (K, d)."""
        return (self.mixture.cluster_centers_ - self.usual.mean(0)) / self.spread

    @property
    def means(self) -> np.ndarray:
        """Centres as they are shown, (K, d): what is nothing beside the spread of its column is zero."""
        centers = self.mixture.cluster_centers_
        return np.where(np.abs(centers) < 1e-9 * self.usual.std(0), 0.0, centers)

    def traits(self, k: int) -> list[str]:
        """The columns in which cluster k differs most from all rows, in words."""
        z, centre = self.differences[k], self.means[k]
        most = [j for j in np.argsort(-np.abs(z), kind="stable")[:MOST_TRAITS] if abs(z[j]) >= NOTABLE]
        return [f"{_degree(z[j])} {self.table.columns[j]} ({brief(centre[j])}, {z[j]:+.1f} sd)" for j in most]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The clusters of other rows (n, d) of the same columns."""
        return self.mixture.predict(_as_fitted(self.mixture, X))

    def typical(self, k: int, most: int = 3) -> list[int]:
        """The rows of cluster k nearest its centre, by number."""
        rows = np.flatnonzero(self.labels == k)
        away = (((self.table.values[rows] - self.mixture.cluster_centers_[k]) / self.spread) ** 2).sum(1)
        return rows[np.argsort(away, kind="stable")[:most]].tolist()

    def headline(self) -> str:
        """The answer in one sentence."""
        K, n = self.mixture.n_clusters_, int(self.sizes.sum())
        return f"{count(K, 'cluster')} in {count(n, 'row')} of {count(len(self.table.columns), 'column')}"

    def certainty(self) -> str:
        """How sure it is, in sentences."""
        return ". ".join(self.certainties())

    def certainties(self) -> list[str]:
        """How sure it is, a sentence each, without its stop."""
        m, outliers = self.mixture, int(self.outliers.sum())
        K = m.n_clusters_
        gaussian = "If the clusters are Gaussian, " if np.isnan(m.expected_index_) else ""
        told = [f"K = {K} was asked for" if m.n_clusters is not None else gaussian + odds(m.n_clusters_posterior_, K)]
        if m.n_clusters is None:
            told += more_probable(m.n_clusters_posterior_, K)
        if m.stability_ is not None:
            told.append(again(m.stability_.n_clusters, K, m.n_stability) + _each(m.stability_, K, m.n_stability))
        if np.isfinite(m.expected_index_) and K > 1:
            told.append(
                f"The expected agreement with the true clusters is {m.expected_index_:.2f} (adjusted Rand index: 1 is "
                "perfect, 0 is chance)"
            )
        doubt = f": their cluster has a probability below {SURE:g}" if self.uncertain else ""
        told.append(f"{percent(self.uncertain)} of the rows are uncertain{doubt}")
        if outliers:
            told.append(f"{count(outliers, 'row')} {'lies' if outliers == 1 else 'lie'} far from the rest")
        return told

    def lines(self) -> list[str]:
        """One line for each cluster."""
        width = len(str(self.sizes.max()))
        return [
            f"cluster {k}: {size:{width}d} {'row' if size == 1 else 'rows'} ({self.shares[k]:.0%}){self._back(k)}: "
            f"{', '.join(self.traits(k)) or PLAIN}"
            for k, size in enumerate(self.sizes)
        ]

    def _back(self, k: int) -> str:
        stable = self.mixture.stability_
        return "" if stable is None else f", came back in {times(stable.clusters[k], self.mixture.n_stability)}"

    def labelled(self) -> pd.DataFrame:
        """The rows as they were read, each with its cluster and the probability of it."""
        frame = self.table.frame.copy()
        frame[_fresh("cluster", frame)] = self.labels
        frame[_fresh("probability", frame)] = np.round(self.probabilities, 6)
        if self.outliers.any():
            frame[_fresh("outlier", frame)] = self.outliers
        return frame

    def centers(self) -> pd.DataFrame:
        """One row for each cluster: how many rows, their share, the centre."""
        frame = pd.DataFrame(self.mixture.cluster_centers_, columns=self.table.columns)
        for place, (name, values) in enumerate(
            {"cluster": range(len(frame)), "rows": self.sizes, "weight": self.mixture.weights_}.items()
        ):
            frame.insert(place, _fresh(name, frame), values)
        return frame

    def to_dict(self) -> dict:
        """Everything, ready for JSON."""
        m = self.mixture
        return {
            "n_rows": len(self.labels),
            "n_dropped": self.dropped,
            "columns": self.table.columns,
            "skipped": self.table.skipped,
            "n_clusters": m.n_clusters_,
            "n_clusters_posterior": {str(K): float(p) for K, p in m.n_clusters_posterior_.items()},
            "expected_index": float(m.expected_index_) if np.isfinite(m.expected_index_) else None,
            "stability": None if m.stability_ is None else shares_of(m.stability_),
            "share_uncertain": self.uncertain,
            "n_outliers": int(self.outliers.sum()),
            "snr_db": float(m.snr_db_) if np.isfinite(m.snr_db_) else None,
            "noise_variance": float(m.noise_variance_),
            "clusters": [
                {
                    "cluster": k,
                    "rows": int(self.sizes[k]),
                    "weight": float(m.weights_[k]),
                    "centre": dict(zip(self.table.columns, m.cluster_centers_[k].tolist(), strict=True)),
                    "traits": self.traits(k),
                }
                for k in range(m.n_clusters_)
            ],
            "diagnosis": self.diagnosis,
            "notes": self.table.notes(),
        }


def _without_gap(group: list[int]) -> str:
    """What to say of clusters that meet without a gap."""
    some = [str(k) for k in group[:MOST_LISTED]]
    more = [f"{len(group) - MOST_LISTED} more"] if len(group) > MOST_LISTED else []
    *first, last = some + more
    return f"Clusters {', '.join(first)} and {last} meet without a gap: they may be pieces of one shape, not groups."


def _each(stable: Stability, K: int, fits: int) -> str:
    """That each of the clusters came back more often than their number did, if so."""
    least, back = (round(share * fits) for share in (stable.clusters.min(initial=1.0), stable.n_clusters.get(K, 0.0)))
    if K < 2 or least <= back:
        return ""
    return f". Each of these {K} clusters came back {'every time' if least == fits else f'at least {least} times'}"


def refits(rows: int, n_clusters: int | None) -> int:
    """How many parts of the rows to fit again when nobody said: ten where it takes seconds and K was not given.

    >>> refits(150, None), refits(150, 3), refits(100_000, None)
    (10, 0, 0)
    """
    return 10 if n_clusters is None and 20 <= rows <= 1000 else 0


def shares_of(stable: Stability) -> dict:
    """How often K and each cluster came back, ready for JSON."""
    shares = {str(K): share for K, share in stable.n_clusters.items()}
    return {"n_clusters": shares, "clusters": stable.clusters.tolist(), "similarity": stable.similarity.tolist()}


PLAIN = "near the mean of all rows in every column"


def _degree(z: float) -> str:
    word = "high" if z > 0 else "low"
    return f"very {word}" if abs(z) > 1.5 else word


def _as_fitted(mixture: FlowMixture, X: np.ndarray) -> np.ndarray | pd.DataFrame:
    """Rows with the names of the columns if the mixture was fitted with names."""
    names = getattr(mixture, "feature_names_in_", None)
    return X if names is None else pd.DataFrame(X, columns=names)


def _fresh(name: str, frame: pd.DataFrame) -> str:
    """The name, with an underscore more for every column that has it already."""
    while name in frame.columns:
        name += "_"
    return name
