"""FlowMixture in every cell of dimension and SNR, one to twenty clusters, against EM."""

from __future__ import annotations

import json
import sys
import warnings

from bench_mixture_quality import SNRS, row, study
from measureflow.measures.priors import Fixed, MixturePrior, WholeBetween

DIMENSIONS = (1, 2, 4, 8, 16, 32, 64)


def cell_rows(d: int, snr: float, sets: int) -> list[dict]:
    prior = MixturePrior(d=d, components=WholeBetween(1, 20), snr_db=Fixed(snr))
    mean = study(prior, sets, 500, sets, 24, "grid", d, snr)
    where, note = f"d={d}, K=1..20, {snr:g} dB", f"W2 squared, mean of {sets} sets of 500 rows"
    share = f"share of {sets} sets with K exact"
    return [
        row(f"{where}, SNR given, against EM from the truth", mean["given"], mean["truth"], note=note),
        row(f"{where}, nothing told, against EM + BIC", mean["unknown"], mean["rival"], note=note),
        row(f"{where}, K against EM + BIC", mean["K"], mean["rival K"], 1.0, share, True),
    ]


def rows(sets: int = 10) -> list[dict]:
    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for d in DIMENSIONS:
            for snr in SNRS:
                cell = cell_rows(d, snr, sets)
                print("\n".join(json.dumps(line, default=float) for line in cell), file=sys.stderr, flush=True)
                out += cell
    return out
