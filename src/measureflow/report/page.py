"""One page about a clustering: a picture, and the same with words as a web page that needs nothing else."""

from __future__ import annotations

import base64
import io
import textwrap
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from measureflow.report.summary import PLAIN, SURE, Summary, count

COLOURS = ("#00798c", "#d1495b", "#edae49", "#66a182", "#5f4b8b", "#e07a3f", "#2e4057", "#b56576", "#7a9e00", "#3d8bd4")
GREY, FAINT, INK = "#8d99ae", "#dfe3e8", "#22303c"
MOST_POINTS = 5000  # drawn of the rows
MOST_NAMED = 8  # clusters described one by one


def save_report(summary: Summary, folder: str | Path, title: str) -> list[Path]:
    """Write labels.csv, centres.csv, report.png and report.html, and say where."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / name for name in ("labels.csv", "centres.csv", "report.png", "report.html")]
    summary.labelled().to_csv(files[0], index=False)
    summary.centres().to_csv(files[1], index=False)
    draw(summary, title).savefig(files[2], dpi=130)
    files[3].write_text(page(summary, title), encoding="utf-8")
    return files


def colour(k: int) -> str:
    """The colour of cluster k."""
    return COLOURS[k % len(COLOURS)]


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
    X, columns = summary.table.values[summary.labels >= 0], summary.table.columns
    if X.shape[1] == 1:
        spread = np.random.default_rng(0).uniform(-1, 1, 2**16)  # one column: rows are spread out upwards
        return lambda Z: np.stack([Z[:, 0], np.resize(spread, len(Z))], 1), (columns[0], "spread out to be seen")
    if X.shape[1] == 2:
        return lambda Z: Z, tuple(columns)
    mixture, mean = summary.mixture, X.mean(0)
    scale = np.where(X.std(0) > 0, X.std(0), 1.0)
    within = mixture.noise_covariance_ / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(within + 1e-3 * max(np.trace(within) / len(scale), 1e-6) * np.eye(len(scale)))
    whiten = vectors / np.sqrt(values)
    centres = (mixture.cluster_centers_ - mixture.weights_ @ mixture.cluster_centers_) / scale @ whiten
    between = (centres * mixture.weights_[:, None]).T @ centres
    axes = whiten @ np.linalg.eigh(between + 1e-3 * np.cov(((X - mean) / scale @ whiten).T))[1][:, :-3:-1]
    largest = np.abs(axes).argmax(0)
    axes = axes * np.sign(axes[largest, [0, 1]])  # the largest part of an axis points forward
    names = tuple(f"axis {i + 1}, most of it {columns[j]}" for i, j in enumerate(largest))
    return lambda Z: (Z - mean) / scale @ axes, names


def draw_clusters(axes: Axes, summary: Summary, project) -> None:
    """The rows in the colours of their clusters, faint where they are uncertain, and the centres."""
    kept = np.flatnonzero(summary.labels >= 0)
    kept = kept[np.linspace(0, len(kept) - 1, min(len(kept), MOST_POINTS)).astype(int)]
    x = project(summary.table.values[kept])
    size = float(np.clip(4000 / len(kept), 3, 22))
    unsure = summary.probabilities[kept] < SURE
    colours = np.array([colour(k) for k in summary.labels[kept]])
    axes.scatter(*x[~unsure].T, s=size, c=colours[~unsure], alpha=0.6, linewidths=0)
    axes.scatter(*x[unsure].T, s=size + 4, facecolors="white", edgecolors=colours[unsure].tolist(), linewidths=0.8)
    for k, centre in enumerate(project(summary.mixture.cluster_centers_)[:20]):
        axes.scatter(*centre, s=190, c=colour(k), edgecolors="white", linewidths=1.6, zorder=3)
        axes.annotate(f"{k}", centre, color="white", ha="center", va="center", fontsize=9, fontweight="bold", zorder=4)
    held = f"; hollow: below {SURE:.0%}" if unsure.any() else ""
    axes.set_title(f"The clusters{held}", loc="left", fontsize=11, color=INK)


def draw_flow(axes: Axes, summary: Summary, project) -> None:
    """The way of each token, from its row to where the layers left it."""
    path = np.stack([state.numpy() for state in summary.mixture.flow_])
    path = path[:, np.linspace(0, path.shape[1] - 1, min(path.shape[1], 400)).astype(int)]
    labels = summary.mixture.predict(path[-1])
    tracks = np.stack([project(state) for state in path])
    for i, k in enumerate(labels):
        axes.plot(*tracks[:, i].T, color=colour(k), alpha=0.3, linewidth=0.8, zorder=1)
    axes.scatter(*tracks[0].T, s=6, color=GREY, linewidths=0, zorder=2)
    axes.scatter(*tracks[-1].T, s=16, c=[colour(k) for k in labels], edgecolors="white", linewidths=0.4, zorder=3)
    axes.set_title(f"The flow: tokens from rows to atoms, {len(path) - 1} layers", loc="left", fontsize=11, color=INK)


def draw_uncertainty(axes: Axes, summary: Summary) -> None:
    """The probability of each number of clusters, and the share of uncertain rows."""
    posterior, K = summary.mixture.n_clusters_posterior_, summary.mixture.n_clusters_
    shown = [k for k in sorted(posterior) if abs(k - K) <= 4]
    axes.bar(shown, [posterior[k] for k in shown], width=0.7, color=[COLOURS[0] if k == K else FAINT for k in shown])
    for k in shown:
        axes.annotate(
            _share(posterior[k]), (k, posterior[k]), (0, 3), textcoords="offset points", ha="center", fontsize=9
        )
    axes.set(
        xticks=shown,
        xlim=(shown[0] - 1, shown[-1] + 1),
        ylim=(0, 1.3),
        yticks=(0, 0.5, 1),
        xlabel="number of clusters",
    )
    asked = summary.mixture.n_clusters is not None
    axes.set_title("K was asked for" if asked else "How probable is each K?", loc="left", fontsize=11, color=INK)
    sure = f"{summary.uncertain:.1%} of the rows are below {SURE:.0%}\nin the cluster they were given"
    axes.text(0.03, 0.98, sure, transform=axes.transAxes, fontsize=9, va="top", color=INK)


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
    foot = f"columns: {', '.join(summary.table.columns)}" + (f"   |   {summary.warning}" if summary.warning else "")
    axes.text(0, step / 2, textwrap.shorten(foot, 190, placeholder=" ..."), fontsize=8.5, color=GREY, va="center")


def described(summary: Summary) -> list[tuple[int | None, str]]:
    """A line for each of the largest clusters, and one for all the smaller ones together."""
    sizes, weights = summary.sizes, summary.mixture.weights_
    named = len(sizes) if len(sizes) <= MOST_NAMED + 1 else MOST_NAMED  # a lone last one is named too
    share = [f"{count(int(sizes[k]), 'row')} ({_share(weights[k])})" for k in range(named)]
    rows: list[tuple[int | None, str]] = [
        (k, f"{share[k]}: {', '.join(summary.traits(k)) or PLAIN}") for k in range(named)
    ]
    if len(sizes) > named:
        rest = sizes[named:]
        rows.append((None, f"and {len(rest)} smaller clusters with {rest.sum():,} rows together"))
    return rows


def page(summary: Summary, title: str) -> str:
    """The report as one HTML file: no script, no link, the pictures inside."""
    buffer = io.BytesIO()
    draw(summary).savefig(buffer, format="png", dpi=130)
    picture = base64.b64encode(buffer.getvalue()).decode()
    warning = f'<p class="warning">{escape(summary.warning)}</p>' if summary.warning else ""
    dropped = f" {summary.dropped:,} rows with missing values were left out." if summary.dropped else ""
    skipped = ", ".join(f"{escape(name)} ({escape(why)})" for name, why in summary.table.skipped.items())
    return PAGE.format(
        title=escape(title),
        headline=escape(summary.headline()),
        certainty=escape(summary.certainty()),
        warning=warning,
        picture=picture,
        clusters="\n".join(_row(summary, k) for k in range(len(summary.sizes))),
        columns=escape(", ".join(summary.table.columns)),
        skipped=f" Skipped: {skipped}." if skipped else "",
        dropped=dropped,
        noise=_noise(summary),
    )


def _row(summary: Summary, k: int) -> str:
    traits = "<br>".join(escape(trait) for trait in summary.traits(k)) or PLAIN
    dot = f'<span class="dot" style="background:{colour(k)}">{k}</span>'
    cells = (dot, f"{summary.sizes[k]:,}", _share(summary.mixture.weights_[k]), traits)
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _noise(summary: Summary) -> str:
    m = summary.mixture
    strength = f" The signal-to-noise ratio is {m.snr_db_:.1f} dB." if np.isfinite(m.snr_db_) else ""
    spread = zip(summary.table.columns, np.sqrt(np.diagonal(m.noise_covariance_)), strict=True)
    told = ", ".join(f"{escape(name)} {sd:.3g}" for name, sd in list(spread)[:8])
    return f"Standard deviations within clusters: {told}.{strength}"


def _share(p: float) -> str:
    return f"{p:.0%}" if p >= 0.005 else "<1%"


PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: {headline}</title>
<style>
  body {{ font: 16px/1.5 system-ui, sans-serif; color: #22303c; max-width: 1100px; margin: 2.5rem auto;
         padding: 0 1.5rem; }}
  h1 {{ font-size: 1.7rem; margin: 0; }}
  h2 {{ font-size: 1.1rem; margin: 2rem 0 .5rem; }}
  p {{ margin: .4rem 0; }}
  .file, .foot {{ color: #66727f; }}
  .foot {{ font-size: .9rem; margin-top: 2rem; }}
  .warning {{ background: #fdf3dc; border-left: 4px solid #edae49; padding: .5rem .8rem; }}
  img {{ width: 100%; margin-top: 1rem; }}
  table {{ border-collapse: collapse; width: 100%; }}
  th {{ text-align: left; font-weight: 600; }}
  th, td {{ padding: .45rem .8rem .45rem 0; border-bottom: 1px solid #dfe3e8; vertical-align: top; }}
  .dot {{ display: inline-block; min-width: 1.6em; line-height: 1.6em; border-radius: .8em; color: #fff;
         text-align: center; font-weight: 700; font-size: .85rem; }}
  @media print {{ body {{ margin: 0; }} }}
</style>
<p class="file">{title}</p>
<h1>{headline}</h1>
<p>{certainty}.</p>
{warning}
<img alt="Clusters, the flow that found them, and the probability of each number of clusters"
     src="data:image/png;base64,{picture}">
<h2>What distinguishes each cluster</h2>
<table>
<tr><th>cluster</th><th>rows</th><th>weight</th><th>differs most from all rows in</th></tr>
{clusters}
</table>
<p class="foot">Columns used: {columns}.{skipped}{dropped} {noise}
In brackets: its centre, and how many standard deviations of all rows (sd) it lies from their mean.
Every row with its cluster is in labels.csv, every centre in centres.csv.</p>
</html>
"""
