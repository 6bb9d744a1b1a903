"""``measureflow explore``."""

from pathlib import Path
from typing import Annotated

import typer

from measureflow.cli.app import main


@main.command(short_help="Open the web page.")
def explore(
    data: Annotated[Path | None, typer.Argument(help="A table to open the page with.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; any free one by default.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    results: Annotated[Path, typer.Option(help="Folder in which reproduce left its results.")] = Path("out"),
) -> None:
    """Open the web page: cluster a table and watch it happen, play with attention, take circuits apart.

    The page is served on this machine only, and your data stay on it.

    Examples:

      measureflow explore

      measureflow explore data.csv --port 8000 --no-browser
    """
    try:
        if data is not None:  # report a table that cannot be used here, not by an empty page
            from measureflow.tables.read import read_table

            read_table(data)
    except (ValueError, OSError) as error:
        typer.echo(f"Cannot explore: {error}", err=True)
        raise typer.Exit(2) from None
    try:
        from measureflow.explorer.server import create_app, serve
    except ImportError as error:
        typer.echo(f"The page needs more packages ({error.name}): pip install 'measureflow[explore]'", err=True)
        raise typer.Exit(2) from None
    from measureflow.reproduce import PAPERS, artefacts, shown

    try:
        shelf = {paper: artefacts(paper) for paper in PAPERS}
        app = create_app(data, results=results, artefacts=shelf, records=shown(), warm=True)
        serve(app, port, browser=browser)
    except (ValueError, OSError) as error:
        typer.echo(f"Cannot explore: {error}", err=True)
        raise typer.Exit(2) from None
