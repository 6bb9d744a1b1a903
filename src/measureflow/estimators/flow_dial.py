"""The trajectory of the first flow of `FlowMixture`, and clusters at other signal-to-noise ratios."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from measureflow.attention.threads import one_thread
from measureflow.estimators.flow_settings import FlowSettings
from measureflow.flows import Trajectory
from measureflow.measures.decibels import from_decibels
from measureflow.mixtures.clusters import GaussianClusters
from measureflow.mixtures.frame import Frame
from measureflow.mixtures.proposals import flow
from measureflow.mixtures.rows import Rows
from measureflow.mixtures.search import Flowed
from measureflow.mixtures.token_tree import TokenTree

MARKS_DB = np.arange(-4.0, 31.0, 2.0)  # ratios at which clusters are counted, when `cut` is first called
DIAL_ROWS = 400


@dataclass(frozen=True)
class Cut:
    """A clustering at one signal-to-noise ratio."""

    labels: np.ndarray  # of the rows that the flow saw
    centers: np.ndarray
    weights: np.ndarray

    @property
    def n_clusters(self) -> int:
        """How many clusters there are."""
        return len(self.weights)


class FlowDial(Trajectory):
    """The tokens at every layer, in units of the data; ``cut(snr_db)`` flows the same rows at another ratio."""

    def __init__(self, states: list[Tensor], flowed: Flowed, frame: Frame, model: FlowSettings):
        times = [torch.as_tensor(t).reshape(-1)[0] for t in flowed.path.times]
        super().__init__(states, times)
        self.snr_db = flowed.assumed_snr_db
        self.seen, self.tree = flowed.seen, flowed.tree  # the rows that flowed, and the tree of their last tokens
        self._frame, self._model, self._counts = frame, model, None

    @classmethod
    def of(cls, flowed: Flowed | None, clusters: GaussianClusters, model: FlowSettings) -> FlowDial:
        """The flow by which clusters were found."""
        if flowed is None:
            return cls.still(torch.as_tensor(clusters.centers))
        outward = [torch.as_tensor(clusters.frame.outward(state[0].numpy())) for state in flowed.path]
        return cls(outward, flowed, clusters.frame, model)

    @classmethod
    def still(cls, points: Tensor) -> FlowDial:
        """The trajectory of rows that do not vary: it has one state."""
        dial = cls.__new__(cls)
        Trajectory.__init__(dial, [points], [torch.tensor(0.0)])
        dial.snr_db, dial.seen, dial.tree = float("inf"), None, None
        return dial

    @one_thread()
    def cut(self, snr_db: float) -> Cut:
        """The clusters at this signal-to-noise ratio: fewer the lower it is, never more."""
        if not np.isfinite(snr_db):
            raise ValueError(f"snr_db must be finite, got {snr_db}")
        if self.seen is None:
            points = self.states[0].numpy()
            return Cut(np.arange(len(points)), points, np.full(len(points), 1 / len(points)))
        K = self._n_clusters(snr_db)
        tree = self._flowed(self.seen, snr_db)
        labels = tree.labels(K)
        centers, weights = tree.atoms(K)
        order = np.argsort(-weights, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return Cut(rank[labels], self._frame.outward(centers[order]), weights[order])

    def _n_clusters(self, snr_db: float) -> int:
        """K at a ratio: the largest count of all marks up to it, so that K never falls as the ratio rises."""
        if self._counts is None:
            few = self.seen.sample(DIAL_ROWS)
            noises = few.variance / (1 + from_decibels(MARKS_DB))
            trees = (self._flowed(few, mark) for mark in MARKS_DB)
            self._counts = [tree.n_by_bic(noise, few.mass) for tree, noise in zip(trees, noises, strict=True)]
        below = [K for K, mark in zip(self._counts, MARKS_DB, strict=True) if mark <= snr_db]
        return max(below, default=1)

    def _flowed(self, rows: Rows, snr_db: float) -> TokenTree:
        path, _ = flow(self._model, rows, snr_db, exact=True)
        return TokenTree(path[-1][0].numpy(), rows.weights / rows.mass)
