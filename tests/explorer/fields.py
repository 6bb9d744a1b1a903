"""Attention on a few points and on a covariance, as the library computes it: ``python tests/explorer/fields.py``.

The page has these formulas in TypeScript. It is held to the cases that this writes to tests/explorer/fields.json.
"""

import json
from pathlib import Path

import numpy as np
import torch

from measureflow.attention import DotProduct, Field, NegativeSquaredDistance, Relative
from measureflow.flows import entropy, interaction_energy
from measureflow.flows.state import velocity
from measureflow.measures import Empirical, Gaussian
from measureflow.simulate import ATTENTIONS, field_named

FILE = Path(__file__).with_name("fields.json")


def answers(case: dict) -> dict:
    """What the library finds for the inputs of a case; ``moved`` is None where no closed form exists."""
    Q, K, V, x, S = (torch.tensor(case[name], dtype=torch.float64) for name in ("Q", "K", "V", "points", "start"))
    field = field_named(case["attention"], 2, Q=Q, K=K, V=V, epsilon=case["epsilon"])
    field = Relative(field) if case["relative"] else field
    score = (NegativeSquaredDistance if case["attention"] == "l2" else DotProduct)(Q, K)
    mu, moved = Empirical(x), two_steps(field, S)
    return {
        "velocities": field(mu).tolist(),
        "entropy": float(entropy(mu)),
        "log_energy": float(interaction_energy(mu, lambda a, b: score(a, b).exp()).log()),
        "covariance": mu.covariance.tolist(),
        "moved": None if moved is None else moved.tolist(),
    }


def two_steps(field: Field, S: torch.Tensor) -> torch.Tensor | None:
    """The covariance of a centred Gaussian after the page's first two steps: midpoints, shorter where it moves fast.

    None where the Gaussian does not stay one.
    """
    rate = lambda S: velocity(Gaussian.trusted(torch.zeros(2, dtype=S.dtype), S), field)[1]  # noqa: E731
    for _ in range(2):
        try:
            slope = rate(S)
        except ValueError:
            return None
        h = min(0.5, 0.06 * float(S.abs().max() / slope.abs().max()))
        S = S + h * rate(S + h / 2 * slope)
    return S


def inputs() -> list[dict]:
    """Every attention, plain and relative, with matrices of no symmetry."""
    rng = np.random.default_rng(0)
    drawn = lambda *shape: rng.normal(size=shape).round(3).tolist()  # noqa: E731
    return [
        {
            "attention": attention,
            "epsilon": 0.8,
            "relative": relative,
            **{name: (np.eye(2) + 0.4 * np.array(drawn(2, 2))).round(3).tolist() for name in "QKV"},
            "points": drawn(12, 2),
            "start": [[0.9, 0.2], [0.2, 0.5]],
        }
        for attention in ATTENTIONS
        for relative in (False, True)
    ]


if __name__ == "__main__":
    lines = [json.dumps(case | answers(case)) for case in inputs()]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
