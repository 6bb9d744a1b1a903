"""Figures 1, 2, 4 and 5: sweeps of one quantity each, with concatenated heads alone or with both kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from measureflow.reproduce.he2025.learned import heads
from measureflow.reproduce.he2025.learned.sweeps import (
    CLASSES,
    DATA,
    DIMENSION,
    DIMENSION_APART,
    DISTANCE,
    IMBALANCE,
    Sweep,
    draw,
    ends,
    near_lloyd,
    rises,
    sentence,
    sweep_budget,
    swept,
    tabulated,
)
from measureflow.reproduce.verdicts import Verdict, judged

Tables = dict[str, pd.DataFrame]
CONCATENATED, AVERAGED = {}, {"averaged_heads": True}


@dataclass(frozen=True)
class SweepFigure:
    """One figure: its sweeps by name, the kinds of heads, and what it judges and says of the tables."""

    name: str
    what: str
    heading: str
    rows: dict[str, Sweep]
    judge: Callable[[Tables], list[Verdict]]
    tell: Callable[[Tables], str]
    kinds: tuple[dict, ...] = (CONCATENATED,)

    @property
    def TITLE(self) -> str:
        """What it is, in one line."""
        return f"He 2025, Figure {self.name.removeprefix('fig')}: {self.what}"

    def budget(self, size: str) -> str:
        """Steps, seeds and values."""
        return sweep_budget(self.rows, size)

    def compute(self, size: str, cache: Path) -> Tables:
        """A table for each sweep, all kinds of heads in it; several figures share their trainings."""
        parts = {name: [swept(sweep, size, cache, **kind) for kind in self.kinds] for name, sweep in self.rows.items()}
        return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}

    def render(self, tables: Tables) -> dict:
        """A row for each sweep, with Lloyd and the spectral start in the same panels."""
        return {self.name: draw(list(self._in_order(tables).values()), self.heading)}

    def tabulate(self, tables: Tables) -> Tables:
        """The sweeps in numbers."""
        return tabulated(self._in_order(tables))

    def verdicts(self, tables: Tables) -> list[Verdict]:
        """The paper's claims."""
        return self.judge(self._in_order(tables))

    def findings(self, tables: Tables) -> str:
        """The claims and the numbers."""
        return self.tell(self._in_order(tables))

    def _in_order(self, tables: Tables) -> Tables:
        return {name: tables[name] for name in self.rows}


def judge_four_classes(tables: Tables) -> list[Verdict]:
    """What rises with what, and whether the dimension does it or the distance that grows with it."""
    grows = tables["dimension"].groupby("value")["attained"].mean()
    found = f"ARI {ends(tables['dimension'])}, the attained distance from {grows.iloc[0]:.1f} to {grows.iloc[-1]:.1f}"
    claims = {
        "distance": ("ARI rises with the minimum distance", ends(tables["distance"])),
        "dimension": ("ARI rises with the dimension, distance asked 5", found),
        "apart": ("ARI rises with the dimension at the same attained distance", ends(tables["apart"])),
        "data": ("ARI rises with the number of points", ends(tables["data"])),
    }
    said = [judged(claim, "rises", ours, rises(tables[name])) for name, (claim, ours) in claims.items()]
    return [*said, *near_lloyd(tables["distance"])]


def tell_four_classes(tables: Tables) -> str:
    """The claim about the transition, and the numbers."""
    said = "The paper shows no numbers; it says that ARI and NMI rise with the minimum distance and with more points."
    mean = tables["distance"].groupby("value")["ARI"].mean()
    rise = f"Found: over the distances ARI goes from {mean.iloc[0]:.2f} to {mean.iloc[-1]:.2f}."
    at_ten = tables["dimension"].query("value == 10")["attained"]
    why = (
        f"The distance asked for is a constraint: at 5 and dimension 10 the attained one is {at_ten.mean():.1f}, and "
        "it grows with the dimension; the third row holds it fixed."
    )
    return " ".join([said, rise, *([why] if len(at_ten) else []), *map(sentence, tables.values())])


def judge_classes(tables: Tables) -> list[Verdict]:
    """More classes are harder, imbalance matters little."""
    classes, imbalance = tables["classes"], tables["imbalance"].groupby("value")["ARI"].mean()
    harder = rises(classes.assign(value=-classes["value"]).sort_values("value"))
    little = imbalance.max() - imbalance.min()
    return [
        judged("more classes are harder", "ARI falls", ends(classes), harder),
        judged("imbalance matters little", "flat", f"ARI within {little:.2f} over the ratios", bool(little < 0.1)),
        *near_lloyd(classes),
    ]


def tell_classes(tables: Tables) -> str:
    """The claim and the numbers."""
    said = "The paper says that more classes are harder and that imbalance matters little."
    return " ".join([said, *map(sentence, tables.values())])


def compared(name: str, on: str, rows: dict[str, Sweep]) -> SweepFigure:
    """A figure of appendix C: the sweeps of Figures 1 and 2 with both kinds of heads."""
    what = f"concatenated and averaged heads, on {on}"
    kinds = (CONCATENATED, AVERAGED)
    return SweepFigure(name, what, "concatenated and averaged heads", rows, heads.judgements, heads.in_words, kinds)


BY_NAME = {
    "fig1": SweepFigure(
        "fig1", "clustering against minimum distance, dimension and number of points", "four classes",
        {"distance": DISTANCE, "dimension": DIMENSION, "apart": DIMENSION_APART, "data": DATA},
        judge_four_classes, tell_four_classes,
    ),
    "fig2": SweepFigure(
        "fig2", "clustering against number of classes and imbalance ratio", "number of classes, imbalance",
        {"classes": CLASSES, "imbalance": IMBALANCE}, judge_classes, tell_classes,
    ),
    "fig4": compared("fig4", "minimum distance and number of points", {"distance": DISTANCE, "data": DATA}),
    "fig5": compared("fig5", "number of classes and imbalance ratio", {"classes": CLASSES, "imbalance": IMBALANCE}),
}  # fmt: skip
