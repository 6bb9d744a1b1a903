"""The catalogue of shapes: each draws n points of one cluster around zero in R^d.

`draw_shape` brings them to a common size, so that a shape says nothing about how far clusters reach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

Rng = np.random.Generator
Item = TypeVar("Item")


def gaussian(rng: Rng, n: int, d: int) -> np.ndarray:
    """A normal cloud."""
    return rng.standard_normal((n, d))


def student(rng: Rng, n: int, d: int) -> np.ndarray:
    """Student's t with 1.5 to 8 degrees of freedom: now and then a row lies far out."""
    freedom = rng.uniform(1.5, 8)
    return gaussian(rng, n, d) / np.sqrt(rng.chisquare(freedom, (n, 1)) / freedom)


def laplace(rng: Rng, n: int, d: int) -> np.ndarray:
    """A double exponential in each column."""
    return rng.laplace(size=(n, d))


def hub(rng: Rng, n: int, d: int) -> np.ndarray:
    """Dense in the middle and thin outside: directions are even, radii heavy-tailed."""
    return directions(rng, n, d) * np.abs(rng.standard_normal((n, 1))) ** rng.uniform(1, 2.2)


def ball(rng: Rng, n: int, d: int) -> np.ndarray:
    """Uniform in a ball."""
    return directions(rng, n, d) * rng.random((n, 1)) ** (1 / d)


def box(rng: Rng, n: int, d: int) -> np.ndarray:
    """Uniform in a cube."""
    return rng.uniform(-1, 1, (n, d))


def graded(rng: Rng, n: int, d: int) -> np.ndarray:
    """Uniform in a cube but for one direction, along which it grows denser up to an edge."""
    points = box(rng, n, d)
    points[:, 0] = 2 * rng.random(n) ** rng.uniform(1.2, 2.0)
    return points @ rotation(rng, d)


def skewed(rng: Rng, n: int, d: int) -> np.ndarray:
    """Log-normal columns, the long tail to either side."""
    width = rng.uniform(0.3, 1.2)
    return (np.exp(width * gaussian(rng, n, d)) - np.exp(width**2 / 2)) * rng.choice([-1, 1], d)


def counts(rng: Rng, n: int, d: int) -> np.ndarray:
    """Small Poisson counts in each column; larger ones where columns are few, or every count would be a stripe."""
    means = np.exp(rng.uniform(np.log(0.3 if d > 4 else 4), np.log(12), d))
    return (rng.poisson(means, (n, d)) - means) / np.sqrt(means + 0.5)


def shares(rng: Rng, n: int, d: int) -> np.ndarray:
    """Parts of a whole: columns that sum to one."""
    parts = rng.gamma(np.exp(rng.uniform(0, np.log(8), d + 1)), size=(n, d + 1)) + 1e-12
    parts = parts / parts.sum(1, keepdims=True)
    return (parts - parts.mean(0))[:, :d]


def flat(rng: Rng, n: int, d: int) -> np.ndarray:
    """A normal cloud in a random subspace, with little noise across it."""
    r = int(rng.integers(1, max(2, d // 2 + 1)))
    return gaussian(rng, n, r) @ gaussian(rng, r, d) / np.sqrt(r) + rng.uniform(0.02, 0.2) * gaussian(rng, n, d)


def bent(rng: Rng, n: int, d: int) -> np.ndarray:
    """A normal cloud, wide in a few directions, bent by shears that change no volume: however bent, it has one peak."""
    wide, narrow = int(rng.integers(1, min(d, 6) + 1)), rng.uniform(0.1, 0.5)
    points = gaussian(rng, n, d) * np.where(np.arange(d) < wide, 1.0, narrow)
    for _ in range(2):
        points = sheared(rng, points @ rotation(rng, d))
    return points


def lumpy(rng: Rng, n: int, d: int) -> np.ndarray:
    """Two to four normal clouds so near one another, and so alike, that they are one cluster."""
    parts = int(rng.integers(2, 5))
    centers = gaussian(rng, parts, d)
    reach = np.sqrt(((centers[:, None] - centers) ** 2).sum(-1)).max()
    centers *= rng.uniform(0.8, 1.6) / reach  # two equal normal clouds have one peak up to a distance of two
    which = rng.choice(parts, n, p=rng.dirichlet(np.full(parts, 2.0)))
    return centers[which] + np.exp(0.12 * gaussian(rng, parts, 1))[which] * gaussian(rng, n, d)


def shell(rng: Rng, n: int, d: int) -> np.ndarray:
    """A hollow sphere."""
    return directions(rng, n, d) * (1 + rng.uniform(0.03, 0.15) * rng.standard_normal((n, 1)))


def arc(rng: Rng, n: int, d: int) -> np.ndarray:
    """A part of a circle."""
    angle = rng.uniform(np.pi / 3, 1.7 * np.pi) * rng.random(n)
    return thread(rng, np.stack([np.cos(angle), np.sin(angle)], 1), d)


def ring(rng: Rng, n: int, d: int) -> np.ndarray:
    """An ellipse."""
    angle = 2 * np.pi * rng.random(n)
    return thread(rng, np.stack([np.cos(angle), rng.uniform(0.3, 1) * np.sin(angle)], 1), d)


def spiral(rng: Rng, n: int, d: int) -> np.ndarray:
    """A spiral of half a turn to a turn and a half."""
    angle = rng.uniform(1, 3) * np.pi * np.sqrt(rng.random(n)) + 0.3
    return thread(rng, angle[:, None] / 3 * np.stack([np.cos(angle), np.sin(angle)], 1), d)


def wave(rng: Rng, n: int, d: int) -> np.ndarray:
    """A piece of a sine, the finer the nearer its rises and falls are."""
    t, speed = np.linspace(-1, 1, 200), rng.uniform(2, 6)
    curve = evenly_along(rng, np.stack([t, 0.6 * np.sin(speed * t)], 1), n)
    return thread(rng, curve, d, thickest=min(0.18, 0.5 / speed))


def parabola(rng: Rng, n: int, d: int) -> np.ndarray:
    """A piece of a parabola."""
    t = np.linspace(-1, 1, 200)
    return thread(rng, evenly_along(rng, np.stack([t, rng.uniform(0.5, 1.5) * t**2], 1), n), d)


def segment(rng: Rng, n: int, d: int) -> np.ndarray:
    """A straight line."""
    t = rng.uniform(-1, 1, n)
    return thread(rng, np.stack([t, 0 * t], 1), d)


# Each shape with how often it is drawn, in parts.
SHAPES: dict[Callable[[Rng, int, int], np.ndarray], float] = {
    gaussian: 34,
    student: 9,
    laplace: 3,
    hub: 5,
    ball: 5,
    box: 5,
    graded: 3,
    skewed: 6,
    counts: 2,
    shares: 2,
    flat: 5,
    bent: 11,
    lumpy: 7,
    shell: 2,
    arc: 3,
    ring: 3,
    spiral: 2,
    wave: 4,
    parabola: 2,
    segment: 2,
}

CURVES = {curve: SHAPES[curve] for curve in (arc, ring, spiral, wave, parabola, segment)}

SEVERAL = (graded, shares, bent, lumpy, arc, wave)  # those most easily taken for several clusters
ALONE = dict.fromkeys(SHAPES, 1.0) | dict.fromkeys(SEVERAL, 3.0)  # how often a cluster that is alone has each shape


def any_shape(rng: Rng, *, alone: bool = False) -> Callable[[Rng, int, int], np.ndarray]:
    """A shape drawn from the catalogue, as often as it says for one of several clusters or for one that is alone."""
    return pick(rng, ALONE if alone else SHAPES)


def pick(rng: Rng, parts: Mapping[Item, float]) -> Item:
    """One of the keys of a table, drawn in proportion to its value."""
    p = np.array(list(parts.values()), dtype=float)
    return list(parts)[int(rng.choice(len(p), p=p / p.sum()))]


def draw_shape(rng: Rng, shape: Callable[[Rng, int, int], np.ndarray], n: int, d: int) -> np.ndarray:
    """Points of a shape, centred, and scaled so that their median distance from the centre is the square root of d."""
    points = shape(rng, max(n, 8), d)[:n]
    points = points - np.median(points, 0)
    size = np.median(np.sqrt((points**2).sum(1))) if n > 1 else 1.0
    return points * (np.sqrt(d) / max(size, 1e-6))


def sheared(rng: Rng, points: np.ndarray) -> np.ndarray:
    """Points whose last columns are moved by what a small random network reads in the first half of them."""
    still, moved = np.array_split(points, [points.shape[1] // 2], axis=1)
    width = int(rng.integers(2, 7))
    read = still @ gaussian(rng, still.shape[1], width) / np.sqrt(max(still.shape[1], 1))
    inner = np.tanh(rng.uniform(0.5, 1.3) * read + gaussian(rng, 1, width))
    by = rng.uniform(1, 3.5) * inner @ gaussian(rng, width, moved.shape[1]) / np.sqrt(width)
    return np.concatenate([still, moved + by], 1)


def thread(rng: Rng, curve: np.ndarray, d: int, thickest: float = 0.18) -> np.ndarray:
    """A curve of the plane (n, 2), blurred, laid into R^d at random; in one column it is laid out straight."""
    n, noise = len(curve), rng.uniform(0.02, thickest)
    if d == 1:
        return rng.uniform(-1, 1, (n, 1)) + noise * gaussian(rng, n, 1)
    blurred = curve + noise * gaussian(rng, n, 2)
    across = noise * rng.uniform(0.3, 1) * gaussian(rng, n, d - 2)
    return np.concatenate([blurred, across], 1) @ rotation(rng, d)


def evenly_along(rng: Rng, curve: np.ndarray, n: int) -> np.ndarray:
    """Points (n, 2) spread evenly over the length of a curve, which is given by many of its points."""
    lengths = np.concatenate([[0.0], np.cumsum(np.sqrt((np.diff(curve, axis=0) ** 2).sum(1)))])
    at = rng.uniform(0, lengths[-1], n)
    return np.stack([np.interp(at, lengths, column) for column in curve.T], 1)


def directions(rng: Rng, n: int, d: int) -> np.ndarray:
    """Points on the unit sphere."""
    points = gaussian(rng, n, d)
    return points / np.sqrt((points**2).sum(1, keepdims=True) + 1e-30)


def rotation(rng: Rng, d: int) -> np.ndarray:
    """A random rotation."""
    q, r = np.linalg.qr(gaussian(rng, d, d))
    return q * np.sign(np.diagonal(r))
