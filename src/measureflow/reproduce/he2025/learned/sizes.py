"""What each size of the reproduction spends: recipe, seeds, test sets and the grids of the sweeps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from measureflow.measures.he_mixtures import HeMixtures
from measureflow.training.in_context import FOUND, PRINTED, Recipe

QUICK = Recipe(n_steps=300, batch=32, learning_rate=5e-3, decay=None, warm_up=30, n_per_class=6, clip=1.0)


@dataclass(frozen=True)
class Size:
    """The figures train by ``recipe``; one setting also by ``printed``, and by ``found`` from ``found_seeds`` seeds."""

    recipe: Recipe
    printed: Recipe
    found: Recipe
    seeds: int
    found_seeds: int
    n_test: int
    layers: tuple[int, ...]
    steps_per_layer: int = 500  # of Figure 3, as printed


def _steps(n: int, recipe: Recipe, **changes) -> Recipe:
    return replace(recipe, n_steps=n, **changes)


SIZES = {
    "tiny": Size(
        _steps(2, QUICK, batch=4), _steps(2, PRINTED, batch=4), _steps(4, FOUND, batch=4), 2, 2, 16, (1, 2), 1
    ),
    "small": Size(QUICK, PRINTED, _steps(1000, FOUND), 2, 2, 128, (1, 3, 6), 60),
    "paper": Size(_steps(300, PRINTED, batch=64), PRINTED, FOUND, 10, 10, 512, tuple(range(3, 21))),
}

DISTANCE = {"tiny": (5, 50), "small": (5, 10, 20, 30, 50), "paper": tuple(range(5, 55, 5))}
DIMENSION = {"tiny": (2, 5), "small": (5, 10, 20), "paper": (2, 5, 10, 20, 40, 80)}
DATA = {"tiny": (5, 10), "small": (5, 10, 25), "paper": (5, 10, 20, 30, 40, 50, 75, 100)}
CLASSES = {"tiny": (2, 3), "small": (2, 4, 6), "paper": (2, 3, 4, 5, 6, 8)}
IMBALANCE = {"tiny": (0.2, 0.5), "small": (0.1, 0.3, 0.5), "paper": (0.1, 0.2, 0.3, 0.4, 0.5)}


def by_distance(value: float) -> HeMixtures:
    """Figure 1, first row."""
    return HeMixtures(minimum_distance=float(value), variance=(10.0, 40.0))


def by_dimension(value: int) -> HeMixtures:
    """Figure 1, second row."""
    return HeMixtures(dimension=value, minimum_distance=5.0, variance=(10.0, 20.0))


def by_dimension_apart(value: int) -> HeMixtures:
    """Dimension at a least distance that is attained: centres drawn narrow, then blown up to it exactly."""
    return HeMixtures(dimension=value, minimum_distance=15.0, variance=(10.0, 20.0), spread=1e-6)


def by_data(value: int) -> HeMixtures:
    """Figure 1, third row: points in each cluster."""
    return HeMixtures(n_per_class=value, minimum_distance=5.0, variance=(0.5, 5.0))


def by_classes(value: int) -> HeMixtures:
    """Figure 2, first row."""
    return HeMixtures(n_classes=value, minimum_distance=5.0, variance=(10.0, 20.0))


def by_imbalance(value: float) -> HeMixtures:
    """Figure 2, second row."""
    return HeMixtures(imbalance=value, minimum_distance=5.0, variance=(10.0, 20.0))


def six_classes() -> HeMixtures:
    """Figure 3."""
    return HeMixtures(n_classes=6, minimum_distance=1.0, variance=(20.0, 30.0))
