"""``measureflow simulate``."""

import json
from pathlib import Path
from typing import Annotated

import typer

from measureflow.cli.app import AsJson, insist_on_a_folder, main


@main.command(short_help="Flow a cloud of tokens along an attention.")
def simulate(
    attention: Annotated[
        str, typer.Option(help="softmax, l2, sinkhorn, linear, linear-epsilon, sigmoid, relu or exp.")
    ] = "softmax",
    d: Annotated[int, typer.Option(help="Dimension of a token.")] = 2,
    n: Annotated[int, typer.Option(help="Number of tokens.")] = 500,
    time: Annotated[float, typer.Option(help="How long to flow.")] = 2.0,
    layers: Annotated[int, typer.Option(help="Number of states to save on the way.")] = 40,
    value: Annotated[float, typer.Option(help="V is this number times the identity.")] = 1.0,
    key: Annotated[float, typer.Option(help="K is this number times the identity.")] = 1.0,
    epsilon: Annotated[float, typer.Option(help="The epsilon of sinkhorn and linear-epsilon.")] = 1.0,
    heads: Annotated[int, typer.Option(help="Number of heads; they share the coordinates, so it must divide d.")] = 1,
    masked: Annotated[bool, typer.Option("--masked", help="Tokens see only those before them.")] = False,
    relative: Annotated[bool, typer.Option("--relative", help="Flow along attention minus the token itself.")] = False,
    sphere: Annotated[bool, typer.Option("--sphere", help="Keep tokens on the unit sphere.")] = False,
    gaussian: Annotated[bool, typer.Option("--gaussian", help="Flow the Gaussian itself, in closed form.")] = False,
    fast: Annotated[float | None, typer.Option(help="Tolerance of the fast field for very many tokens.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random cloud.")] = 0,
    animate: Annotated[bool, typer.Option(help="Also write flow.gif.")] = True,
    out: Annotated[Path, typer.Option(help="Folder for trajectory.csv, flow.png and flow.gif.")] = Path("out/simulate"),
    as_json: AsJson = False,
) -> None:
    """Flow a cloud of tokens along an attention, and save the trajectory and a picture of it.

    Examples:

      measureflow simulate --attention l2 --d 2 --n 2000 --relative --time 6

      measureflow simulate --attention softmax --gaussian --value -1

      measureflow simulate --attention softmax --gaussian --no-animate --json
    """
    try:
        insist_on_a_folder(out)
    except ValueError as error:
        typer.echo(f"Cannot simulate: {error}", err=True)
        raise typer.Exit(2) from None
    import torch
    from rich.console import Console
    from rich.progress import Progress

    from measureflow import simulate as simulation

    options = {"d": d, "n": n, "time": time, "n_layers": layers, "epsilon": epsilon, "heads": heads, "masked": masked}
    options |= {"relative": relative, "sphere": sphere, "gaussian": gaussian, "fast": fast, "seed": seed}
    try:
        K, V = (scale * torch.eye(max(d, 0), dtype=torch.float64) for scale in (key, value))
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("flowing", total=time)
            tell = lambda t: bar.update(task, completed=t)  # noqa: E731
            path = simulation.simulate(attention, K=K, V=V, progress=tell, **options)
        files = simulation.save(path, out, animate=animate)
    except (ValueError, OSError, RuntimeError) as error:
        typer.echo(f"Cannot simulate: {error}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        fate = {"divergence": str(path.divergence), "blow_up_time": _finite(path.blow_up_time)}
        typer.echo(json.dumps(fate | {"files": [str(file) for file in files]}, indent=2))
        return
    typer.echo(simulation.ending(path))
    typer.echo("\n".join(str(file) for file in files))


def _finite(value) -> float | None:
    """A number that JSON can say: None for infinity."""
    return float(value) if float("-inf") < float(value) < float("inf") else None
