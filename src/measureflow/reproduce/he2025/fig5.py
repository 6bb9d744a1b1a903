"""Figure 5: concatenated against averaged heads, on number of classes and imbalance ratio."""

from measureflow.reproduce.he2025.heads import compared, drawn, verdict
from measureflow.reproduce.he2025.sweeps import CLASSES, IMBALANCE

TITLE = "He 2025, Figure 5: concatenated and averaged heads, on number of classes and imbalance ratio"
ROWS = {"classes": CLASSES, "imbalance": IMBALANCE}


def compute(size, cache):
    """A table for each row of the figure, both kinds of heads."""
    return compared(ROWS, size, cache)


def render(tables):
    """The figure."""
    return {"fig5": drawn({name: tables[name] for name in ROWS}, "concatenated and averaged heads")}


def findings(tables):
    """How far apart the two kinds are."""
    return verdict({name: tables[name] for name in ROWS})
