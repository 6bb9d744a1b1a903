"""The command line. Heavy packages load inside the commands, so that ``--help`` answers at once."""

import json
import re
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from measureflow import __version__

main = typer.Typer(
    name="measureflow",
    help="Attention layers as velocity fields on probability measures: simulate, build, train, cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"measureflow {__version__}")
        raise typer.Exit


@main.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


@main.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of words.")] = False,
) -> None:
    """Say what is installed, and check on a problem with a known answer that it works."""
    report = _diagnose()
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        _print_report(report)
    raise typer.Exit(0 if report["ok"] else 1)


@main.command()
def train(
    config: Annotated[Path, typer.Argument(help="A TOML file such as configs/tiny.toml.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the run; runs/<name of the config> by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in that folder stopped.")] = False,
    devices: Annotated[int | None, typer.Option(help="Devices to use; one by default.")] = None,
) -> None:
    """Train a model; interrupt it at any moment and go on later with --resume, to the same bits.

    Examples:

      measureflow train configs/tiny.toml

      measureflow train configs/cpu.toml --out runs/mine --resume

      torchrun --nproc-per-node 2 -m measureflow.cli train configs/cpu.toml
    """
    from measureflow.models.progress import run_with_progress

    try:
        folder = run_with_progress(config, out or Path("runs") / config.stem, resume=resume, devices=devices)
    except (ValueError, OSError) as error:
        typer.echo(f"Cannot train: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(f"The model is in {folder}")


def _diagnose() -> dict:
    import platform

    packages = _packages()
    missing = [name for name, found in packages["required"].items() if found is None]
    checks = [_check_transport()] if not missing else []
    return {
        "measureflow": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "required": packages["required"],
        "optional": packages["optional"],
        "threads": _threads() if not missing else {},
        "checks": checks,
        "ok": not missing and all(check["ok"] for check in checks),
    }


def _packages() -> dict[str, dict[str, str | None]]:
    """Read the versions of everything our own metadata asks for; None where it is not installed."""
    found: dict[str, dict[str, str | None]] = {"required": {}, "optional": {}}
    for line in metadata.requires("measureflow") or []:
        requirement, _, marker = line.partition(";")
        name = re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]
        found["optional" if "extra" in marker else "required"][name] = _installed(name)
    return found


def _installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _threads() -> dict[str, int]:
    import os

    import numba
    import torch

    return {"cpus": os.cpu_count() or 1, "torch": torch.get_num_threads(), "numba": numba.get_num_threads()}


def _check_transport() -> dict:
    """Move half the mass from 0 and half from 2 onto one atom at 1: the squared distance is exactly 1."""
    name = "exact transport"
    try:
        import torch

        from measureflow import measures

        points = torch.tensor([[[0.0], [2.0]]], dtype=torch.float64)
        atoms = torch.tensor([[[1.0]]], dtype=torch.float64)
        cost = float(measures.wasserstein2(points, atoms).cost)
    except Exception as error:  # a doctor reports every ailment instead of dying of it
        return {"name": name, "ok": False, "detail": f"{type(error).__name__}: {error}"}
    return {"name": name, "ok": abs(cost - 1) < 1e-12, "detail": f"squared W2 is {cost:g}, expected 1"}


def _print_report(report: dict) -> None:
    typer.echo(f"measureflow {report['measureflow']}, Python {report['python']}, {report['system']}")
    for group in ("required", "optional"):
        typer.echo(f"\n{group.capitalize()} packages")
        for name, found in report[group].items():
            typer.echo(f"  {name:<18} {found or 'not installed'}")
    if report["threads"]:
        typer.echo("\nThreads: " + ", ".join(f"{name} {count}" for name, count in report["threads"].items()))
    typer.echo("\nChecks")
    for check in report["checks"]:
        typer.echo(f"  {'passed' if check['ok'] else 'FAILED'}  {check['name']}: {check['detail']}")
    typer.echo("\nAll is well." if report["ok"] else "\nSomething is wrong; see above.")


if __name__ == "__main__":
    main()
