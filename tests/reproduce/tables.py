"""Tables of a run read back, and verdicts on data that a test has changed."""

import warnings
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd

FATES = ("settled", "finite time", "infinite time")
GROUPS = 16  # a column with more values than this names no groups
# What data raise that no run makes; pandas 2.1 asserts where an empty table is shifted.
ODD = (ArithmeticError, AssertionError, AttributeError, LookupError, ValueError, TypeError, pd.errors.IndexingError)


def read(folder: Path) -> dict[str, pd.DataFrame]:
    """All tables of a run by name."""
    return {path.stem: pd.read_csv(path) for path in sorted(folder.glob("*.csv"))}


def words(module, tables: dict[str, pd.DataFrame]) -> dict[str, str]:
    """The verdict on each claim."""
    return {verdict.claim: verdict.verdict for verdict in module.verdicts(tables)}


def the(claims: dict[str, str], part: str) -> str:
    """The verdict on the one claim whose text holds ``part``."""
    (word,) = {word for claim, word in claims.items() if part in claim}
    return word


def perturbed(tables: dict[str, pd.DataFrame]) -> Iterator[dict[str, pd.DataFrame]]:
    """The same tables with one column changed: numbers scaled, turned round or made alike, words all made one.

    First all its rows, also to the numbers of another column; then those alone that share a word of another column, as
    the runs of one panel do.
    """
    for name, table in tables.items():
        for column in table:
            for values in _others(table[column]):
                yield tables | {name: table.assign(**{column: values})}
    for name, table in tables.items():
        for column, other in permutations(table.select_dtypes("number"), 2):
            yield tables | {name: table.assign(**{column: table[other]})}
    for name, table in sorted(tables.items(), key=lambda item: len(item[1])):
        for by, column in permutations(table, 2):
            words = not pd.api.types.is_numeric_dtype(table[by]) and table[by].nunique() <= GROUPS
            for value in table[by].unique() if words else ():
                here = table[by] == value
                for values in _others(table.loc[here, column]):
                    changed = table[column].astype(object)
                    changed[here] = values
                    yield tables | {name: table.assign(**{column: changed.infer_objects()})}


def _others(column: pd.Series) -> Iterator:
    if column.dtype == bool:
        yield from (~column, True, False)
    elif pd.api.types.is_numeric_dtype(column):
        rank, sign = 1.0 + np.arange(len(column)), -1.0 if (column < 0).any() else 1.0
        yield from (1000 * column, 0.001 * column, 1 / column.replace(0, 1), column[::-1].to_numpy(), rank, rank[::-1])
        yield from (column.max(), column.min(), 0.5, sign * column)  # a sign or a zero only where there are some
    else:
        yield from [*column.unique()[:8], *FATES, np.resize(FATES, len(column))]  # all alike, or some of each


def unmoved(module, tables: dict[str, pd.DataFrame]) -> list[str]:
    """Claims whose verdict is the same whatever the data are; those that are "open" throughout claim nothing."""
    first = module.verdicts(tables)
    seen = [{verdict.verdict} for verdict in first]
    for others in perturbed(tables):
        try:
            with warnings.catch_warnings(action="ignore"):
                now = module.verdicts(others)
        except ODD:  # data that no run makes
            continue
        if len(now) == len(first):
            for words, verdict in zip(seen, now, strict=True):
                words.add(verdict.verdict)
        if all(len(words) > 1 or words == {"open"} for words in seen):
            break
    return [verdict.claim for verdict, words in zip(first, seen, strict=True) if len(words) == 1 and words != {"open"}]
