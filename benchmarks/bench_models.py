"""The shipped models on the paper's test sets, SNR given: squared W2 against their targets.

The flow transformer's figures are those of ``measureflow reproduce zimin2025 targets --size small --out out``.
"""

from __future__ import annotations

from pathlib import Path

from bench_mixture_quality import TARGETS, row
from measureflow.models import load_pretrained
from measureflow.reproduce.zimin2025 import targets
from measureflow.training.objectives import evaluate_mixing

SETS, SEED = 500, 2026  # a seed that neither training nor its evaluations use


def rows() -> list[dict]:
    cache = Path("out") / "zimin2025" / "targets" / "cache" / "small"
    note = f"W2 squared, mean of {SETS} sets of 1000 points; the peer is the target"
    table = targets.compute("small", cache)["targets"].set_index("data")
    levels = {"15 dB": "High SNR", "10 dB": "Moderate SNR", "5 dB": "Low SNR"}
    out = [
        row(f"flow-transformer, {level}", table.loc[data, "w2"], table.loc[data, "target"], note=note)
        for level, data in levels.items()
    ]
    scores = evaluate_mixing(load_pretrained("any-dimension"), SETS, 1000, seed=SEED)
    return out + [
        row(f"any-dimension, {snr:g} dB", scores[f"w2_{snr:g}db"], target, note=note) for snr, target in TARGETS.items()
    ]
