"""Pictures of a clustering: the clusters, the flow that found them, how probable each number is, K over the dial."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from measureflow.flows.pictures import COLOURS, colour
from measureflow.report.samples import evenly
from measureflow.report.summary import PLAIN, SURE, Summary
from measureflow.report.words import count, percent

GREY, INK = "#8d99ae", "#22303c"
OTHER = ("#8d99ae", 0.4)  # of bars beside the one that was chosen
EITHER = "#7b8794"  # of lines and words that are read on white and on black
MOST_POINTS = 5000  # drawn of the rows
MOST_TOKENS = 400  # whose ways are drawn
MOST_NAMED = 8  # clusters described one by one


def draw(summary: Summary, title: str | None = None) -> Figure:
    """Clusters, flow, uncertainty, and what distinguishes each cluster; without a title, the pictures alone."""
    words = 0.0 if title is None else 0.75 + 0.3 * len(described(summary))
    layout = ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.12)
    figure = Figure(figsize=(13, 4.6 + words + 0.6 * (title is not None)), layout=layout, facecolor="white")
    parts = figure.subfigures(2 if words else 1, 1, squeeze=False, height_ratios=(4.6, words) if words else None)
    top, *below = parts[:, 0]
    left, middle, right = top.subplots(1, 3, width_ratios=(1, 1, 0.75))
    project, names = plane(summary)
    draw_clusters(left, summary, project)
    draw_flow(middle, summary, project)
    for axes in (left, middle):
        axes.set(xlabel=names[0], ylabel=names[1], xlim=left.get_xlim(), ylim=left.get_ylim())
        if len(summary.table.columns) == 1:
            axes.set_yticks([])
    draw_uncertainty(right, summary)
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    if title is not None:
        figure.suptitle(f"{title}: {summary.headline()}", fontsize=15, fontweight="bold", color=INK, x=0.01, ha="left")
        draw_words(below[0], summary)
    return figure


def plane(summary: Summary):
    """Where rows are drawn: their one or two columns, else the plane in which the clusters lie farthest apart.

    Lengths are measured in units of the noise, as in discriminant analysis; where there are too few centres to make a
    plane, the spread of the rows decides.
    """
    X, columns = summary.table.values[summary.table.complete], summary.table.columns
    if X.shape[1] == 1:
        spread = np.random.default_rng(0).uniform(-1, 1, 2**16)  # one column: rows are spread out upwards
        return lambda Z: np.stack([Z[:, 0], np.resize(spread, len(Z))], 1), (columns[0], "spread out to be seen")
    if X.shape[1] == 2:
        return lambda Z: Z, tuple(columns)
    mixture, mean = summary.mixture, X.mean(0)
    scale = np.where(X.std(0) > 0, X.std(0), 1.0)
    within = mixture.noise_covariance_ / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(within + 0.1 * max(np.trace(within) / len(scale), 1e-6) * np.eye(len(scale)))
    whiten = vectors / np.sqrt(values)
    centers = (mixture.cluster_centers_ - mixture.weights_ @ mixture.cluster_centers_) / scale @ whiten
    between = (centers * mixture.weights_[:, None]).T @ centers
    axes = whiten @ np.linalg.eigh(between + 1e-3 * np.cov(((X - mean) / scale @ whiten).T))[1][:, :-3:-1]
    largest = np.abs(axes).argmax(0)
    axes = axes * np.sign(axes[largest, [0, 1]])  # the largest part of an axis points forward
    names = tuple(f"axis {i + 1}, most of it {columns[j]}" for i, j in enumerate(largest))
    return lambda Z: (Z - mean) / scale @ axes, names


def draw_clusters(axes: Axes, summary: Summary, project) -> None:
    """The rows in the colours of their clusters, faint where they are uncertain, and the centres."""
    kept = np.flatnonzero(summary.table.complete)
    kept = kept[evenly(len(kept), MOST_POINTS)]
    x = project(summary.table.values[kept])
    size = float(np.clip(4000 / len(kept), 3, 22))
    unsure = summary.probabilities[kept] < SURE
    colours = np.array([colour(k) for k in np.where(summary.outliers, -1, summary.labels)[kept]])
    axes.scatter(*x[~unsure].T, s=size, c=colours[~unsure], alpha=0.75, linewidths=0)
    axes.scatter(*x[unsure].T, s=size + 4, facecolors="none", edgecolors=colours[unsure].tolist(), linewidths=0.8)
    _limit(axes, x)
    for k, centre in enumerate(project(summary.mixture.cluster_centers_)[:20]):
        axes.scatter(*centre, s=190, c=colour(k), edgecolors="white", linewidths=1.6, zorder=3)
        axes.annotate(f"{k}", centre, color="white", ha="center", va="center", fontsize=9, fontweight="bold", zorder=4)
    held = f"; hollow: below {SURE:.0%}" if unsure.any() else ""
    axes.set_title(f"The clusters{held}", loc="left", fontsize=11, color=INK)


def draw_flow(axes: Axes, summary: Summary, project) -> None:
    """The way of each token, from its row to where the layers left it."""
    path = np.stack([state.numpy() for state in summary.mixture.flow_])
    path = path[:, evenly(path.shape[1], MOST_TOKENS)]
    labels = summary.predict(path[-1])
    tracks = np.stack([project(state) for state in path])
    for i, k in enumerate(labels):
        axes.plot(*tracks[:, i].T, color=colour(k), alpha=0.3, linewidth=0.8, zorder=1)
    axes.scatter(*tracks[0].T, s=6, color=GREY, linewidths=0, zorder=2)
    axes.scatter(*tracks[-1].T, s=16, c=[colour(k) for k in labels], edgecolors="white", linewidths=0.4, zorder=3)
    axes.set_title(f"The flow: tokens from rows to atoms, {len(path) - 1} layers", loc="left", fontsize=11, color=INK)


def draw_uncertainty(axes: Axes, summary: Summary) -> None:
    """The probability of each number of clusters."""
    posterior, K = summary.mixture.n_clusters_posterior_, summary.mixture.n_clusters_
    shown = [k for k in range(max(1, K - 4), K + 5) if k in posterior]
    axes.bar(shown, [posterior[k] for k in shown], width=0.7, color=[COLOURS[0] if k == K else OTHER for k in shown])
    for k in shown:
        if posterior[k] >= 0.02 or k == K:
            at, words = (k, posterior[k]), percent(posterior[k])
            axes.annotate(words, at, (0, 3), textcoords="offset points", ha="center", fontsize=9, color=EITHER)
    most = max(0.4, max(posterior[k] for k in shown))
    axes.set(xticks=shown, xlim=(shown[0] - 1, shown[-1] + 1), ylim=(0, 1.12 * most), xlabel="number of clusters")
    axes.set_yticks([tick for tick in (0, 0.25, 0.5, 0.75, 1) if tick <= most])
    asked = summary.mixture.n_clusters is not None
    axes.set_title("K was asked for" if asked else "How probable is each K?", loc="left", fontsize=11, color=INK)


def draw_words(figure, summary: Summary) -> None:
    """What distinguishes each cluster, one line each."""
    axes = figure.subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.axis("off")
    rows = described(summary)
    step = 1 / (len(rows) + 2)
    axes.text(
        0, 1 - step / 2, "What distinguishes each cluster", fontsize=11, color=INK, va="center", fontweight="bold"
    )
    for i, (k, words) in enumerate(rows, 1):
        y = 1 - (i + 0.5) * step
        if k is not None:
            axes.scatter(0.008, y, s=150, color=colour(k))
            axes.text(0.008, y, f"{k}", color="white", fontsize=8, ha="center", va="center", fontweight="bold")
        axes.text(0.024, y, textwrap.shorten(words, 170, placeholder=" ..."), fontsize=10, color=INK, va="center")
    foot = f"columns: {', '.join(summary.table.columns)}" + "".join(f"   |   {words}" for words in summary.diagnosis)
    axes.text(0, step / 2, textwrap.shorten(foot, 190, placeholder=" ..."), fontsize=8.5, color=GREY, va="center")


def described(summary: Summary) -> list[tuple[int | None, str]]:
    """A line for each of the largest clusters, and one for all the smaller ones together."""
    sizes, shares = summary.sizes, summary.shares
    named = len(sizes) if len(sizes) <= MOST_NAMED + 1 else MOST_NAMED  # a lone last one is named too
    large = [f"{count(int(sizes[k]), 'row')} ({percent(shares[k])})" for k in range(named)]
    rows: list[tuple[int | None, str]] = [
        (k, f"{large[k]}: {', '.join(summary.traits(k)) or PLAIN}") for k in range(named)
    ]
    if len(sizes) > named:
        rest = sizes[named:]
        rows.append((None, f"and {len(rest)} smaller clusters with {rest.sum():,} rows together"))
    return rows


def draw_dial(axes: Axes, curve: list[tuple[float, int]], summary: Summary) -> None:
    """K at each signal-to-noise ratio, stretches over which it stays shaded, and the answer."""
    marks, counts = np.array([mark for mark, _ in curve]), np.array([K for _, K in curve])
    starts = np.flatnonzero(np.diff(counts, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(counts)], strict=True):
        if stop - start >= 3:
            axes.axvspan(marks[start], marks[stop - 1], color=COLOURS[0], alpha=0.13, linewidth=0)
            middle = (marks[start] + marks[stop - 1]) / 2
            at = (middle, counts[start])
            axes.annotate(f"{counts[start]}", at, (0, 4), textcoords="offset points", ha="center", color=EITHER)
    axes.step(marks, counts, where="mid", color=COLOURS[0], linewidth=1.8)
    db, K = summary.mixture.snr_db_, summary.mixture.n_clusters_
    if np.isfinite(db):
        axes.plot(np.clip(db, marks[0], marks[-1]), K, "o", color=COLOURS[1], markersize=7)
    most = max(4, int(counts.max()), K)
    ticks = [k for k in (1, 2, 3, 5, 10, 20, 50, 100) if k <= most * 1.3]
    axes.set_yscale("log", base=2)
    axes.set(yticks=ticks, yticklabels=ticks, ylim=(0.8, most * 1.4), xlabel="signal to noise, dB: right is finer")
    axes.set_title("K over the dial; the dot is the answer", loc="left", fontsize=11, color=EITHER)


def alone(draw_on, size: tuple[float, float] = (4.8, 3.7)) -> Figure:
    """One picture with nothing behind it, in colours that are read on white and on black; its title is the page's."""
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    axes = figure.subplots()
    draw_on(axes)
    axes.patch.set_alpha(0.0)
    figure.patch.set_alpha(0.0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(EITHER)
    axes.tick_params(colors=EITHER, which="both")
    for words in (axes.xaxis.label, axes.yaxis.label):
        words.set_color(EITHER)
    axes.set_title("", loc="left")
    return figure


def _limit(axes: Axes, x: np.ndarray) -> None:
    """Axes that a few far rows do not flatten; those are told of at the edge."""
    low, high = np.quantile(x, [0.02, 0.98], axis=0)
    reach = 2.5 * np.where(high > low, high - low, 1.0)
    near = np.where((x >= low - reach) & (x <= high + reach), x, np.nan)
    least, most = np.nanmin(near, axis=0), np.nanmax(near, axis=0)
    margin = 0.05 * np.where(most > least, most - least, 1.0)
    outside = ((x < least) | (x > most)).any(1).sum()
    axes.set(xlim=(least[0] - margin[0], most[0] + margin[0]), ylim=(least[1] - margin[1], most[1] + margin[1]))
    if outside:
        told = f"{count(int(outside), 'row')} outside the picture"
        axes.text(0.99, 0.01, told, transform=axes.transAxes, ha="right", va="bottom", fontsize=8.5, color=EITHER)
