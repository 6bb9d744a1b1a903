"""One page about a clustering, as a web page that needs nothing else; on a phone and in the dark too."""

from __future__ import annotations

import base64
import io
from html import escape
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from measureflow.estimators.stability import RECOVERED, SHARE
from measureflow.flows.pictures import colour
from measureflow.report.dial import dial_curve
from measureflow.report.pictures import (
    alone,
    draw,
    draw_clusters,
    draw_dial,
    draw_flow,
    draw_uncertainty,
    plane,
)
from measureflow.report.summary import PLAIN, Summary
from measureflow.report.words import brief, percent, sentence

MOST_COLUMNS = 16  # of the heat map


def save_report(summary: Summary, folder: str | Path, title: str) -> list[Path]:
    """Write labels.csv, centres.csv, report.png and report.html, and say where."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / name for name in ("labels.csv", "centres.csv", "report.png", "report.html")]
    summary.labelled().to_csv(files[0], index=False)
    summary.centers().to_csv(files[1], index=False)
    draw(summary, title).savefig(files[2], dpi=130)
    files[3].write_text(page(summary, title), encoding="utf-8")
    return files


def page(summary: Summary, title: str) -> str:
    """The report as one HTML file: no script, no link, the pictures inside."""
    skipped = ", ".join(f"{escape(name)} ({escape(why)})" for name, why in summary.table.skipped.items())
    notes = " ".join(escape(sentence(words)) for words in summary.table.notes())
    return PAGE.format(
        title=escape(title),
        headline=escape(summary.headline()),
        certainty=escape(summary.certainty()),
        warning="".join(f'<p class="warning">{escape(words)}</p>' for words in summary.diagnosis),
        pictures="\n".join(_figure(words, figure) for words, figure in _pictures(summary).items()),
        clusters="\n".join(_row(summary, k) for k in range(len(summary.sizes))),
        back="<th>comes back</th>" if summary.mixture.stability_ is not None else "",
        heat=_heat(summary),
        columns=escape(", ".join(summary.table.columns)),
        skipped=f" Skipped: {skipped}." if skipped else "",
        notes=notes and f" {notes}",
        noise=_noise(summary),
        far=" Rows far from the rest are not counted in them." if summary.outliers.any() else "",
        again=_again(summary),
    )


def _pictures(summary: Summary) -> dict[str, Figure]:
    """Each picture with the words that stand for it where it cannot be seen."""
    project, names = plane(summary)

    def flat(draw_on):
        def drawn(axes):
            draw_on(axes, summary, project)
            axes.set(xlabel=names[0], ylabel=names[1])
            if len(summary.table.columns) == 1:
                axes.set_yticks([])

        return drawn

    clusters = alone(flat(draw_clusters))
    flow = alone(flat(draw_flow))
    flow.axes[0].set(xlim=clusters.axes[0].get_xlim(), ylim=clusters.axes[0].get_ylim())
    out = {
        "The rows in the colours of their clusters": clusters,
        "The flow that found them": flow,
        "The probability of each number of clusters": alone(lambda axes: draw_uncertainty(axes, summary)),
    }
    curve = dial_curve(summary.table)
    if curve:
        out["The number of clusters over the dial"] = alone(lambda axes: draw_dial(axes, curve, summary))
    return out


def _figure(words: str, figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=140, transparent=True)
    return f'<img alt="{words}" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'


def _row(summary: Summary, k: int) -> str:
    traits = "<br>".join(escape(trait) for trait in summary.traits(k)) or PLAIN
    stable = summary.mixture.stability_
    cells = [_dot(k), f"{summary.sizes[k]:,}", percent(summary.shares[k])]
    cells += [] if stable is None else [f"{stable.clusters[k]:.0%}"]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in [*cells, traits]) + "</tr>"


def _dot(k: int) -> str:
    return f'<span class="dot" style="background:{colour(k)}">{k}</span>'


def _heat(summary: Summary) -> str:
    """Clusters by columns: the centre, and how far it lies from the mean of all rows as a colour."""
    z = summary.differences
    shown = np.sort(np.argsort(-np.abs(z).max(0), kind="stable")[:MOST_COLUMNS])
    names = [escape(summary.table.columns[j]).replace("_", "_<wbr>").replace("/", "/<wbr>") for j in shown]
    head = "".join(f"<th>{name}</th>" for name in names)
    centers = summary.means
    cells = ["".join(_cell(z[k, j], centers[k, j]) for j in shown) for k in range(len(z))]
    rows = "".join(f"<tr><td>{_dot(k)}</td>{line}</tr>" for k, line in enumerate(cells))
    return f"<table class=heat><tr><th></th>{head}</tr>{rows}</table>"


def _cell(z: float, centre: float) -> str:
    strength = min(1.0, abs(z) / 2.2) * 0.75
    tint = "0, 121, 140" if z > 0 else "209, 73, 91"
    return f'<td style="background:rgba({tint}, {strength:.2f})" title="{z:+.1f} sd">{brief(centre)}</td>'


def _noise(summary: Summary) -> str:
    m = summary.mixture
    strength = f" The signal-to-noise ratio is {m.snr_db_:.1f} dB." if np.isfinite(m.snr_db_) else ""
    spread = zip(summary.table.columns, np.sqrt(np.diagonal(m.noise_covariance_)), strict=True)
    told = ", ".join(f"{escape(name)} {sd:.3g}" for name, sd in list(spread)[:8])
    return f"Standard deviations within clusters: {told}.{strength}"


def _again(summary: Summary) -> str:
    """What it means that a cluster comes back, where that was measured."""
    if summary.mixture.stability_ is None:
        return ""
    share, alike = f"{SHARE:.0%}", f"{RECOVERED:g}"
    return (
        f" A cluster comes back if a fit to {share} of the rows has one much like it: of all rows in either, at least "
        f"{alike} are in both."
    )


PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}: {headline}</title>
<style>
  :root {{ --paper: #fff; --ink: #22303c; --soft: #66727f; --line: #dfe3e8; --care: #fdf3dc; }}
  @media (prefers-color-scheme: dark) {{
    :root {{ --paper: #14181e; --ink: #e6eaef; --soft: #9aa5b1; --line: #2b323b; --care: #3a301a; }}
  }}
  * {{ box-sizing: border-box; }}
  body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1180px;
         margin: 2.5rem auto; padding: 0 1.5rem; overflow-wrap: anywhere; }}
  h1 {{ font-size: 1.7rem; margin: 0; }}
  h2 {{ font-size: 1.1rem; margin: 2rem 0 .5rem; }}
  p {{ margin: .4rem 0; }}
  .file, .foot {{ color: var(--soft); }}
  .foot {{ font-size: .9rem; margin-top: 2rem; }}
  .warning {{ background: var(--care); border-left: 4px solid #edae49; padding: .5rem .8rem; }}
  .pictures {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: 1rem; }}
  .pictures img {{ width: 100%; }}
  .scroll {{ overflow-x: auto; }}
  table {{ border-collapse: collapse; width: 100%; }}
  th {{ text-align: left; font-weight: 600; overflow-wrap: normal; }}
  th, td {{ padding: .45rem .8rem .45rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }}
  .words td:not(:last-child) {{ white-space: nowrap; }}
  .heat {{ width: auto; font-size: .9rem; }}
  .heat th {{ overflow-wrap: normal; font-size: .85rem; vertical-align: bottom; }}
  .heat td {{ padding: .35rem .55rem; text-align: right; border: 2px solid var(--paper); white-space: nowrap; }}
  .dot {{ display: inline-block; min-width: 1.6em; line-height: 1.6em; border-radius: .8em; color: #fff;
         text-align: center; font-weight: 700; font-size: .85rem; padding: 0 .3em; }}
  @media (max-width: 560px) {{ body {{ margin: 1.2rem auto; padding: 0 1rem; }} h1 {{ font-size: 1.4rem; }}
    th, td {{ padding-right: .5rem; font-size: .92rem; }}
    .words tr {{ display: grid; grid-template-columns: repeat(4, auto) 1fr; }}
    .words :is(th, td):not(:last-child) {{ border-bottom: 0; padding: .45rem 1.1rem 0 0; }}
    .words :is(th, td):last-child {{ grid-column: 1 / -1; }} }}
  @media print {{ body {{ margin: 0; }} }}
</style>
<p class="file">{title}</p>
<h1>{headline}</h1>
<p>{certainty}.</p>
{warning}
<div class="pictures">
{pictures}
</div>
<h2>What distinguishes each cluster</h2>
<table class="words">
<tr><th>cluster</th><th>rows</th><th>share</th>{back}<th>differs most from all rows in</th></tr>
{clusters}
</table>
<h2>Centres, column by column</h2>
<div class="scroll">{heat}</div>
<p class="foot">Columns used: {columns}.{skipped}{notes} {noise}
Numbers in brackets are the centre of the cluster and how far it lies from the mean of all rows, in standard deviations
of all rows (sd); the colour of a cell shows the same distance.{far}{again} labels.csv has every row with its cluster,
centres.csv every centre.</p>
</html>
"""
