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
from measureflow.report.summary import PLAIN, SURE, Summary
from measureflow.report.words import brief, percent, sentence, times

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
        certainty="".join(f"<li>{escape(words)}.</li>" for words in summary.certainties()),
        warning="".join(f'<p class="warning">{escape(words)}</p>' for words in summary.diagnosis),
        pictures="\n".join(_figure(title, words, figure) for title, (words, figure) in _pictures(summary).items()),
        clusters="\n".join(_row(summary, k) for k in range(len(summary.sizes))),
        back="<th>comes back in</th>" if summary.mixture.stability_ is not None else "",
        heat=_heat(summary),
        columns=f"<p>Columns used: {escape(', '.join(summary.table.columns))}.</p>",
        skipped=f"<p>Left out: {skipped}.</p>" if skipped else "",
        notes=notes and f"<p>{notes}</p>",
        noise=_noise(summary),
        far=" Rows far from the rest are not counted in them." if summary.outliers.any() else "",
        again=_again(summary),
    )


def _pictures(summary: Summary) -> dict[str, tuple[str, Figure]]:
    """Each picture by its title, with the words that explain it."""
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
    hollow = f"Hollow rows have a probability below {SURE:g} in their cluster." if summary.uncertain else ""
    asked = summary.mixture.n_clusters is not None
    odds = alone(lambda axes: draw_uncertainty(axes, summary))
    out = {
        "The clusters": (f"A dot is a row, a number the centre of a cluster. {hollow}".strip(), clusters),
        "The flow": ("Each row is a token. The layers of the transformer move it along its line, from grey.", flow),
        "How probable is each K?": (
            "K was asked for." if asked else "K is the number of clusters; in colour, the answer.",
            odds,
        ),
    }
    curve = dial_curve(summary.table)
    if curve:
        other = ", which also considers other shapes" if np.isfinite(summary.mixture.expected_index_) else ""
        dot = f" The dot is the answer{other}." if np.isfinite(summary.mixture.snr_db_) else ""
        words = f"Right is finer: less noise, more clusters. The line supposes Gaussian clusters; shaded, K stays.{dot}"
        out["K over the dial"] = words, alone(lambda axes: draw_dial(axes, curve, summary))
    return out


def _figure(title: str, words: str, figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=170, transparent=True)
    data = base64.b64encode(buffer.getvalue()).decode()
    caption = f"<figcaption><strong>{title}</strong> {words}</figcaption>"
    return f'<figure>{caption}<img alt="{title}" src="data:image/png;base64,{data}"></figure>'


def _row(summary: Summary, k: int) -> str:
    traits = "<br>".join(escape(trait) for trait in summary.traits(k)) or PLAIN
    stable = summary.mixture.stability_
    cells = {"": _dot(k), "rows": f"{summary.sizes[k]:,}", "of all": percent(summary.shares[k])}
    if stable is not None:
        cells["back"] = times(stable.clusters[k], summary.mixture.n_stability)
    named = "".join(f'<td data-name="{name}">{cell}</td>' for name, cell in cells.items())
    return f"<tr>{named}<td>{traits}</td></tr>"


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
    return f"<p>Standard deviations within clusters: {told}.{strength}</p>"


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
  .sure {{ margin: .6rem 0 1.2rem; padding-left: 1.2rem; max-width: 60rem; }}
  .pictures {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr));
    gap: 1.6rem 2rem; }}
  figure {{ margin: 0; display: grid; gap: .4rem; align-content: space-between; }}
  figcaption {{ font-size: .9rem; color: var(--soft); }}
  figcaption strong {{ display: block; font-size: 1.02rem; color: var(--ink); }}
  .pictures img {{ width: 100%; }}
  .scroll {{ overflow-x: auto; }}
  table {{ border-collapse: collapse; width: 100%; }}
  th {{ text-align: left; font-weight: 600; overflow-wrap: normal; }}
  th, td {{ padding: .45rem .8rem .45rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }}
  .words td:not(:last-child) {{ white-space: nowrap; }}
  .heat {{ width: auto; font-size: .9rem; }}
  .heat th {{ overflow-wrap: normal; font-size: .85rem; vertical-align: bottom; }}
  .heat :is(th, td):first-child {{ position: sticky; left: 0; background: var(--paper); }}
  .heat td {{ padding: .35rem .55rem; text-align: right; border: 2px solid var(--paper); white-space: nowrap; }}
  .dot {{ display: inline-block; min-width: 1.6em; line-height: 1.6em; border-radius: .8em; color: #fff;
         text-align: center; font-weight: 700; font-size: .85rem; padding: 0 .3em; }}
  @media (max-width: 560px) {{ body {{ margin: 1.2rem auto; padding: 0 1rem; }} h1 {{ font-size: 1.4rem; }}
    th, td {{ padding-right: .5rem; font-size: .92rem; }}
    .words tr:first-child {{ display: none; }}
    .words tr {{ display: flex; flex-wrap: wrap; align-items: baseline; border-bottom: 1px solid var(--line); }}
    .words td {{ border-bottom: 0; padding: .45rem .9rem 0 0; }}
    .words td[data-name="rows"]::after {{ content: " rows"; }}
    .words td[data-name="back"]::before {{ content: "came back in "; }}
    .words td:last-child {{ flex-basis: 100%; padding-bottom: .5rem; }} }}
  @media print {{ body {{ margin: 0; }} }}
</style>
<p class="file">{title}</p>
<h1>{headline}</h1>
<ul class="sure">{certainty}</ul>
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
<div class="foot">
<p>Numbers in brackets are the centre of the cluster and how far it lies from the mean of all rows, in standard
deviations of all rows (sd). The colour of a cell shows the same distance.{far}{again}</p>
{columns}{skipped}{notes}{noise}
<p>labels.csv has every row with its cluster, centres.csv every centre.</p>
</div>
</html>
"""
