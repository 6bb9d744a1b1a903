r"""How near could anyone come? The test sets of the paper, SNR given, against draws from the exact posterior.

The least expected error of any answer is the posterior's own spread, which lies between two figures we can have. Above:
the error of the barycentre of the draws. Below: half the mean squared W2 between the truth and a draw, because W2 is
curved like a sphere, :math:`E\,W_2^2(\nu,\nu') \le 2\,E\,W_2^2(\nu,\beta)` for independent draws and any centre
:math:`\beta`. Draws that remember their start, the truth, only make both smaller. In the table "ours" and "peer" are
errors, and the ratio is peer over ours.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from posterior import Posterior, barycentre

from bench_mixture_quality import SNRS, TARGETS, error, row
from measureflow import FlowMixture
from measureflow.measures.priors import paper_test_prior
from measureflow.training.config import seeded

DRAWS, APART = 60, 60


def judged(mixtures, rng: np.random.Generator) -> list[float]:
    """Errors on one set: ours, the barycentre's, and half of a late draw's."""
    X, snr = mixtures.points[0].double().numpy(), float(mixtures.snr_db[0])
    found = FlowMixture(snr_db=snr).fit(X).mixing_measure_
    draws = Posterior(mixtures, 0, rng).draws(DRAWS, APART)
    late = [error(centers, masses, mixtures, 0) / 2 for centers, masses, _ in draws[DRAWS // 2 :: 5]]
    return [
        error(found.points, found.weights, mixtures, 0),
        error(barycentre(draws), None, mixtures, 0),
        float(np.mean(late)),
    ]


def level_rows(snr: float, sets: int) -> list[dict]:
    """The first sets of ``bench_mixture_quality`` at one SNR."""
    generator, rng = seeded(11, "quality", "paper", snr), np.random.default_rng(0)
    prior = paper_test_prior(snr)
    errors = np.array([judged(prior.sample(1, 1000, generator), rng) for _ in range(sets)])
    ours, above, below = errors.mean(0)
    where = f"paper's test sets, {snr:g} dB"
    told = f"W2 squared, mean of {sets} sets; the posterior is told K and the SNR"
    spread = f"error of the difference {(errors[:, 0] - errors[:, 1]).std() / sets**0.5:.2g}"
    return [
        row(f"{where}, ours against the barycentre", ours, above, None, f"{told}; {spread}"),
        row(f"{where}, ours against the least that is possible", ours, below, None, told),
        row(f"{where}, the barycentre against the promise", above, TARGETS[snr], None, told),
    ]


def rows(sets: int = 120) -> list[dict]:
    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for snr in SNRS:
            level = level_rows(snr, sets)
            print("\n".join(json.dumps(line, default=float) for line in level), file=sys.stderr, flush=True)
            out += level
    return out
