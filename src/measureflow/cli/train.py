"""``measureflow train``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from measureflow.cli.app import AsJson, insist_on_a_folder, main


@main.command(short_help="Train a model, or resume a training.")
def train(
    config: Annotated[Path, typer.Argument(help="A TOML file such as configs/tiny.toml.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the run; runs/<name of the config> by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in that folder stopped.")] = False,
    devices: Annotated[int | None, typer.Option(help="Devices to use; one by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model. Interrupt it at any moment and go on later with --resume: the result is the same to the bit.

    To train a finished run for longer, add stages to the end of its config and call it again with --resume.

    Examples:

      measureflow train configs/tiny.toml

      measureflow train configs/cpu.toml --out runs/mine --resume

      torchrun --nproc-per-node 2 -m measureflow.cli train configs/cpu.toml
    """
    try:
        if not config.is_file():
            raise ValueError(f"{config} is a folder" if config.is_dir() else f"there is no config {config}")
        insist_on_a_folder(out or Path("runs"))
        from measureflow.training.progress import run_with_progress

        folder = run_with_progress(config, out or Path("runs") / config.stem, resume=resume, devices=devices)
    except (ValueError, OSError) as error:
        typer.echo(f"Cannot train: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo("Stopped before the training began.", err=True)
        raise typer.Exit(130) from None
    typer.echo(json.dumps({"model": str(folder)}) if as_json else f"The model is in {folder}")
