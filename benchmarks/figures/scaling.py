"""Rates and costs of training, and of tables larger than memory, for the pages about scale."""

import json

from figures.cells import RESULTS, WEIGHTS, number, read_csv, recipes, table


def training_rates() -> str:
    """Sets and tokens a second, by model and size of a set, from the logs beside the weights."""
    rows = []
    for folder in sorted(path.parent for path in WEIGHTS.glob("*/log.csv")):
        stages = [stage for recipe in recipes(folder).values() for stage in recipe["stages"]]
        batches = {stage["n"]: stage["batch"] * stage.get("draws", 1) for stage in stages}
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
