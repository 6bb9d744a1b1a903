"""Concatenated against averaged heads on the sweeps of section 4: what Figures 4 and 5 share."""

import pandas as pd

from measureflow.reproduce.he2025.sweeps import Sweep, draw, sentence, swept


def compared(rows: dict[str, Sweep], size: str, cache) -> dict[str, pd.DataFrame]:
    """A table for each sweep, both kinds of heads in it; the concatenated ones are those of Figures 1 and 2."""
    both = {
        name: [swept(sweep, size, cache, **model) for model in ({}, {"averaged_heads": True})]
        for name, sweep in rows.items()
    }
    return {name: pd.concat(tables, ignore_index=True) for name, tables in both.items()}


def drawn(tables: dict[str, pd.DataFrame], title: str):
    """Both kinds in the same panels."""
    return draw(list(tables.values()), title)


def verdict(tables: dict[str, pd.DataFrame]) -> str:
    """The claim of appendix C, and how far apart the two kinds are."""
    everything = pd.concat(tables.values())
    mean = everything.groupby(["sweep", "value", "heads"])["ARI"].mean().unstack("heads")
    apart = (mean["averaged"] - mean["concatenated"]).abs()
    said = "The paper observes a similar trend of concatenated and averaged heads."
    found = f"Found: their mean ARI differs by {apart.mean():.3f} on average over settings, at most {apart.max():.3f}."
    parts = [sentence(table[table["heads"] == "averaged"]) for table in tables.values()]
    return " ".join([said, found, "With averaged heads:", *parts])
