"""``measureflow reproduce``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from measureflow.cli.app import AsJson, insist_on_a_folder, main


@main.command(short_help="Make tables and figures of the papers.")
def reproduce(
    paper: Annotated[str | None, typer.Argument(help="zimin2025, clarkson2025, he2025 or castin2025.")] = None,
    artefact: Annotated[list[str] | None, typer.Argument(help="Tables and figures; all of them by default.")] = None,
    size: Annotated[str, typer.Option(help="tiny, small or paper.")] = "small",
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("out"),
    show: Annotated[
        bool, typer.Option("--list", help="List the tables and figures, with the size of the run that the docs show.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make tables and figures of the papers: data (CSV), pictures (PNG, PDF) and what was found (findings.md).

    Examples:

      measureflow reproduce --list

      measureflow reproduce --list --json

      measureflow reproduce castin2025 fig1 fig3 --size tiny
    """
    from rich.console import Console
    from rich.progress import Progress

    from measureflow.reproduce import PAPERS, artefacts, shown
    from measureflow.reproduce import reproduce as make
    from measureflow.reproduce.provenance import stale
    from measureflow.reproduce.run import module_of

    try:
        if show or paper is None:
            pages = shown()
            wanted = {name: artefacts(name) for name in (PAPERS if paper is None else (paper,))}
            shelf = {name: {one: pages.get(name, {}).get(one) for one in names} for name, names in wanted.items()}
            for name, one, run in ((name, *item) for name, runs in shelf.items() for item in runs.items()):
                if run is not None:
                    run["older"] = stale(run, module_of(name, one))
            lines = [_shelf_line(name, one, run) for name, runs in shelf.items() for one, run in runs.items()]
            typer.echo(json.dumps(shelf, indent=2) if as_json else "\n".join(lines))
            return
        insist_on_a_folder(out)
        made = {}
        with Progress(console=Console(stderr=True)) as bar:
            for name in bar.track(artefact or artefacts(paper), description=paper):
                files = make(paper, name, size, out)
                made[name] = [str(file) for file in files]
                if not as_json:
                    typer.echo(files[-1].read_text(encoding="utf-8"))
        if as_json:
            typer.echo(json.dumps(made, indent=2))
    except (ValueError, OSError) as error:
        typer.echo(f"Cannot reproduce: {error}", err=True)
        raise typer.Exit(2) from None


def _shelf_line(paper: str, artefact: str, run: dict | None) -> str:
    """One artefact: the size of the run that the pages show, what it is, if its code is newer, and what it spent."""
    if run is None:
        return f"{paper:<13}{artefact:<15}{'-':<7}not shown in the pages"
    what = run["title"].partition(", ")[2]
    age = f" (older than its code: {', '.join(run['older'])})" if run["older"] else ""
    return f"{paper:<13}{artefact:<15}{run['size']:<7}{what}{age} [{run['budget']}]"
