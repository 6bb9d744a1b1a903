"""The dial: how many clusters there are at each signal-to-noise ratio, if they are Gaussian."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from measureflow.estimators.flow_mixture import FlowMixture
from measureflow.mixtures.misfit import unwarned
from measureflow.report.samples import evenly
from measureflow.tables.read import Table

MARKS_DB = tuple(np.arange(-4.0, 23.0, 2.0).tolist())


def dial_curve(table: Table, marks: Sequence[float] = MARKS_DB, most_rows: int = 400) -> list[tuple[float, int]]:
    """The number of clusters that `FlowMixture` finds at each mark, from a sample of the rows; none of a single row.

    >>> from measureflow.tables.read import read_table
    >>> table = read_table(b"x,y\\n" + b"".join(b"%d.%d,%d\\n" % (9 * (i % 2), i % 7, i % 5) for i in range(40)))
    >>> dial_curve(table, [0.0])
    [(0.0, 2)]
    """
    X = table.values[table.complete]
    X = X[evenly(len(X), most_rows)]
    if len(np.unique(X, axis=0)) < 2:
        return []
    with unwarned():
        return [(float(mark), FlowMixture(snr_db=mark).fit(X).n_clusters_) for mark in marks]
