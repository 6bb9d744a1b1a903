"""Write every figure of the README and the docs from files: ``python benchmarks/pages.py [--check]``.

Two pages are made whole, docs/scoreboard.md and docs/models.md. In the others, what stands between
``<!-- begin NAME -->`` and ``<!-- end NAME -->`` is made by the function of that name in BLOCKS. The sources are
benchmarks/results/, src/measureflow/weights/ and configs/, so the pages can be made again without measuring again.
"""

import argparse
import csv
import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
WEIGHTS = ROOT / "src" / "measureflow" / "weights"
WITH_BLOCKS = ("README.md", "docs/guide.md", "docs/scaling.md", "docs/lab-book.md")
MADE = "<!-- made by benchmarks/pages.py: run `make scoreboard FROM=results` instead of editing -->"


def table(headings: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; a bar inside a cell is escaped."""
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in [headings, *cells]]
    return "\n".join([lines[0], "|" + "---|" * len(headings), *lines[1:]])


def number(value) -> str:
    """Three figures, without an exponent where a person would write none."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= 1000:
        return f"{round(value, 2 - len(str(int(abs(value)))) + 1):,.0f}"
    return f"{value:.3g}"


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) if path.exists() else []


# --- the scoreboard


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
        "processor. There stands the *ratio* peer / ours, so above one we are faster or smaller, unless the note says "
        "otherwise, and behind it ours and the peer's; a ratio in bold is below *target*, which is what is promised. A "
        "dash says that the row was not run there. `make scoreboard` measures all of it again on this machine and "
        "rewrites this page; `make scoreboard FROM=results` rewrites it from the saved results.",
        scoreboard_summary() + missed_targets(),
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
    promised = [row for row in rows if row["met"] is not None]
    met = sum(row["met"] for row in promised)
    return f"{processor}: {len(rows)} rows, {len(promised)} with a target, {met} of those met."


def missed_targets() -> str:
    missed = [(name, row) for name in processors() for row in measured_rows(name) if row["met"] is False]
    return "".join(f"\n- below target on {name}: {row['name']}" for name, row in missed)


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


# --- model cards

WORDS = {
    "flow-transformer": (
        "The transformer of Zimin 2025, section 3: one block of weights, applied layer after layer, moves the points "
        "of a cloud onto the centres of the mixture they came from. The signal-to-noise ratio sets how far.",
        "- Two columns only, of data that are a mixture of Gaussians with one spherical noise.\n"
        "- The signal-to-noise ratio must be given, and lie in the range it was trained on.\n"
        "- It says nothing about how many clusters there are: tokens that meet are one cluster.\n"
        "- Time grows with the square of the number of points.",
    ),
    "any-dimension": (
        "The flow behind `FlowMixture`. Its gates read invariants alone, so one set of weights serves every dimension, "
        "and turning the data turns the answer. It also says by how much the guess of the noise it was given is off.",
        "- Trained on round Gaussian clusters of one size: it tiles unequal, curved or heavy-tailed ones by several. "
        "[The guide](guide.md) says what `FlowMixture` does about it, and how to notice.\n"
        "- Dimensions and numbers of clusters beyond those in the table above were never seen.\n"
        "- Time grows with the square of the number of rows, so `FlowMixture` shows it a sample.",
    ),
}


def models() -> str:
    cards = [model_card(path.parent) for path in sorted(WEIGHTS.glob("*/config.json"))]
    intro = (
        "What ships in `measureflow/weights`: what each model was trained on, what that cost, and where not to use it. "
        "Weights are safetensors, so reading them runs no code; `measureflow doctor` checks their checksums."
    )
    return "\n\n".join(["# Model cards", MADE, intro, *cards]) + "\n"


def model_card(folder: Path) -> str:
    card = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    what, limits = WORDS.get(card["kind"], ("", "- Not written down yet."))
    settings = ", ".join(f"`{key}` {value}" for key, value in card["settings"].items())
    parts = [f"## {folder.name}", what, f'```python\nload_pretrained("{folder.name}")\n```']
    facts = [["kind", f"`{card['kind']}`"], ["settings", settings], *model_size(folder)]
    config = ROOT / str(card["facts"].get("config", ""))
    if config.is_file():
        facts += [["recipe", f"`measureflow train {config.relative_to(ROOT)}`"], *training_data(config)]
    facts += training_cost(folder, card)
    parts.append(table(["", ""], facts))
    if scores := read_csv(folder / "evaluations.csv"):
        parts += [
            "Squared W2 on the test sets of Zimin 2025, E.1, at 1000 points, as training went on:",
            learning(scores),
        ]
    return "\n\n".join([*parts, "**Limits**", limits])


def model_size(folder: Path) -> list[list[str]]:
    path = folder / "model.safetensors"
    head = path.read_bytes()
    names = json.loads(head[8 : 8 + int.from_bytes(head[:8], "little")])
    shapes = [entry["shape"] for name, entry in names.items() if name != "__metadata__"]
    count = sum(product(shape) for shape in shapes)
    return [["numbers", f"{count:,} in {len(shapes)} tensors"], ["file", f"{len(head) / 1e6:.2f} MB"]]


def product(shape: list[int]) -> int:
    total = 1
    for side in shape:
        total *= side
    return total


def training_data(config: Path) -> list[list[str]]:
    """The prior and the stages, as the config says them."""
    recipe = tomllib.loads(config.read_text(encoding="utf-8"))
    data = {key: value for key, value in recipe.get("data", {}).items() if key != "workers"}
    prior = ", ".join(f"`{key}` {value}" for key, value in data.items()) or "2 to 20 clusters, 3 to 15 dB, d = 2"
    return [
        ["data", f"random mixtures, drawn as they are needed: {prior}"],
        ["planned", "; ".join(planned(stage) for stage in recipe["stages"])],
    ]


def planned(stage: dict) -> str:
    """A stage of training in words."""
    if "n_least" in stage:
        sets = f"{stage['batch'] * stage['n']:,} points in sets of {stage['n_least']} to {stage['n']}"
    else:
        sets = f"{stage['batch']} sets of {stage['n']} points"
    columns = f", `d` {stage['d']}" if "d" in stage else ""
    return f"{stage['steps']:,} steps of {sets}{columns}"


def training_cost(folder: Path, card: dict) -> list[list[str]]:
    steps = card["facts"].get("steps")
    rows = [["steps done", f"{steps:,}"]] if isinstance(steps, int) else []
    hours = training_seconds(folder) / 3600
    return [*rows, ["time", f"{hours:.1f} hours on one core, shared with other work"]] if hours else rows


def training_seconds(folder: Path) -> float:
    """Seconds of a run, from the log beside the weights: each row is a mean over the steps since the one before."""
    log, before, total = read_csv(folder / "log.csv"), -1, 0.0
    for row in log:
        step = int(row["step"])
        total += (step - before) * float(row.get("mean_seconds") or row.get("seconds") or 0)
        before = step
    return total


def learning(scores: list[dict[str, str]]) -> str:
    columns = [key for key in scores[0] if key != "step"]
    headings = ["steps", *(key.removeprefix("w2_").replace("db", " dB") for key in columns)]
    return table(headings, [[row["step"], *(row[key] for key in columns)] for row in scores])


# --- blocks in pages that are written by hand


def flow_transformer_learning() -> str:
    return learning(read_csv(WEIGHTS / "flow-transformer" / "evaluations.csv"))


def training_rates() -> str:
    """Sets and tokens a second, by model and size of a set, from the logs beside the weights."""
    rows = []
    for folder in sorted(path.parent for path in WEIGHTS.glob("*/log.csv")):
        config = ROOT / json.loads((folder / "config.json").read_text(encoding="utf-8"))["facts"]["config"]
        batches = {s["n"]: s["batch"] for s in tomllib.loads(config.read_text(encoding="utf-8"))["stages"]}
        seconds: dict[int, list[float]] = {}
        for row in read_csv(folder / "log.csv"):
            seconds.setdefault(int(row["n"]), []).append(float(row.get("mean_seconds") or row["seconds"]))
        for n, times in seconds.items():
            step = sorted(times)[len(times) // 2]
            sets = batches[n] / step
            rows.append([folder.name, str(n), str(batches[n]), *map(number, (step, sets, sets * n))])
    return table(["model", "points a set", "sets a step", "seconds a step", "sets/s", "tokens/s"], rows)


def costs() -> dict:
    path = RESULTS / "scaling" / "costs.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def model_costs() -> str:
    rows = [
        [row["model"], *(number(row[key]) for key in ("n", "parameters", "flops_per_token", "saved_bytes_per_token"))]
        for row in costs().get("models", [])
    ]
    headings = [
        "model",
        "points a set",
        "parameters",
        "flops per token and step",
        "bytes kept per token for the gradient",
    ]
    return table(headings, rows)


def two_processes() -> str:
    rows = [
        [
            str(row["processes"]),
            *(number(row[key]) for key in ("steps", "step_seconds", "bytes_per_step", "difference")),
        ]
        for row in costs().get("processes", [])
    ]
    headings = [
        "processes",
        "steps",
        "seconds a step",
        "gradient bytes each sends a step",
        "largest difference of weights",
    ]
    return table(headings, rows)


def dask_rows() -> str:
    """Each size, the median of several runs, with the quickest and the slowest."""
    rows = []
    for row in costs().get("dask", []):
        times = row.get("all_seconds", [row["fit_seconds"]])
        spread = f"{number(row['fit_seconds'])} ({number(min(times))} to {number(max(times))})"
        keys = ("rows_per_second", "summary_bytes_per_block", "n_clusters")
        rows.append([number(row["rows"]), number(row["blocks"]), spread, *(number(row[key]) for key in keys)])
    return table(["rows", "blocks", "seconds", "rows/s", "bytes a block sends back", "clusters found"], rows)


def extrapolation() -> str:
    rows = [[row["what"], row["from"], row["gives"]] for row in costs().get("extrapolation", [])]
    return table(["question", "worked out from", "answer"], rows)


def scaling_machine() -> str:
    """When, at which commit and on what each part was measured."""
    rows = []
    for part, about in costs().get("measured", {}).items():
        facts = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in about.get("machine", {}).items())
        rows.append([part, about["date"], about["commit"] or "not recorded", facts or "not recorded"])
    return table(["part", "date", "commit", "machine"], rows)


BLOCKS = {
    "scoreboard-summary": scoreboard_summary,
    "model-scores": model_scores,
    "flow-transformer-learning": flow_transformer_learning,
    "training-rates": training_rates,
    "model-costs": model_costs,
    "two-processes": two_processes,
    "dask-rows": dask_rows,
    "extrapolation": extrapolation,
    "scaling-machine": scaling_machine,
}


def filled(text: str) -> str:
    """The page with every marked block made anew; an unknown name is an error."""

    def fill(found: re.Match) -> str:
        return f"<!-- begin {found[1]} -->\n{BLOCKS[found[1]]()}\n<!-- end {found[1]} -->"

    return re.sub(r"<!-- begin ([\w-]+) -->\n.*?<!-- end \1 -->", fill, text, flags=re.DOTALL)


def pages() -> dict[Path, str]:
    """Every page that holds figures, as it should read."""
    made = {ROOT / "docs/scoreboard.md": scoreboard(), ROOT / "docs/models.md": models()}
    for name in WITH_BLOCKS:
        if (ROOT / name).exists():
            made[ROOT / name] = filled((ROOT / name).read_text(encoding="utf-8"))
    return made


def stale() -> list[str]:
    """Pages on disk that differ from what the sources say now."""
    return [
        str(path.relative_to(ROOT))
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks/pages.py", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is out of date")
    check = parser.parse_args(arguments).check
    old = stale()
    if not check:
        for path, text in pages().items():
            path.write_text(text, encoding="utf-8")
    for name in old:
        print(f"{'out of date' if check else 'written'}: {name}")
    return 1 if check and old else 0


if __name__ == "__main__":
    sys.exit(main())
