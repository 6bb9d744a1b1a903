"""``measureflow cluster``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from measureflow.cli.app import AsJson, insist_on_a_folder, main

MOST_NAMED = 16  # columns in the first line; --json has all of them


@main.command(short_help="Find the clusters of a table.")
def cluster(
    data: Annotated[Path, typer.Argument(help="A table: CSV, TSV, JSON, Excel or Parquet, gzipped or not.")],
    out: Annotated[Path, typer.Option(help="Folder for labels, centres and the report.")] = Path("out/cluster"),
    columns: Annotated[str | None, typer.Option(help="Columns to use, as a,b,c; all numeric ones by default.")] = None,
    n_clusters: Annotated[int | None, typer.Option(min=1, help="Number of clusters; found by default.")] = None,
    snr_db: Annotated[
        float | None, typer.Option(help="Signal-to-noise ratio, dB; lower is coarser. Found by default.")
    ] = None,
    assume: Annotated[str, typer.Option(help="What clusters look like: any, or gaussian.")] = "any",
    stability: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How many times to fit 80% of the rows again, to see which clusters come back; 0 for none. By "
            "default 10 if there are 20 to 1,000 rows.",
        ),
    ] = None,
    missing: Annotated[str, typer.Option(help="Rows with missing values: drop, or error.")] = "drop",
    as_json: AsJson = False,
) -> None:
    """Find the clusters of a table, however many there are, and write a one-page report.

    It writes labels.csv (every row with its cluster and how probable that is), centres.csv, report.html and
    report.png. The exit code is 2 when the table cannot be used.

    Examples:

      measureflow cluster data.csv

      measureflow cluster data.parquet --columns height,weight --out report

      measureflow cluster data.csv --stability 50

      measureflow cluster data.xlsx --missing error --n-clusters 4 --json
    """
    from rich.console import Console

    try:
        with Console(stderr=True).status("reading") as status:
            from measureflow.tables.read import read_table

            table = read_table(data, None if columns is None else [name.strip() for name in columns.split(",")])
            insist_on_a_folder(out)
            if missing == "error":
                table.insist_on_complete_rows()
            status.update("starting")
            from measureflow.report.page import save_report
            from measureflow.report.summary import Summary, refits

            status.update(f"clustering {len(table.frame):,} rows of {len(table.columns)} columns")
            n_stability = refits(len(table.frame), n_clusters) if stability is None else stability
            options = {"n_clusters": n_clusters, "snr_db": snr_db, "assume": assume, "n_stability": n_stability or None}
            summary = Summary.fit(table, **options, missing=missing, random_state=0)
            status.update("writing the report")
            files = save_report(summary, out, data.name)
    except (ValueError, OSError) as error:
        typer.echo(f"Cannot cluster {data}: {error}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps(summary.to_dict() | {"files": [str(file) for file in files]}, indent=2))
        return
    _print_clusters(summary, files)


def _print_clusters(summary, files) -> None:
    table = summary.table
    from measureflow.report.words import listed

    typer.echo(f"Columns used: {listed(table.columns, MOST_NAMED)}")
    for name, reason in table.skipped.items():
        typer.echo(f"  skipped {name}: {reason}")
    for note in table.notes():
        typer.echo(f"  {note}")
    typer.echo(f"{summary.headline()}.")
    for line in [*(f"{words}." for words in summary.certainties()), *summary.lines()]:
        typer.echo(f"  {line}")
    for words in summary.diagnosis:
        typer.echo(f"Take care: {words}", err=True)
    typer.echo("\n".join(str(file) for file in files))
