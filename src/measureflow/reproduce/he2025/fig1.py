"""Figure 1: four classes against minimum distance, dimension and number of points."""

from measureflow.reproduce.he2025.sweeps import DATA, DIMENSION, DISTANCE, draw, sentence, swept

TITLE = "He 2025, Figure 1: clustering against minimum distance, dimension and number of points"
ROWS = {"distance": DISTANCE, "dimension": DIMENSION, "data": DATA}


def compute(size, cache):
    """A table for each row of the figure."""
    return {name: swept(sweep, size, cache) for name, sweep in ROWS.items()}


def render(tables):
    """The figure, with Lloyd and the spectral start in the same panels."""
    return {"fig1": draw([tables[name] for name in ROWS], "four classes")}


def findings(tables):
    """The claim about the transition, and the numbers."""
    said = "The paper shows no numbers; it says that ARI and NMI rise with the minimum distance and with more points."
    mean = tables["distance"].groupby("value")["ARI"].mean()
    rise = f"Found: over the distances ARI goes from {mean.iloc[0]:.2f} to {mean.iloc[-1]:.2f}."
    return " ".join([said, rise, *[sentence(tables[name]) for name in ROWS]])
