"""The model cards: what ships, what it was trained on, what that cost, and where not to use it."""

import json
import math
from pathlib import Path

from figures.cells import MADE, ROOT, WEIGHTS, read_csv, recipes, table

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
    "any-shape": (
        "The second flow behind `FlowMixture`: positions flow in space and colours on a sphere, along the same "
        "attention, and it says for every two rows how probable it is that they belong together. `average.json` beside "
        "the weights holds the numbers that weigh its posterior against the Gaussians'. The steps below went on from "
        "weights that had learned from narrower priors for some 98,000 steps, with one layer for all steps of the flow "
        "(lab book); half of them took two cores.",
        "- It knows what its [prior](prior.md) draws; a table unlike all of that may be cut in odd places.\n"
        "- It was trained on at most 60 clusters and a thousand rows; of more rows `FlowMixture` shows it a sample.\n"
        "- Clusters that differ in a few of many columns, and lines that cross, are hard for it.\n"
        "- Time and memory grow with the square of the number of rows.",
    ),
}
MIXTURES = "random mixtures, drawn as they are needed: "
SHAPES = "[sets of clusters of many shapes](prior.md), drawn as they are needed"
LEARNED = {
    "any-shape": "On {evaluate_sets} sets of {evaluate_n} rows never trained on: the loss, the adjusted Rand index "
    "of the partition it asks for by itself, and by how much its number of clusters is off, as training went on:",
}
LEARNED_W2 = "Squared W2 on the test sets of Zimin 2025, E.1, at 1000 points, as training went on:"
NAMES = {"pairs": "loss", "ari": "index", "k_error": "clusters off by"}


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
    if configs := recipes(folder):
        lines = [f"`measureflow train {config.relative_to(ROOT)}`" for config in configs]
        facts += [["recipe", ", then ".join(lines)], *training_data(list(configs.values()))]
    facts += training_cost(folder, card)
    parts.append(table(["", ""], facts))
    if scores := read_csv(folder / "evaluations.csv"):
        recipe = list(configs.values())[-1] if configs else {}
        parts += [LEARNED.get(card["kind"], LEARNED_W2).format(**recipe), learning(scores)]
    return "\n\n".join([*parts, "**Limits**", limits])


def model_size(folder: Path) -> list[list[str]]:
    path = folder / "model.safetensors"
    head = path.read_bytes()
    names = json.loads(head[8 : 8 + int.from_bytes(head[:8], "little")])
    shapes = [entry["shape"] for name, entry in names.items() if name != "__metadata__"]
    count = sum(math.prod(shape) for shape in shapes)
    return [["numbers", f"{count:,} in {len(shapes)} tensors"], ["file", f"{len(head) / 1e6:.2f} MB"]]


def training_data(runs: list[dict]) -> list[list[str]]:
    """The prior and the stages, as the configs say them."""
    recipe = runs[-1]
    data = {key: value for key, value in recipe.get("objective", {}).items() if key != "name"}
    prior = ", ".join(f"`{key}` {value}" for key, value in data.items()) or "2 to 20 clusters, 3 to 15 dB, d = 2"
    return [
        ["data", SHAPES if recipe["kind"] == "any-shape" else MIXTURES + prior],
        ["planned", "; ".join(planned(stage) for run in runs for stage in run["stages"])],
    ]


def planned(stage: dict) -> str:
    """A stage of training in words."""
    batch = stage["batch"] * stage.get("draws", 1)
    if "n_least" in stage:
        sets = f"{batch * stage['n']:,} points in sets of {stage['n_least']} to {stage['n']}"
    else:
        sets = f"{batch} sets of {stage['n']} points"
    columns = f", `d` {stage['d']}" if "d" in stage else ""
    return f"{stage['steps']:,} steps of {sets}{columns}"


def training_cost(folder: Path, card: dict) -> list[list[str]]:
    steps = card["facts"].get("steps")
    rows = [["steps done", f"{steps:,}"]] if isinstance(steps, int) else []
    hours = training_seconds(folder) / 3600
    return [*rows, ["time", f"{hours:.1f} hours by the clock of a shared machine"]] if hours else rows


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
    headings = ["steps", *(NAMES.get(key, key.removeprefix("w2_").replace("db", " dB")) for key in columns)]
    return table(headings, [[row["step"], *(shortened(row[key]) for key in columns)] for row in scores])


def shortened(number: str) -> str:
    """A number as it was saved, to four digits where it was saved with all of them."""
    return f"{float(number):.4g}" if len(number) > 10 else number


def learning_of(name: str) -> str:
    """The scores of a shipped model as its training went on."""
    return learning(read_csv(WEIGHTS / name / "evaluations.csv"))
