"""Scores of contestants on test sets, kept on disk one by one so that an interrupted run goes on."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd

from measureflow.measures.priors import paper_test_prior
from measureflow.models.checkpoints import write_atomically
from measureflow.reproduce.progress import counted
from measureflow.reproduce.zimin2025.contestants import Classical, Learned, score_all
from measureflow.training.config import seeded

LEVELS = {"High SNR": 15.0, "Moderate SNR": 10.0, "Low SNR": 5.0}
SETS = {"tiny": 2, "small": 60, "paper": 500}
SLOW_SETS = {"tiny": 2, "small": 10, "paper": 500}  # for contestants that take seconds a set
POINTS = {"tiny": 60, "small": 1000, "paper": 1000}
SEED = 2025  # never used in training, which draws from the stream "train"
CHUNK = 10  # sets scored between two writes
CLEAR = 2.0  # standard errors of a paired difference


def measure(
    contestants, levels: dict[str, float], sizes: tuple[int, ...], sets: int, cache: Path, slow_sets: int | None = None
) -> pd.DataFrame:
    """One row for each contestant, level, size and set: its W2 squared. Contestants without weights are left out.

    Slow ones see the first ``slow_sets`` of the sets alone.
    """
    jobs = [(c, label, n) for c in contestants if c.available for label in levels for n in sizes]
    rows = []
    for contestant, label, n in counted(jobs, "contestants"):
        count = min(sets, slow_sets) if contestant.slow and slow_sets is not None else sets
        values = _scores(contestant, levels[label], n, count, cache)
        rows += [(contestant.name, label, levels[label], n, i, w2) for i, w2 in enumerate(values)]
    return pd.DataFrame(rows, columns=["column", "data", "snr_db", "n", "set", "w2"])


def _scores(contestant: Classical | Learned, snr_db: float, n: int, sets: int, cache: Path) -> np.ndarray:
    """The scores of one contestant; those of others that the same pass over the sets gives are kept too."""
    place = lambda key: cache / f"{''.join(c if c.isalnum() else '-' for c in key)}_{snr_db:g}db_n{n}.npy"  # noqa: E731
    prior = paper_test_prior(snr_db)
    while len(done := _kept(place(contestant.key))) < sets:
        start = len(done)
        mixtures = prior.sample(min(CHUNK, sets - start), n, seeded(SEED, "tables", snr_db, n, start))
        for key, new in score_all(contestant, mixtures, seed=start).items():
            before = _kept(place(key))
            if len(before) == start:  # else they are there already
                _keep(place(key), np.concatenate([before, new]))
    return done[:sets]


def _kept(path: Path) -> np.ndarray:
    return np.load(path, allow_pickle=False) if path.exists() else np.empty(0)


def _keep(path: Path, values: np.ndarray) -> None:
    content = BytesIO()
    np.save(content, values)
    write_atomically(path, content.getvalue())


def shared(cache: Path) -> Path:
    """The folder in which the artefacts of this paper keep their scores: they share most columns."""
    home = cache.parents[2] / "scores" / cache.name
    home.mkdir(parents=True, exist_ok=True)
    return home


def summary(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Means of W2 squared and of its logarithm over the sets, with their standard errors."""
    groups = table.assign(log_w2=np.log(table["w2"].clip(lower=1e-300))).groupby(by, sort=False)
    return groups.agg(
        w2=("w2", "mean"), w2_error=("w2", "sem"), log_w2=("log_w2", "mean"), log_w2_error=("log_w2", "sem"),
        sets=("w2", "size"),
    ).reset_index()  # fmt: skip
