"""Concatenated against averaged heads on the sweeps of section 4: what Figures 4 and 5 share."""

import pandas as pd

from measureflow.reproduce.he2025.learned.sweeps import sentence
from measureflow.reproduce.verdicts import Verdict, judged


def means(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Mean ARI by sweep and value, a column for each kind of heads."""
    return pd.concat(tables.values()).groupby(["sweep", "value", "heads"])["ARI"].mean().unstack("heads")


def judgements(tables: dict[str, pd.DataFrame]) -> list[Verdict]:
    """A similar trend: both kinds rank the values of a sweep alike, and differ by at most 0.1."""
    said = []
    for sweep, mean in means(tables).groupby("sweep", sort=False):
        apart = (mean["averaged"] - mean["concatenated"]).abs().max()
        alike = mean["averaged"].corr(mean["concatenated"], method="spearman") if len(mean) > 1 else 1.0
        found = f"rank correlation {alike:.2f}, ARI apart by at most {apart:.2f}"
        said.append(
            judged(f"{sweep}: both kinds of heads alike", "a similar trend", found, bool(alike > 0 and apart <= 0.1))
        )
    return said


def in_words(tables: dict[str, pd.DataFrame]) -> str:
    """The claim of appendix C, and how far apart the two kinds are."""
    mean = means(tables)
    apart = (mean["averaged"] - mean["concatenated"]).abs()
    said = "The paper observes a similar trend of concatenated and averaged heads."
    found = f"Found: their mean ARI differs by {apart.mean():.3f} on average over settings, at most {apart.max():.3f}."
    parts = [sentence(table[table["heads"] == "averaged"]) for table in tables.values()]
    return " ".join([said, found, "With averaged heads:", *parts])
