"""Figure 2: against the number of classes, and against an imbalance of two of them."""

from measureflow.reproduce.he2025.sweeps import CLASSES, IMBALANCE, draw, sentence, swept

TITLE = "He 2025, Figure 2: clustering against number of classes and imbalance ratio"
ROWS = {"classes": CLASSES, "imbalance": IMBALANCE}


def compute(size, cache):
    """A table for each row of the figure."""
    return {name: swept(sweep, size, cache) for name, sweep in ROWS.items()}


def render(tables):
    """The figure, with Lloyd and the spectral start in the same panels."""
    return {"fig2": draw([tables[name] for name in ROWS], "number of classes, imbalance")}


def findings(tables):
    """The claim and the numbers."""
    said = "The paper says that more classes are harder and that imbalance matters little."
    return " ".join([said, *[sentence(tables[name]) for name in ROWS]])
