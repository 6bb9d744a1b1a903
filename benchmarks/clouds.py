"""Clouds in the manner of those that papers on clustering have published: ``CLOUDS`` maps a name to a function.

Each function draws points (n, d) and labels (n,) from its own seed. The shapes are the well-known ones (pairs of
clusters in up to 32 columns, the fundamental problems, rings, lines, zigzags, many Gaussians, one cluster beside many
times larger ones), the points are new. Nothing is chosen by them; the lab book says what looked at them.
"""

from __future__ import annotations

from functools import partial

import numpy as np

Cloud = tuple[np.ndarray, np.ndarray]


def joined(parts: list[np.ndarray]) -> Cloud:
    """Clusters one after the other."""
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def directions(rng, n: int, d: int) -> np.ndarray:
    points = rng.standard_normal((n, d))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def circle(rng, n: int, radius: float, center=(0.0, 0.0), noise=0.05, turn=(0.0, 2 * np.pi)) -> np.ndarray:
    """Rows along a circle or a part of it."""
    angle = rng.uniform(*turn, n)
    return radius * np.stack([np.cos(angle), np.sin(angle)], 1) + center + noise * rng.standard_normal((n, 2))


def line(rng, n: int, start, end, noise=0.05) -> np.ndarray:
    start, end = np.array(start, float), np.array(end, float)
    return start + rng.random((n, 1)) * (end - start) + noise * rng.standard_normal((n, len(start)))


def path(rng, n: int, corners, noise=0.05) -> np.ndarray:
    """Rows along straight pieces from corner to corner, evenly."""
    corners = np.array(corners, float)
    lengths = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    piece = rng.choice(len(lengths), n, p=lengths / lengths.sum())
    points = corners[piece] + rng.random((n, 1)) * (corners[piece + 1] - corners[piece])
    return points + noise * rng.standard_normal(points.shape)


def gaussians(rng, centers, sizes, spreads) -> Cloud:
    centers = np.array(centers, float)
    sizes, spreads = np.broadcast_to(sizes, len(centers)), np.broadcast_to(spreads, len(centers))
    return joined([c + s * rng.standard_normal((n, len(c))) for c, n, s in zip(centers, sizes, spreads, strict=True)])


def pair(rng, d: int, spread: float) -> Cloud:
    """Two round Gaussians at a distance of one in every column."""
    return gaussians(rng, [[0.0] * d, [1.0] * d], 250, spread)


def hub_pair(rng, d: int, spread: float) -> Cloud:
    """Two clusters at a distance of one in every column, whose rows lie in even directions at normal distances."""
    radii = lambda: spread * np.sqrt(d) * rng.standard_normal((250, 1))  # noqa: E731
    return joined([directions(rng, 250, d) * radii() + center for center in (0.0, 1.0)])


def blobs(rng, K: int, n: int, apart: float, d: int = 2) -> Cloud:
    """Round Gaussians with centres at least so many deviations apart, as near to each other as that allows."""
    centers = [np.zeros(d)]
    while len(centers) < K:
        new = centers[rng.integers(len(centers))] + apart * (1 + 0.5 * rng.random()) * directions(rng, 1, d)[0]
        if np.linalg.norm(np.array(centers) - new, axis=1).min() >= apart:
            centers.append(new)
    return gaussians(rng, centers, n // K, 1.0)


def unbalanced(rng) -> Cloud:
    centers = [[0, 0], [6, 8], [8, -6], [60, 0], [60, 10], [68, 4], [52, 5], [68, -8]]
    return gaussians(rng, centers, [400] * 3 + [60] * 5, [1.0] * 3 + [2.0] * 5)


def spirals(rng, arms: int) -> Cloud:
    t = [np.sqrt(rng.uniform(0.05, 1, 120)) for _ in range(arms)]
    angle = [3.5 * s + 2 * np.pi * k / arms for k, s in enumerate(t)]
    return joined(
        [
            3 * s[:, None] * np.stack([np.cos(a), np.sin(a)], 1) + 0.05 * rng.standard_normal((120, 2))
            for s, a in zip(t, angle, strict=True)
        ]
    )


def moons_of_two_densities(rng) -> Cloud:
    sparse = circle(rng, 100, 1.0, (0, 0), 0.08, (0, np.pi))
    return joined([sparse, circle(rng, 280, 1.0, (1, 0.35), 0.08, (np.pi, 2 * np.pi))])


def target(rng) -> Cloud:
    """A ball in a ring."""
    return joined([0.8 * rng.random((400, 1)) ** 0.5 * directions(rng, 400, 2), circle(rng, 400, 3.0, noise=0.1)])


def ball_in_shell(rng) -> Cloud:
    return joined([10 * rng.random((400, 1)) ** 2 * directions(rng, 400, 3), 50 * directions(rng, 400, 3)])


def chain_of_two(rng) -> Cloud:
    """Two linked rings in space."""
    one, two = circle(rng, 300, 1.0), circle(rng, 300, 1.0)
    thin = 0.05 * rng.standard_normal((2, 300))
    return joined([np.column_stack([one, thin[0]]), np.column_stack([two[:, 0] + 1, thin[1], two[:, 1]])])


def seven_balls(rng) -> Cloud:
    centers = np.concatenate([[np.zeros(3)], 3 * np.eye(3), -3 * np.eye(3)])
    return gaussians(rng, centers, 30, [0.2] + [0.5] * 6)


def two_bars_and_a_ball(rng) -> Cloud:
    box = lambda n, low, high: rng.uniform(low, high, (n, 2))  # noqa: E731
    ball = np.array([3.0, 2.5]) + 0.6 * rng.random((200, 1)) ** 0.5 * directions(rng, 200, 2)
    return joined([box(150, (0, 0), (0.6, 4)), box(150, (1.2, 0), (4, 0.6)), ball])


def two_diamonds(rng) -> Cloud:
    turn = np.array([[1, 1], [-1, 1]]) / np.sqrt(2)
    return joined([rng.uniform(-1, 1, (400, 2)) @ turn + (x, 0.0) for x in (-1.5, 1.5)])


def two_wedges(rng) -> Cloud:
    """Two rectangles that grow denser toward the side at which they nearly touch."""
    x = [np.sqrt(rng.random(500)), 2.3 - np.sqrt(rng.random(500))]
    return joined([np.column_stack([a, rng.uniform(-1, 1, 500)]) for a in x])


def wide_and_narrow(rng) -> Cloud:
    """Two overlapping Gaussians of unlike size."""
    return joined([rng.standard_normal((400, 2)), 2.5 * rng.standard_normal((400, 2)) + (5.0, 2.5)])


def one_sphere(rng) -> Cloud:
    return directions(rng, 500, 3), np.zeros(500, int)


def tetrahedron(rng) -> Cloud:
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    return joined([c + 1.3 * rng.random((100, 1)) ** (1 / 3) * directions(rng, 100, 3) for c in corners])


def seven_kinds(rng) -> Cloud:
    """Balls, bars and crescents of several sizes."""
    centers, sizes, spreads = (
        [[5, 5], [8, 22], [22, 24], [33, 8], [33, 22]],
        [170, 34, 270, 130, 45],
        [1.9, 1, 2.3, 2, 1],
    )
    points, _ = gaussians(rng, centers, sizes, spreads)
    parts = np.split(points, np.cumsum(sizes)[:-1])
    return joined([*parts, circle(rng, 100, 6.0, (17, 9), 0.5, (0.2, 2.6)), line(rng, 80, (12, 15), (24, 17), 0.7)])


def rings(rng, centers, radii, n=250, noise=0.06) -> Cloud:
    return joined([circle(rng, n, r, c, noise) for c, r in zip(centers, radii, strict=True)])


def lines(rng, ends, n=200, noise=0.05) -> Cloud:
    return joined([line(rng, n, *end, noise) for end in ends])


def zigzags(rng, tops, n=150, noise=0.05) -> Cloud:
    corners = np.array([[0, 0], [1, 1], [2, 0], [3, 1], [4, 0]], float)
    return joined([path(rng, n, corners + np.array([0.0, top]), noise) for top in tops])


def parabolas(rng, rise: float) -> Cloud:
    x = rng.uniform(-1, 1, (2, 300))
    noise = 0.05 * rng.standard_normal((2, 300))
    return joined(
        [np.column_stack([x[0], x[0] ** 2 + noise[0]]), np.column_stack([x[1] + 0.5, rise - x[1] ** 2 + noise[1]])]
    )


def dense_in_sparse(rng) -> Cloud:
    return joined(
        [0.15 * rng.standard_normal((200, 2)) + (0.5, 0), rng.uniform(-3, -1, (200, 2)), rng.uniform(1, 4, (100, 2))]
    )


def heavy_tails(rng, K: int, d: int) -> Cloud:
    centers = 8 * rng.standard_normal((K, d))
    return joined([c + rng.standard_t(2.5, (150, d)) for c in centers])


DRAWN = {
    **{f"pair, d={d}, {spread}": partial(pair, d=d, spread=spread) for d in (2, 8, 32) for spread in (0.3, 0.6)},
    **{f"hubs, d={d}, {spread}": partial(hub_pair, d=d, spread=spread) for d in (2, 8, 32) for spread in (0.3, 0.6)},
    "one ring beside one": partial(rings, centers=[(0, 0), (3, 0)], radii=[1, 1]),
    "ring in ring": partial(rings, centers=[(0, 0), (0, 0)], radii=[1, 2]),
    "three rings in one another": partial(rings, centers=[(0, 0)] * 3, radii=[1, 2, 3.2]),
    "five rings": partial(rings, centers=[(0, 0), (2.6, 0), (5.2, 0), (1.3, 2.6), (3.9, 2.6)], radii=[1] * 5, n=150),
    "two lines": partial(lines, ends=[((0, 0), (4, 0)), ((0, 1), (4, 1))]),
    "crossing lines": partial(lines, ends=[((0, 0), (4, 4)), ((0, 4), (4, 0))]),
    "four lines": partial(lines, ends=[((0, 0), (3, 1)), ((0, 2), (3, 1.6)), ((4, 0), (4, 3)), ((0, 3), (3, 3.4))]),
    "one zigzag": partial(zigzags, tops=[0.0], n=400),
    "two zigzags": partial(zigzags, tops=[0.0, 1.5], n=250),
    "three zigzags": partial(zigzags, tops=[0.0, 1.2, 2.4], n=200),
    "parabolas": partial(parabolas, rise=1.6),
    "dense beside sparse": dense_in_sparse,
    "15 blobs": partial(blobs, K=15, n=900, apart=4.5),
    "15 blobs, near": partial(blobs, K=15, n=900, apart=3.2),
    "20 blobs": partial(blobs, K=20, n=1200, apart=5.0),
    "16 blobs, d=16": partial(blobs, K=16, n=640, apart=12.0, d=16),
    "unbalanced": unbalanced,
    "three spirals": partial(spirals, arms=3),
    "two spirals": partial(spirals, arms=2),
    "moons of two densities": moons_of_two_densities,
    "target": target,
    "ball in shell": ball_in_shell,
    "two linked rings": chain_of_two,
    "seven balls": seven_balls,
    "two bars and a ball": two_bars_and_a_ball,
    "two diamonds": two_diamonds,
    "two wedges": two_wedges,
    "wide and narrow": wide_and_narrow,
    "one sphere": one_sphere,
    "tetrahedron": tetrahedron,
    "seven kinds": seven_kinds,
    "heavy tails, K=3": partial(heavy_tails, K=3, d=2),
    "heavy tails, K=6": partial(heavy_tails, K=6, d=5),
}


def cloud(name: str) -> Cloud:
    """A cloud of the list, always the same."""
    return DRAWN[name](np.random.default_rng(list(name.encode())))
