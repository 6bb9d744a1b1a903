"""Figure 4: concatenated against averaged heads, on minimum distance and number of points."""

from measureflow.reproduce.he2025.heads import compared, drawn, verdict
from measureflow.reproduce.he2025.sweeps import DATA, DISTANCE

TITLE = "He 2025, Figure 4: concatenated and averaged heads, on minimum distance and number of points"
ROWS = {"distance": DISTANCE, "data": DATA}


def compute(size, cache):
    """A table for each row of the figure, both kinds of heads."""
    return compared(ROWS, size, cache)


def render(tables):
    """The figure."""
    return {"fig4": drawn({name: tables[name] for name in ROWS}, "concatenated and averaged heads")}


def findings(tables):
    """How far apart the two kinds are."""
    return verdict({name: tables[name] for name in ROWS})
