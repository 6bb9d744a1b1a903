"""The 16-layer row of Zimin 2025 with two sets of weights: ``python tools/compare_row.py BEFORE AFTER``.

Each is a shipped model by name, or the folder of one, such as ``runs/NAME/model``. Both see the same test sets, so that
the difference has a paired error, which is far smaller than that of either mean. Scores are kept by the digest of the
weights where ``make papers`` looks for them.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch

from measureflow.measures import Empirical
from measureflow.measures.priors import Mixtures
from measureflow.models import load_pretrained
from measureflow.models.pretrained import load_model
from measureflow.reproduce.zimin2025.contestants import Learned
from measureflow.reproduce.zimin2025.measurements import LEVELS, measure
from measureflow.reproduce.zimin2025.targets import TARGETS


@dataclass(frozen=True)
class Weights(Learned):
    """A model that need not ship."""

    @property
    def available(self) -> bool:
        """It is loaded from its folder."""
        return True

    @torch.no_grad()
    def answers(self, mixtures: Mixtures, seed: int) -> list[Empirical]:
        """The output tokens of each set, told its true SNR."""
        shipped = self.weights in load_pretrained.available()
        model = load_pretrained(self.weights) if shipped else load_model(self.weights)
        return [Empirical(tokens) for tokens in model(mixtures.points, mixtures.snr_db)]


def compared(before: str, after: str, sets: int, n: int, scores: Path) -> pd.DataFrame:
    """For each level the mean W2 squared of both, the mean difference with its paired error, and the target."""
    scores.mkdir(parents=True, exist_ok=True)
    both = (Weights("before", before), Weights("after", after))
    table = measure(both, LEVELS, (n,), sets, scores)
    wide = table.pivot(index=["data", "set"], columns="column", values="w2")
    wide["difference"] = wide["after"] - wide["before"]
    levels = wide.groupby("data", sort=False)
    found = levels[["before", "after", "difference"]].mean()
    found["paired error"] = levels["difference"].sem()
    found["target"] = pd.Series(TARGETS)
    return found.loc[list(LEVELS)]


def main() -> None:
    """Print the table, and what of the targets is met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--sets", type=int, default=500)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--scores", type=Path, default=Path("out/papers/zimin2025/scores/small"))
    given = parser.parse_args()
    table = compared(given.before, given.after, given.sets, given.n, given.scores)
    print(table.to_string(float_format="{:.5f}".format))
    met = (table["after"] <= table["target"]).sum()
    print(f"{met} of {len(table)} targets met on {given.sets} sets of {given.n} points")


if __name__ == "__main__":
    main()
