"""``measureflow doctor``."""

import json

import typer

from measureflow.cli.app import AsJson, main


@main.command(short_help="Check what is installed.")
def doctor(
    as_json: AsJson = False,
) -> None:
    """Say what is installed, check the checksums of the weights, and solve problems with known answers.

    The exit code is 0 when all is well and 1 when something is wrong.

    Examples:

      measureflow doctor

      measureflow doctor --json
    """
    from rich.console import Console

    from measureflow.doctor import diagnose

    with Console(stderr=True).status("examining (a first run also compiles)"):
        report = diagnose()
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        _print_report(report)
    raise typer.Exit(0 if report["ok"] else 1)


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
