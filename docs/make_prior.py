"""Write docs/prior.md: the catalogue of what the any-shape flow learns from, a picture of each member.

``python docs/make_prior.py`` draws docs/images/prior-*.png and the page; words are the docstrings of the members.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from measureflow.measures.shapes import COLUMN_EFFECTS, PLACEMENTS, SCENES, SHAPES, ShapePrior
from measureflow.measures.shapes.catalogue import SEVERAL, draw_shape
from measureflow.measures.shapes.columns import BUSIER, BUSY
from measureflow.measures.shapes.placement import moved_apart
from measureflow.measures.shapes.prior import (
    FEW,
    IN_SCENE,
    MEASURED_AGAIN,
    MOST_WANDERING,
    ROUND_SHARE,
    WANDERING,
    WIDE,
)
from measureflow.measures.shapes.round_mixtures import round_mixture
from measureflow.measures.shapes.scenes import OF_FEW, wandering

HERE = Path(__file__).parent
ROWS = 350


def rng(*names: str) -> np.random.Generator:
    """A generator for each picture, so that one can be drawn again alone."""
    return np.random.default_rng(list(" ".join(names).encode()))


def shape(member) -> tuple[np.ndarray, np.ndarray]:
    """One cluster of a shape."""
    return draw_shape(rng("shape", member.__name__), member, ROWS, 2), np.zeros(ROWS, int)


def placement(member) -> tuple[np.ndarray, np.ndarray]:
    """Seven round clusters placed by a rule."""
    random = rng("placement", member.__name__)
    labels = random.integers(7, size=ROWS)
    points = random.standard_normal((ROWS, 2))
    return points + 1.3 * moved_apart(points, labels, member(random, 7, 2), 0.02)[labels], labels


def scene(member) -> tuple[np.ndarray, np.ndarray]:
    """A scene of three clusters."""
    labels = rng("labels").integers(3, size=ROWS)
    return member(rng("scene", member.__name__), labels, 3, 2), labels


def effect(member) -> tuple[np.ndarray, np.ndarray]:
    """Three round clusters in six columns after the effect: of these, two that it changed."""
    random = rng("effect", member.__name__)
    labels = random.integers(3, size=ROWS)
    centres = 3 * np.stack([np.cos(np.arange(6)), np.sin(np.arange(6)), np.cos(2 + np.arange(6))])
    before = centres[labels] + random.standard_normal((ROWS, 6))
    after = member(random, before.copy(), labels)
    changed = np.argsort(-np.abs(after - before).mean(0), kind="stable")[:2]
    return after[:, changed], labels


def whole(number: int) -> tuple[np.ndarray, np.ndarray]:
    """A set as the flow sees it."""
    points, labels, _ = ShapePrior().draw(ROWS, 2, rng("whole", str(number)))
    return points, labels


def round_one(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussians in one round noise."""
    return round_mixture(rng("round", str(number)), ROWS, 2)


def grid(name: str, panels: dict[str, tuple[np.ndarray, np.ndarray]], columns: int = 6) -> str:
    """One picture of many small panels."""
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(2 * columns, 2.15 * rows), squeeze=False, layout="constrained")
    for ax in axes.flat:
        ax.axis("off")
    for ax, (title, (X, labels)) in zip(axes.flat, panels.items(), strict=False):
        colours = np.where(labels[:, None] < 0, [[0.6, 0.6, 0.6, 1.0]], plt.get_cmap("tab20")(labels % 20))
        ax.scatter(*X.T, c=colours, s=4, linewidths=0)
        low, high = np.quantile(X, [0.005, 0.995], axis=0)
        reach = np.maximum(high - low, 1e-9) * 0.15
        ax.set_xlim(low[0] - reach[0], high[0] + reach[0])
        ax.set_ylim(low[1] - reach[1], high[1] + reach[1])
        ax.set_title(title, fontsize=10)
    path = HERE / "images" / f"prior-{name}.png"
    figure.savefig(path, dpi=80)
    plt.close(figure)
    return f"![{name}](images/{path.name})"


def listed(members: dict) -> str:
    """A table of members: name, share, docstring."""
    total = sum(members.values())
    lines = [f"| {m.__name__.replace('_', ' ')} | {100 * w / total:.0f} % | {_first(m)} |" for m, w in members.items()]
    return "\n".join(["| name | how often | what it is |", "|---|---|---|", *lines])


def _first(member) -> str:
    return " ".join((member.__doc__ or "").split("\n\n")[0].split())


def main() -> None:
    """Draw the pictures and write the page."""
    effects = "\n".join(
        f"| {m.__name__.replace('_', ' ')} | {100 * chance:.0f} % | {_first(m)} |"
        for m, chance in COLUMN_EFFECTS.items()
    )
    named = lambda make, members: {m.__name__.replace("_", " "): make(m) for m in members}  # noqa: E731
    page = f"""# What the any-shape flow learns from

Every training set is drawn from `measureflow.measures.shapes`: a number of clusters, their sizes and shapes, where they
lie and how far they overlap, then what happens to the columns of real tables, then rows that belong to nothing. The
overlap is drawn first and met by moving the centres. `python docs/make_prior.py` draws this page.

{grid("whole", {f"{i}": whole(i) for i in range(24)})}

## Shapes of one cluster

{grid("shapes", named(shape, SHAPES))}

{listed(SHAPES)}

Six sets in ten have one shape for all clusters; half of them are stretched to ellipsoids, shared or each its own. A
cluster that is alone has any of the shapes; {", ".join(m.__name__ for m in SEVERAL)} are the ones most easily taken for
several clusters, so each of them is three times as frequent as each of the others.

## Where clusters lie

{grid("placements", named(placement, PLACEMENTS), 4)}

{listed(PLACEMENTS)}

## Scenes

A scene is what clusters placed one by one could not make. In {100 * WANDERING:.0f} % of the sets of up to
{MOST_WANDERING} clusters all are wandering. Of the others with two to {FEW} clusters, {100 * IN_SCENE:.0f} % are one of
the other scenes.

{grid("scenes", named(scene, SCENES), 5)}

{listed(OF_FEW)}

wandering: {_first(wandering)}

## Gaussians in one round noise

{_first(round_mixture)}

One set in {round(1 / ROUND_SHARE)} is of this kind, for which the flow of Gaussians was made. Nothing else happens
to it. The flow learns to say whether a set is one of these.

{grid("round", {f"{i}": round_one(i) for i in range(6)})}

## Columns

{grid("columns", named(effect, COLUMN_EFFECTS), 5)}

| name | chance | what it is |
|---|---|---|
{effects}

In {100 * MEASURED_AGAIN:.0f} % of the tables of {WIDE} columns and more, clusters are drawn in at most half as many
columns, and each column of the table measures one of these again, with noise and in either direction.

In {100 * BUSY:.0f} % of the sets effects come together, as in most tables that people have: each is {BUSIER:g} times as
frequent.
"""
    (HERE / "prior.md").write_text(page)


if __name__ == "__main__":
    main()
