"""Tables of a run read back, and verdicts on data that a test has changed."""

from pathlib import Path

import pandas as pd


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
