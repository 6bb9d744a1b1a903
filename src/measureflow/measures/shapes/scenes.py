"""Whole sets that cannot be made of clusters placed one by one: nested, interleaved and crossing ones."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from measureflow.measures.shapes.catalogue import CURVES, Rng, directions, draw_shape, gaussian, pick, rotation


def nested(rng: Rng, labels: np.ndarray, K: int, d: int) -> np.ndarray:
    """Shells around one another, a ball or nothing in the middle."""
    gap, noise = rng.uniform(0.5, 1.5), rng.uniform(0.03, 0.12)
    radius = 1 + gap * labels
    if rng.random() < 0.5:
        radius = np.where(labels == 0, 0.45 * rng.random(len(labels)) ** (1 / d), radius)
    return directions(rng, len(labels), d) * (radius + noise * rng.standard_normal(len(labels)))[:, None]


def moons(rng: Rng, labels: np.ndarray, K: int, d: int) -> np.ndarray:
    """Half circles that reach into one another, in a chain."""
    n = len(labels)
    angle, up = np.pi * rng.random(n), labels % 2 == 0
    x = np.cos(angle) * np.where(up, 1, -1) + labels
    y = np.where(up, np.sin(angle), rng.uniform(0.2, 0.6) - np.sin(angle))
    return _laid_in(rng, np.stack([x, y], 1), rng.uniform(0.04, 0.13), d)


def interlaced(rng: Rng, labels: np.ndarray, K: int, d: int) -> np.ndarray:
    """Curves that reach into one another and keep apart, each laid down where there is room for it."""
    r = int(rng.integers(2, min(d, 3) + 1))
    gap, alike, curve = np.exp(rng.uniform(np.log(0.1), np.log(0.5))), rng.random() < 0.5, pick(rng, CURVES)
    gap += 6 / np.bincount(labels).min()  # thin curves have gaps of their own
    spread, points = rng.uniform(0, 0.5), np.empty((len(labels), r))
    for k in range(K):
        cloud = draw_shape(rng, curve if alike else pick(rng, CURVES), int((labels == k).sum()), r) / np.sqrt(r)
        cloud = cloud * np.exp(spread * rng.standard_normal())
        points[labels == k] = cloud + _room_for(cloud, points[labels < k], gap, rng)
    across = rng.uniform(0.02, 0.15) * gaussian(rng, len(labels), d - r)
    return np.concatenate([points, across], 1) @ rotation(rng, d)


def _room_for(cloud: np.ndarray, others: np.ndarray, gap: float, rng: Rng) -> np.ndarray:
    """Where a cloud may be moved, not far from a row of the others, so that it keeps a gap to all of them."""
    if not len(others):
        return np.zeros(cloud.shape[1])
    taken, reach = KDTree(others), 0.3
    while True:
        shift = others[rng.integers(len(others))] + reach * directions(rng, 1, cloud.shape[1])[0]
        if taken.query(cloud + shift)[0].min() >= gap:
            return shift
        reach *= 1.01


def stripes(rng: Rng, labels: np.ndarray, K: int, d: int) -> np.ndarray:
    """Lines or waves side by side, from as long as they are apart to many times that."""
    t = rng.uniform(-1, 1, len(labels)) * np.exp(rng.uniform(np.log(0.5), np.log(4))) * np.sqrt(K)
    y = labels + rng.choice([0.0, 1.0]) * np.sin(t * rng.uniform(0.5, 1.5)) + rng.uniform(-0.3, 0.3) * t
    return _laid_in(rng, np.stack([t, y], 1), rng.uniform(0.05, 0.2), d)


def arms(rng: Rng, labels: np.ndarray, K: int, d: int) -> np.ndarray:
    """The arms of a spiral galaxy."""
    t = np.sqrt(rng.uniform(0.05, 1, len(labels)))
    angle = 2 * np.pi * labels / K + rng.uniform(0.5, 2.5) * np.pi * t
    return _laid_in(rng, 3 * t[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1), rng.uniform(0.04, 0.12), d)


def crossing(rng: Rng, labels: np.ndarray, K: int, d: int) -> np.ndarray:
    """Lines through nearly one point, in several directions."""
    lines, offsets = directions(rng, K, d), 0.3 * gaussian(rng, K, d)
    along = rng.uniform(-1, 1, (len(labels), 1)) * rng.uniform(1.5, 4)
    return lines[labels] * along + offsets[labels] + rng.uniform(0.03, 0.12) * gaussian(rng, len(labels), d)


def core_and_halo(rng: Rng, labels: np.ndarray, K: int, d: int) -> np.ndarray:
    """Tight clusters, and a wide cloud that lies over all of them."""
    wide = labels == 0
    centers = rng.uniform(-1, 1, (K, d)) * 4
    points = centers[labels] + rng.uniform(0.1, 0.4) * gaussian(rng, len(labels), d)
    points[wide] = draw_shape(rng, gaussian, int(wide.sum()), d) * rng.uniform(2.5, 4)
    return points


def linked(rng: Rng, labels: np.ndarray, K: int, d: int) -> np.ndarray:
    """Rings that pass through one another like the links of a chain; in two columns they only cross."""
    angle, upright = 2 * np.pi * rng.random(len(labels)), labels % 2 if d > 2 else np.zeros(len(labels))
    links = np.stack([np.cos(angle) + 1.2 * labels, np.sin(angle) * (1 - upright), np.sin(angle) * upright], 1)
    points = np.zeros((len(labels), d))
    points[:, : min(d, 3)] = links[:, : min(d, 3)]
    return (points + rng.uniform(0.04, 0.15) * gaussian(rng, len(labels), d)) @ rotation(rng, d)


def wandering(rng: Rng, labels: np.ndarray, K: int, d: int) -> np.ndarray:
    """Chains of balls, or strokes: each cluster winds its own way, branches at times, and keeps off the others."""
    strokes = rng.random() < 0.5
    radius = rng.uniform(0.05, 0.2) if strokes else rng.uniform(0.5, 0.9)
    apart = rng.uniform(1.0, 2.0) if strokes else 2 * radius + rng.uniform(0.3, 1.5)
    evenness, fading = rng.choice([2.0, 10.0, 50.0]), rng.choice([1.0, 2.5])  # fading ones have no edge
    chains, points = [np.zeros((0, d))], np.empty((len(labels), d))
    for k in range(K):
        mine = np.flatnonzero(labels == k)
        longest = int(np.clip(len(mine) // 5, 4, 16)) if strokes else 16
        chain, before = _chain(rng, int(rng.integers(3, longest)), np.concatenate(chains), apart)
        chains.append(chain)
        link = rng.choice(len(chain), len(mine), p=rng.dirichlet(np.full(len(chain), evenness)))
        back = strokes * rng.random((len(mine), 1)) * (chain[before] - chain)[link]
        reach = radius * rng.random((len(mine), 1)) ** (fading / d)
        points[mine] = chain[link] + back + reach * directions(rng, len(mine), d)
    return points


def _chain(rng: Rng, length: int, others: np.ndarray, apart: float) -> tuple[np.ndarray, np.ndarray]:
    """At most so many points, none of them too near to the others, each one step from an earlier one, and which."""

    def clear(point: np.ndarray) -> bool:
        return ((others - point) ** 2).sum(1).min(initial=np.inf) >= apart**2

    start, reach = np.zeros(d := others.shape[1]), apart
    while not clear(start):
        start, reach = others[rng.integers(len(others))] + reach * directions(rng, 1, d)[0], 1.1 * reach
    chain, before, last = [start], [0], 0
    heading, wiggle = directions(rng, 1, d)[0], rng.uniform(0.2, 1.0)
    for _ in range(4 * length):
        heading = heading + wiggle * gaussian(rng, 1, d)[0] / np.sqrt(d)
        heading = heading / np.sqrt((heading**2).sum())
        if clear(chain[last] + heading):
            chain.append(chain[last] + heading)
            before.append(last)
            last = len(chain) - 1
        else:
            last, heading = int(rng.integers(len(chain))), directions(rng, 1, d)[0]
        if len(chain) == length:
            break
    return np.stack(chain), np.array(before)


# The scenes of a few clusters with how often each is drawn, in parts; those of many clusters wander.
OF_FEW = {
    nested: 30,
    moons: 15,
    interlaced: 30,
    stripes: 20,
    arms: 10,
    crossing: 15,
    core_and_halo: 10,
    linked: 10,
}
SCENES = (*OF_FEW, wandering)


def any_scene_of_few(rng: Rng, labels: np.ndarray, K: int, d: int) -> np.ndarray:
    """Points (n, d) of a scene of a few clusters."""
    return pick(rng, OF_FEW)(rng, labels, K, d)


def _laid_in(rng: Rng, plane: np.ndarray, noise: float, d: int) -> np.ndarray:
    blurred = plane + noise * gaussian(rng, len(plane), 2)
    across = noise * rng.uniform(0.3, 1) * gaussian(rng, len(plane), d - 2)
    return np.concatenate([blurred, across], 1) @ rotation(rng, d)
