"""The command line. Heavy packages load inside the commands, so that ``--help`` answers at once."""

import json
from pathlib import Path
from typing import Annotated, cast

import typer

from measureflow import __version__

main = typer.Typer(
    name="measureflow",
    help="Attention layers as velocity fields on probability measures: simulate, build, train, cluster.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # help in plain text: loading rich would take two thirds of the time it needs
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
    """Say what is installed, check the weights' checksums, and solve problems with known answers.

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


@main.command()
def cluster(
    data: Annotated[Path, typer.Argument(help="A table: CSV, TSV or Parquet.")],
    out: Annotated[Path, typer.Option(help="Folder for labels, centres and the report.")] = Path("out/cluster"),
    columns: Annotated[str | None, typer.Option(help="Columns to use, as a,b,c; all numeric ones by default.")] = None,
    n_clusters: Annotated[int | None, typer.Option(min=1, help="Number of clusters; found by default.")] = None,
    snr_db: Annotated[float | None, typer.Option(help="Signal-to-noise ratio; lower is coarser.")] = None,
    missing: Annotated[str, typer.Option(help="Rows with missing values: error, or drop.")] = "error",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of words.")] = False,
) -> None:
    """Find the clusters of a table, however many there are, and write a one-page report.

    labels.csv has every row with its cluster and how probable it is, centres.csv the centres; report.html and
    report.png show them. The exit code is 2 when the table cannot be used.

    Examples:

      measureflow cluster data.csv

      measureflow cluster data.parquet --columns height,weight --out report

      measureflow cluster data.csv --missing drop --n-clusters 4 --json
    """
    import warnings

    from rich.console import Console

    try:
        with Console(stderr=True).status("starting") as status:
            from measureflow.estimators import FlowMixture, UnfamiliarDataWarning
            from measureflow.report.page import save_report
            from measureflow.report.summary import Summary
            from measureflow.tables.read import read_table

            status.update(f"reading {data.name}")
            table = read_table(data, None if columns is None else [name.strip() for name in columns.split(",")])
            status.update(f"clustering {len(table.frame):,} rows of {len(table.columns)} columns")
            if missing == "error":
                table.insist_on_complete_rows()
            mixture = FlowMixture(n_clusters, snr_db=snr_db, missing=missing)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UnfamiliarDataWarning)
                mixture.fit(table.values)
            odd = [str(w.message) for w in caught if issubclass(w.category, UnfamiliarDataWarning)]
            summary = Summary.of(table, mixture, odd[0] if odd else None)
            status.update("writing the report")
            files = save_report(summary, out, data.name)
    except (ValueError, OSError) as error:
        typer.echo(f"Cannot cluster {data}: {error}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        typer.echo(json.dumps(summary.to_dict() | {"files": [str(file) for file in files]}, indent=2))
        return
    _print_clusters(summary, files)


@main.command()
def train(
    config: Annotated[Path, typer.Argument(help="A TOML file such as configs/tiny.toml.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the run; runs/<name of the config> by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run in that folder stopped.")] = False,
    devices: Annotated[int | None, typer.Option(help="Devices to use; one by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of words.")] = False,
) -> None:
    """Train a model; interrupt it at any moment and go on later with --resume, to the same bits.

    Examples:

      measureflow train configs/tiny.toml

      measureflow train configs/cpu.toml --out runs/mine --resume

      torchrun --nproc-per-node 2 -m measureflow.cli train configs/cpu.toml
    """
    from measureflow.training.progress import run_with_progress

    try:
        folder = run_with_progress(config, out or Path("runs") / config.stem, resume=resume, devices=devices)
    except (ValueError, OSError) as error:
        typer.echo(f"Cannot train: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(json.dumps({"model": str(folder)}) if as_json else f"The model is in {folder}")


@main.command()
def simulate(
    attention: Annotated[
        str, typer.Option(help="softmax, l2, sinkhorn, linear, linear-epsilon, sigmoid, relu or exp.")
    ] = "softmax",
    d: Annotated[int, typer.Option(help="Dimension of a token.")] = 2,
    n: Annotated[int, typer.Option(help="Number of tokens.")] = 500,
    time: Annotated[float, typer.Option(help="How long to flow.")] = 2.0,
    layers: Annotated[int, typer.Option(help="States to keep along the way.")] = 40,
    value: Annotated[float, typer.Option(help="V is this number times the identity.")] = 1.0,
    key: Annotated[float, typer.Option(help="K is this number times the identity.")] = 1.0,
    epsilon: Annotated[float, typer.Option(help="Of sinkhorn and linear-epsilon.")] = 1.0,
    heads: Annotated[int, typer.Option(help="Heads, which share the coordinates; must divide d.")] = 1,
    masked: Annotated[bool, typer.Option("--masked", help="Tokens see only those before them.")] = False,
    relative: Annotated[bool, typer.Option("--relative", help="Flow along attention minus the token itself.")] = False,
    sphere: Annotated[bool, typer.Option("--sphere", help="Keep tokens on the unit sphere.")] = False,
    gaussian: Annotated[bool, typer.Option("--gaussian", help="Flow the Gaussian itself, in closed form.")] = False,
    fast: Annotated[float | None, typer.Option(help="Tolerance of the fast field for very many tokens.")] = None,
    seed: Annotated[int, typer.Option(help="Of the random cloud.")] = 0,
    animate: Annotated[bool, typer.Option(help="Also write flow.gif.")] = True,
    out: Annotated[Path, typer.Option(help="Folder for trajectory.csv, flow.png and flow.gif.")] = Path("out/simulate"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of words.")] = False,
) -> None:
    """Flow a cloud of tokens along an attention, and save the trajectory and a picture of it.

    Examples:

      measureflow simulate --attention l2 --d 2 --n 2000 --relative --time 6

      measureflow simulate --attention softmax --gaussian --value -1

      measureflow simulate --attention softmax --gaussian --no-animate --json
    """
    import torch
    from rich.console import Console
    from rich.progress import Progress

    from measureflow import simulate as door
    from measureflow.flows import Outcome

    options = {"d": d, "n": n, "time": time, "n_layers": layers, "epsilon": epsilon, "heads": heads, "masked": masked}
    options |= {"relative": relative, "sphere": sphere, "gaussian": gaussian, "fast": fast, "seed": seed}
    try:
        K, V = (scale * torch.eye(max(d, 0), dtype=torch.float64) for scale in (key, value))
        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("flowing", total=time)
            tell = lambda t: bar.update(task, completed=t)  # noqa: E731
            path = door.simulate(attention, K=K, V=V, progress=tell, **options)
        files = door.save(path, out, animate=animate)
    except (ValueError, OSError, RuntimeError) as error:
        typer.echo(f"Cannot simulate: {error}", err=True)
        raise typer.Exit(2) from None
    if as_json:
        fate = {"divergence": str(path.divergence), "blow_up_time": _finite(path.blow_up_time)}
        typer.echo(json.dumps(fate | {"files": [str(file) for file in files]}, indent=2))
        return
    ending = {
        Outcome.FINISHED: "It did not diverge.",
        Outcome.BLEW_UP: f"Blow-up in finite time, at t = {float(path.blow_up_time):.6g}.",
        Outcome.LEFT_FOR_INFINITY: "It outgrew the limit: divergence in infinite time.",
    }
    typer.echo(ending[cast(Outcome, path.outcome)])
    typer.echo("\n".join(str(file) for file in files))


@main.command()
def reproduce(
    paper: Annotated[str | None, typer.Argument(help="zimin2025, clarkson2025, he2025 or castin2025.")] = None,
    artefact: Annotated[list[str] | None, typer.Argument(help="Tables and figures; all of them by default.")] = None,
    size: Annotated[str, typer.Option(help="tiny, small or paper.")] = "small",
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("out"),
    show: Annotated[bool, typer.Option("--list", help="Only list what there is.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of words.")] = False,
) -> None:
    """Make tables and figures of the papers: data (CSV), pictures (PNG, PDF) and what was found (findings.md).

    Examples:

      measureflow reproduce --list

      measureflow reproduce --list --json

      measureflow reproduce castin2025 fig1 fig3 --size tiny
    """
    from rich.console import Console
    from rich.progress import Progress

    from measureflow.reproduce import PAPERS, artefacts
    from measureflow.reproduce import reproduce as make

    try:
        if show or paper is None:
            shelf = {name: list(artefacts(name)) for name in (PAPERS if paper is None else (paper,))}
            lines = [f"{name}: {', '.join(names)}" for name, names in shelf.items()]
            typer.echo(json.dumps(shelf, indent=2) if as_json else "\n".join(lines))
            return
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


@main.command()
def explore(
    data: Annotated[Path | None, typer.Argument(help="A CSV to open the page with.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; any free one by default.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    results: Annotated[Path, typer.Option(help="Folder in which reproduce left its results.")] = Path("out"),
) -> None:
    """Open the web page: watch tokens cluster layer by layer, attention flow, and circuits act.

    It is served to this machine alone, and asks nothing of any other.

    Examples:

      measureflow explore

      measureflow explore data.csv --port 8000 --no-browser
    """
    try:
        from measureflow.explorer.server import create_app, serve
    except ImportError as error:
        typer.echo(f"The page needs more packages ({error.name}): pip install 'measureflow[explore]'", err=True)
        raise typer.Exit(2) from None
    from measureflow.reproduce import PAPERS, artefacts

    if data is not None and not data.is_file():
        typer.echo(f"Cannot explore: there is no file {data}", err=True)
        raise typer.Exit(2)
    try:
        app = create_app(data, results=results, artefacts={paper: artefacts(paper) for paper in PAPERS})
        serve(app, port, browser=browser)
    except OSError as error:
        typer.echo(f"Cannot explore: {error}", err=True)
        raise typer.Exit(2) from None


def _print_clusters(summary, files) -> None:
    table = summary.table
    typer.echo(f"Columns used: {', '.join(table.columns)}")
    for name, reason in table.skipped.items():
        typer.echo(f"  skipped {name}: {reason}")
    if summary.dropped:
        typer.echo(f"  left out {summary.dropped} rows with missing values")
    typer.echo(f"{summary.headline()}. {summary.certainty()}.")
    for line in summary.lines():
        typer.echo(f"  {line}")
    if summary.warning:
        typer.echo(f"Take care: {summary.warning}.", err=True)
    typer.echo("\n".join(str(file) for file in files))


def _finite(value) -> float | None:
    """A number that JSON can say: None for infinity."""
    return float(value) if float("-inf") < float(value) < float("inf") else None


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
