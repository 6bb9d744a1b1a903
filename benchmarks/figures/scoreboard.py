"""The scoreboard: every benchmark with a column for each make of processor, from benchmarks/results/."""

import json
from statistics import median

from figures.cells import MADE, RESULTS, ROOT, number, read_csv, table

PROCESSORS = ("AMD", "Intel")  # a column each, in this order, empty where nothing was run; others follow


def processors() -> list[str]:
    """The makes of processor that have a column: those above, and whatever else has results."""
    found = {path.parent.name for path in RESULTS.glob("*/*.json")} - {"scaling"}
    return [*PROCESSORS, *sorted(found - set(PROCESSORS))]


def benchmarks(processor: str) -> dict[str, dict]:
    """The tables saved on one make of processor, by name of group."""
    paths = sorted((RESULTS / processor).glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def scoreboard() -> str:
    groups = sorted({group for processor in processors() for group in benchmarks(processor)})
    parts = [
        "# Scoreboard",
        MADE,
        "Every benchmark, against a peer timed in the same run with the same threads, with a column for each make of "
        "processor. A cell has the *ratio* peer / ours, so above one we are faster or smaller, unless the note says "
        "otherwise; in brackets are ours and the peer's. A ratio in bold is below the *target*. A "
        "dash says that the row was not run there. `make scoreboard` measures all of it again on this machine and "
        "rewrites this page; `make scoreboard FROM=results` rewrites it from the saved results.",
        "## Summary",
        scoreboard_summary(),
        summary_table(groups),
        missed_targets(),
        *map(benchmark_section, groups),
        "## Shipped models",
        "Squared W2 between the tokens and the true mixing measure on the test sets of Zimin 2025, E.1; the printed "
        "numbers are those of Table 1. Less is better. [Model cards](models.md) say more.",
        model_scores(),
    ]
    return "\n\n".join(parts) + "\n"


def measured_rows(processor: str) -> list[dict]:
    return [row for group in benchmarks(processor).values() for row in group["rows"]]


def scoreboard_summary() -> str:
    return "\n".join(summary_of(processor) for processor in processors() if benchmarks(processor))


def summary_of(processor: str) -> str:
    rows = measured_rows(processor)
    aimed = [row for row in rows if row["met"] is not None]
    met = sum(row["met"] for row in aimed)
    return f"{processor}: {len(rows)} rows, {len(aimed)} with a target, {met} of those met."


def summary_table(groups: list[str]) -> str:
    """A row for each group: targets met of all, and the median ratio, on each processor."""
    makes = [processor for processor in processors() if benchmarks(processor)]
    rows = [
        [f"[{name}](#{anchor(name)})", *(met_cell(benchmarks(make).get(name)) for make in makes)] for name in groups
    ]
    return table(["group", *makes], rows)


def anchor(heading: str) -> str:
    """What a heading is called in a link."""
    return heading.lower().replace(" ", "-").replace("_", "-")


def met_cell(group: dict | None) -> str:
    if group is None:
        return "–"
    aimed = [row["met"] for row in group["rows"] if row["met"] is not None]
    met = f"{sum(aimed)} of {len(aimed)} targets met" if aimed else "no target"
    ratio = median(row["ratio"] for row in group["rows"])
    return f"{met if all(aimed) else f'**{met}**'}; {count(len(group['rows']))}, median ratio {number(float(ratio))}"


def count(n: int) -> str:
    return f"{n} row{'s' * (n != 1)}"


def missed_targets() -> str:
    """What is below target, in one list for each processor."""
    missed = {name: [row["name"] for row in measured_rows(name) if row["met"] is False] for name in processors()}
    sections = [
        f"Below target on {name}:\n\n" + "\n".join(f"- {row}" for row in rows) for name, rows in missed.items() if rows
    ]
    return "\n\n".join(sections) or "No row is below target."


def benchmark_section(name: str) -> str:
    """One group of rows: what was run where, and a table with a column for each processor."""
    groups = {processor: benchmarks(processor).get(name) for processor in processors()}
    about = [f"- {processor}: {origin(group)}" for processor, group in groups.items() if group]
    found: dict[str, dict[str, dict]] = {}  # row, processor: what was measured
    for processor, group in groups.items():
        for row in group["rows"] if group else []:
            found.setdefault(row["name"], {})[processor] = row
    rows = [
        [what, number(first(row, "target")), *(ratio_cell(row.get(p)) for p in groups), first(row, "note")]
        for what, row in found.items()
    ]
    return "\n\n".join([f"## {name}", "\n".join(about), table(["what", "target", *groups, "note"], rows)])


def origin(group: dict) -> str:
    """When, from which commit and on what a group was measured."""
    facts = group["machine"]
    commit = f"commit {group['commit']}" if group.get("commit") else "commit not recorded when it was measured"
    machine = f"{facts['cpu']}, {facts['cpus']} cores, {facts['torch_threads']} threads, {facts['system']}"
    return f"{group['date']}, {commit}; {machine}, torch {facts['torch']}"


def first(row: dict[str, dict], key: str):
    """The target or the note of a row, as the first processor that has it says it."""
    return next(iter(row.values()))[key]


def ratio_cell(row: dict | None) -> str:
    """The ratio, bold where it is below target, with ours and the peer's behind it."""
    if row is None:
        return "–"
    ratio = f"**{number(row['ratio'])}**" if row["met"] is False else number(row["ratio"])
    return f"{ratio} ({number(row['ours_s'])}, {number(row['peer_s'])})"


PRINTED_ROWS = {"w2_15db": "High SNR", "w2_10db": "Moderate SNR", "w2_5db": "Low SNR"}


def printed_scores() -> dict[str, str]:
    """What Table 1 of Zimin 2025 prints for the model that the flow transformer follows."""
    rows = read_csv(ROOT / "src/measureflow/reproduce/published/zimin2025.csv")
    wanted = [row for row in rows if (row["table"], row["column"]) == ("table1", "Uniform -> Uniform")]
    return {key: row["value"] for row in wanted for key, data in PRINTED_ROWS.items() if row["data"] == data}


def model_scores() -> str:
    """The shipped models on five hundred test sets of each level (bench_models.py), beside the printed numbers."""
    measured = next(groups["models"] for groups in map(benchmarks, processors()) if "models" in groups)
    scores: dict[str, dict[str, str]] = {}
    for row in measured["rows"]:
        model, level = row["name"].split(", ")
        scores.setdefault(model, {})[level] = f"{row['ours_s']:.5f}"
    rows = [[model, *levels.values()] for model, levels in scores.items()]
    printed = printed_scores()
    rows.append(["printed: 16 layers, uniform", *(printed[key] for key in PRINTED_ROWS)])
    return table(["model", "15 dB", "10 dB", "5 dB"], rows)
