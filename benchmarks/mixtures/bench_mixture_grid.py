"""FlowMixture in every cell of dimension and SNR, one to twenty clusters, against everyone who does not know K.

Opponents are as they come and tuned; in each cell the best of them is the peer, chosen after the fact.
"""

from __future__ import annotations

import json
import sys
import warnings

import rivals
from bench_mixture_quality import SNRS, row, study
from measureflow.measures.priors import Fixed, MixturePrior, WholeBetween

DIMENSIONS = (1, 2, 4, 8, 16, 32, 64)
OPPONENTS = (*rivals.UNKNOWN_K, *rivals.TUNED)
MOST = 22  # clusters that opponents look for


def cell_prior(d: int, snr: float) -> MixturePrior:
    return MixturePrior(d=d, components=WholeBetween(1, 20), snr_db=Fixed(snr))


def cell_rows(d: int, snr: float, sets: int, beside: int) -> list[dict]:
    mean = study(cell_prior(d, snr), sets, 500, sets, beside, OPPONENTS, MOST, "grid", d, snr)
    where, note = f"d={d}, K=1..20, {snr:g} dB", "W2 squared, mean of {} sets of 500 rows"
    near = min(OPPONENTS, key=lambda name: mean[f"{name}: W2"])
    right = max(OPPONENTS, key=lambda name: mean[f"{name}: K"])
    share = f"share of {beside} sets with K exact; best peer {right}; of all {sets}, ours {mean['K']:.2f}"
    ours, peer = mean["W2 beside rivals"], mean[f"{near}: W2"]
    return [
        row(f"{where}, SNR given, against EM from the truth", mean["given"], mean["truth"], note=note.format(sets)),
        row(f"{where}, nothing told, against the best", ours, peer, note=note.format(beside) + f"; best peer {near}"),
        row(f"{where}, K against the best", mean["K beside rivals"], mean[f"{right}: K"], 1.0, share, True),
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
