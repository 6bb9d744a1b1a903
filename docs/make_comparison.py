"""Draw the README's comparison: ``python docs/make_comparison.py``. Six sets, by us and by three peers.

The sets were chosen to be of different kinds, before any method saw them. Peers are those of the benchmarks, told
nothing of the number of clusters. Colours say clusters, grey says noise, and the number is the adjusted Rand index,
bold where it is the best.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import rivals  # noqa: E402
import tables  # noqa: E402
from measureflow import FlowMixture  # noqa: E402

IMAGE = ROOT / "docs" / "images" / "comparison.png"
MOST = 20
COLOURS = [
    "#1f5fd6", "#e0561c", "#12905a", "#b3267f", "#c78a00", "#6a4fc3", "#0f97a8", "#8a5a2b", "#d0365a", "#5f7d1f",
    "#7aa2f7", "#f4a582", "#7fc9a5", "#d996c2", "#e6c466", "#b3a4e3", "#86cdd6", "#c4a484", "#e897ab", "#b4c58c",
]  # fmt: skip
NOISE, INK, SOFT, LINE = "#b9bec6", "#22303c", "#66727f", "#dfe3e8"


def overlapping() -> tables.Table:
    """Three Gaussians, two of which overlap."""
    rng = np.random.default_rng(1)
    centres = np.array([[0.0, 0.0], [2.6, 0.4], [1.0, 4.5]])
    y = rng.integers(0, 3, 450)
    return centres[y] + rng.standard_normal((450, 2)), y


def heavy_tails() -> tables.Table:
    """Two clusters whose rows stray far: Student's t of two degrees."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 400)
    return np.array([[-5.0, 0.0], [5.0, 0.0]])[y] + rng.standard_t(2.0, (400, 2)), y


SETS: dict[str, Callable[[], tables.Table]] = {
    "round": lambda: datasets.make_blobs(450, centers=5, cluster_std=0.9, random_state=8),
    "overlapping": overlapping,
    "ring in ring": lambda: datasets.make_circles(450, noise=0.05, factor=0.5, random_state=0),
    "crescents": lambda: datasets.make_moons(450, noise=0.07, random_state=0),
    "heavy tails": heavy_tails,
    "wine, 13 columns": lambda: tables.standardised(tables.REAL["wine"]),
}
METHODS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "FlowMixture": lambda X: FlowMixture(label_outliers=True).fit(X).labels_,
    "GaussianMixture\n4 shapes, BIC": lambda X: rivals.gmm_four(X, most=MOST).labels,
    "HDBSCAN": lambda X: rivals.hdbscan(X).labels,
    "k-means\nsilhouette": lambda X: rivals.silhouette(X, most=MOST).labels,
}


def draw(ax: Axes, plane: np.ndarray, labels: np.ndarray, score: float, best: bool) -> None:
    """Rows in the colours of their clusters, largest first; the words are bold where no method does better."""
    names, sizes = np.unique(labels[labels >= 0], return_counts=True)
    rank = {name: place for place, name in enumerate(names[np.argsort(-sizes, kind="stable")])}
    colours = [NOISE if label < 0 else COLOURS[rank[label] % len(COLOURS)] for label in labels]
    ax.scatter(*plane.T, c=colours, s=7, linewidths=0, alpha=0.85)
    low, high = np.quantile(plane, [0.005, 0.995], axis=0)
    margin = 0.12 * (high - low)
    ax.set(xlim=(low[0] - margin[0], high[0] + margin[0]), ylim=(low[1] - margin[1], high[1] + margin[1]))
    ax.set(xticks=[], yticks=[])
    for spine in ax.spines.values():
        spine.set_color(LINE)
    words = f"{len(names)} cluster{'s' * (len(names) != 1)}, {score:.2f}"
    ax.set_xlabel(words, fontsize=9, color=INK if best else SOFT, fontweight="bold" if best else "normal", labelpad=3)


def main() -> None:
    """Fit, draw and write the image."""
    figure, axes = plt.subplots(len(METHODS), len(SETS), figsize=(2.05 * len(SETS), 2.1 * len(METHODS)))
    for column, (title, load) in enumerate(SETS.items()):
        X, y = load()
        plane = X if X.shape[1] == 2 else PCA(2).fit_transform(X)
        found = [label(X) for label in METHODS.values()]
        scores = [adjusted_rand_score(y, labels) for labels in found]
        for ax, labels, score in zip(axes[:, column], found, scores, strict=True):
            draw(ax, plane, labels, score, round(score, 2) == round(max(scores), 2))
        axes[0, column].set_title(f"{title}\n{len(set(y.tolist()))} in truth", fontsize=10, color=INK)
    for ax, method in zip(axes[:, 0], METHODS, strict=True):
        bold = "bold" if method == "FlowMixture" else "normal"
        ax.set_ylabel(method, fontsize=10, color=INK, fontweight=bold)
    figure.tight_layout(pad=0.5, h_pad=0.8)
    figure.savefig(IMAGE, dpi=120)
    print(f"Wrote {IMAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
