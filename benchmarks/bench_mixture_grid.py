"""FlowMixture in every cell of dimension and SNR, one to twenty clusters, against EM."""

from __future__ import annotations

import json
import sys
import warnings

from bench_mixture_quality import SNRS, row, study
from measureflow.measures.priors import Fixed, MixturePrior, WholeBetween

DIMENSIONS = (1, 2, 4, 8, 16, 32, 64)


def cell_rows(d: int, snr: float, sets: int, beside: int) -> list[dict]:
    prior = MixturePrior(d=d, components=WholeBetween(1, 20), snr_db=Fixed(snr))
    mean = study(prior, sets, 500, sets, beside, 22, "grid", d, snr)
    where, note = f"d={d}, K=1..20, {snr:g} dB", "W2 squared, mean of {} sets of 500 rows"
    share = f"share of {beside} sets with K exact; of all {sets}, ours {mean['K']:.2f}"
    ours, rival = mean["ours beside rival"], mean["rival"]
    return [
        row(f"{where}, SNR given, against EM from the truth", mean["given"], mean["truth"], note=note.format(sets)),
        row(f"{where}, nothing told, against EM + BIC", ours, rival, note=note.format(beside)),
        row(f"{where}, K against EM + BIC", mean["K beside rival"], mean["rival K"], 1.0, share, True),
    ]


def rows(sets: int = 20, beside: int = 4) -> list[dict]:
    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for d in DIMENSIONS:
            for snr in SNRS:
                cell = cell_rows(d, snr, sets, beside)
                print("\n".join(json.dumps(line, default=float) for line in cell), file=sys.stderr, flush=True)
                out += cell
    return out
