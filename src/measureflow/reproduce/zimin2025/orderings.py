"""Does one column of a table lie below another, as printed? Judged set by set, with the error of the difference."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from measureflow.reproduce.verdicts import Verdict, judged, unsettled
from measureflow.reproduce.zimin2025.contestants import BUDGETS, Classical, Learned
from measureflow.reproduce.zimin2025.measurements import CLEAR


def paired(
    scores: pd.DataFrame, cells: pd.DataFrame, columns: tuple[Classical | Learned, ...], logarithm: bool
) -> pd.DataFrame:
    """One row for each level, size and pair of columns that the paper prints in a strict order.

    ``word`` is "holds" or "fails" where the mean difference over the sets is `CLEAR` of its standard errors, "close"
    where it is not. ``equal`` says whether the two were trained alike, as models of other budgets are no fair pair.
    """
    values = scores.assign(value=np.log(scores["w2"].clip(lower=1e-300)) if logarithm else scores["w2"])
    printed = cells.dropna(subset=["ours", "printed"])
    known = {column.name: column for column in columns}
    rows = []
    for (label, n), here in printed.groupby(["data", "n"], sort=False):
        sets = values[(values["data"] == label) & (values["n"] == n)].pivot(
            index="set", columns="column", values="value"
        )
        order = here[here["column"].isin(known)].sort_values("printed")
        for low, high in combinations(order.itertuples(), 2):
            if low.printed < high.printed:
                gap = sets[high.column] - sets[low.column]
                rows.append({
                    "data": label, "n": n, "low": low.column, "high": high.column, "gap": gap.mean(),
                    "error": gap.sem(), "word": _word(gap), "equal": _alike(known[low.column], known[high.column]),
                })  # fmt: skip
    table = pd.DataFrame(rows, columns=["data", "n", "low", "high", "gap", "error", "word", "equal"])
    return table.astype({"equal": bool})  # without rows it would not be


def _word(gap: pd.Series) -> str:
    if abs(gap.mean()) <= CLEAR * gap.sem():
        return "close"
    return "holds" if gap.mean() > 0 else "fails"


def _alike(a: Classical | Learned, b: Classical | Learned) -> bool:
    """Whether two columns may be compared: one needs no training, or both have the same weights or budget."""
    if isinstance(a, Classical) or isinstance(b, Classical) or a.weights == b.weights:
        return True
    return BUDGETS.get(a.weights) == BUDGETS.get(b.weights)


def verdicts(pairs: pd.DataFrame) -> list[Verdict]:
    """The fair pairs are judged; those of models with other budgets are open, their counts told."""
    said = []
    fair, other = pairs[pairs["equal"]], pairs[~pairs["equal"]]
    if len(fair):
        claim = "the order of the columns, pairs trained alike or not trained"
        holds = (fair["word"] != "fails").all() and (fair["word"] == "holds").any()
        said.append(judged(claim, f"{len(fair)} orderings", counts(fair), bool(holds)))
    if len(other):
        claim = "the order of the columns, models of other budgets or starts"
        said.append(unsettled(claim, f"{len(other)} orderings", counts(other)))
    return said


def counts(pairs: pd.DataFrame) -> str:
    """How many hold, fail, or are too close to tell; which fail."""
    number = pairs["word"].value_counts()
    words = f"{number.get('holds', 0)} hold, {number.get('fails', 0)} fail, {number.get('close', 0)} too close to tell"
    failed = [f"{row.low} below {row.high} ({row.data})" for row in pairs[pairs["word"] == "fails"].itertuples()]
    return f"{words}; not: {', '.join(failed)}" if failed else words


def in_words(pairs: pd.DataFrame) -> str:
    """The orderings as a sentence."""
    fair, other = pairs[pairs["equal"]], pairs[~pairs["equal"]]
    text = f"Of {len(fair)} orderings that the paper prints between columns that may be compared, {counts(fair)}."
    if len(other):
        text += (
            f" {len(other)} more are between models of other budgets or starts, which these weights cannot judge: "
            f"{counts(other)}."
        )
    return text
