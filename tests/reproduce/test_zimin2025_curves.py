"""The curves of Zimin 2025 are held to the sides of k-means that its tables print."""

import numpy as np
import pandas as pd
import pytest

from measureflow.reproduce.zimin2025 import curves
from reproduce.tables import the, words

NOISE = np.random.default_rng(0).normal(size=40)


def test_curves_are_held_to_the_sides_that_the_table_prints():
    """Uniform -> Unit is printed above k-means at 15 and 10 dB, below at 5 dB: to lie below throughout is to fail."""
    fig9 = curves.BY_NAME["fig9"]
    levels = (5.0, 7.0, 15.0)

    def gaps(signs):
        rows = [(c.name, snr, sign, 0.1) for c in fig9.columns[1:] for snr, sign in zip(levels, signs, strict=True)]
        return pd.DataFrame(rows, columns=["column", "snr_db", "gap", "error"])

    sides = {signs: words(fig9, {"gaps": gaps(signs)}) for signs in [(-1, 1, 1), (-1, -1, -1), (-1, 0.1, 0.1)]}
    assert [the(said, "Uniform -> Unit and") for said in sides.values()] == ["holds", "fails", "holds"]
    assert [the(said, "Unit -> Unit and") for said in sides.values()] == ["fails", "holds", "holds"]
    said = fig9.verdicts({"gaps": gaps((-1, 0.1, 1))})
    assert said[1].printed == "below at 5 dB; above at 10, 15 dB"
    assert said[1].ours == "below at 5 dB; above at 15 dB; too close to tell at 7 dB"


def test_gaps_are_of_the_same_sets():
    """The sets vary by far more than the columns differ, and a slow column has fewer of them."""
    rows = [(name, 5.0, i, 10 * NOISE[i] + mean) for name, mean in (("a", 2.0), ("b", 1.0)) for i in range(40)]
    scores = pd.DataFrame(
        rows + [("c", 5.0, i, 10 * NOISE[i] + 3) for i in range(5)], columns=["column", "snr_db", "set", "w2"]
    )
    gaps = curves.paired_gaps(scores, ["a", "b", "c", "no weights"]).set_index("column")
    assert gaps["gap"].to_dict() == pytest.approx({"b": -1.0, "c": 1.0})
    assert (gaps["error"] < 1e-12).all()  # of rounding
