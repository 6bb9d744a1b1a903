"""A clustering in words and numbers: how many, how sure, and what distinguishes each cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from measureflow.estimators.flow_mixture import FlowMixture
from measureflow.tables.read import Table

SURE = 0.9  # a row whose most probable cluster is less probable than this is called uncertain
NOTABLE = 0.25  # standard deviations from the mean of all rows that are worth a word
MOST_TRAITS = 3


@dataclass(frozen=True)
class Summary:
    """What there is to say about the clusters of a table."""

    table: Table
    mixture: FlowMixture
    labels: np.ndarray  # (n,), -1 for rows that were left out
    probabilities: np.ndarray  # (n,) of the cluster each row was given; NaN for rows that were left out
    warning: str | None = None

    @classmethod
    def of(cls, table: Table, mixture: FlowMixture, warning: str | None = None) -> Summary:
        """The summary of a mixture fitted to the table."""
        kept = mixture.labels_ >= 0
        probabilities = np.full(len(kept), np.nan)
        probabilities[kept] = mixture.predict_proba(table.values[kept]).max(1)
        return cls(table, mixture, mixture.labels_, probabilities, warning)

    @property
    def sizes(self) -> np.ndarray:
        """Rows in each cluster."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.mixture.n_clusters_)

    @property
    def dropped(self) -> int:
        """Rows left out because a value was missing."""
        return int((self.labels < 0).sum())

    @property
    def uncertain(self) -> float:
        """The share of rows whose cluster is less than 90 % probable."""
        return float(np.mean(self.probabilities[self.labels >= 0] < SURE))

    @property
    def differences(self) -> np.ndarray:
        """Centres as standard deviations of all rows from their mean, (K, d)."""
        X = self.table.values[self.labels >= 0]
        spread = X.std(0)
        return (self.mixture.cluster_centers_ - X.mean(0)) / np.where(spread > 0, spread, 1.0)

    def traits(self, k: int) -> list[str]:
        """The columns in which cluster k differs most from all rows, in words."""
        z, centre = self.differences[k], self.mixture.cluster_centers_[k]
        most = [j for j in np.argsort(-np.abs(z), kind="stable")[:MOST_TRAITS] if abs(z[j]) >= NOTABLE]
        return [f"{_degree(z[j])} {self.table.columns[j]} ({_number(centre[j])}, {z[j]:+.1f} sd)" for j in most]

    def headline(self) -> str:
        """The answer in one sentence."""
        K, n = self.mixture.n_clusters_, int(self.sizes.sum())
        return f"{count(K, 'cluster')} in {count(n, 'row')} of {count(len(self.table.columns), 'column')}"

    def certainty(self) -> str:
        """How sure it is, in one sentence."""
        K, share = self.mixture.n_clusters_, self.mixture.n_clusters_posterior_.get(self.mixture.n_clusters_, 1.0)
        told = (
            f"K = {K} was asked for" if self.mixture.n_clusters is not None else f"K = {K} has probability {share:.2f}"
        )
        return f"{told}; {self.uncertain:.1%} of the rows belong to their cluster with probability below {SURE:g}"

    def lines(self) -> list[str]:
        """One line for each cluster."""
        width = len(str(self.sizes.max()))
        return [
            f"cluster {k}: {size:{width}d} rows ({self.mixture.weights_[k]:.0%}): {', '.join(self.traits(k)) or PLAIN}"
            for k, size in enumerate(self.sizes)
        ]

    def labelled(self) -> pd.DataFrame:
        """The rows as they were read, each with its cluster and the probability of it."""
        frame = self.table.frame.copy()
        frame[_fresh("cluster", frame)] = self.labels
        frame[_fresh("probability", frame)] = np.round(self.probabilities, 6)
        return frame

    def centres(self) -> pd.DataFrame:
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
            "share_uncertain": self.uncertain,
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
            "warning": self.warning,
        }


PLAIN = "near the mean of all rows in every column"


def _degree(z: float) -> str:
    word = "high" if z > 0 else "low"
    return f"very {word}" if abs(z) > 1.5 else word


def _number(x: float) -> str:
    return f"{x:.3g}" if abs(x) < 1000 else f"{x:.0f}" if abs(x) < 1e6 else f"{x:.2e}"


def count(n: int, thing: str) -> str:
    """The number of things, in words that fit it."""
    return f"{n:,} {thing}" + "s" * (n != 1)


def _fresh(name: str, frame: pd.DataFrame) -> str:
    """The name, with an underscore more for every column that has it already."""
    while name in frame.columns:
        name += "_"
    return name
