"""The application that the commands belong to, and what they share."""

import os
from pathlib import Path
from typing import Annotated

import typer

from measureflow import __version__

main = typer.Typer(
    name="measureflow",
    help="Clusters without choosing how many, and attention as a velocity field on measures.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help in plain text: loading rich would take two thirds of the time it needs
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"measureflow {__version__}")
        raise typer.Exit


@main.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of words.")]


def insist_on_a_folder(out: Path) -> None:
    """A ValueError before the work if the results could not be written after it."""
    nearest = next(part for part in (out, *out.parents) if part.exists())
    if not nearest.is_dir():
        raise ValueError(f"--out must name a folder, and {nearest} is a file")
    if not os.access(nearest, os.W_OK):
        raise ValueError(f"--out must name a folder that can be written to, and {nearest.absolute()} cannot")
