"""Measure what docs/scaling.md plans with: ``python benchmarks/scaling.py [models] [processes] [dask]``.

Counts (flops, bytes) do not depend on the machine; seconds do, and are saved with it. Results go to
benchmarks/results/scaling/costs.json, from which pages.py fills the page.
"""

import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

sys.path.insert(0, str(Path(__file__).parent))
import pages
import run

ROOT = Path(__file__).parents[1]
OUT = run.RESULTS / "scaling" / "costs.json"
COLUMNS, BLOCK = 4, 50_000
BLOCKS, ROUNDS = (4, 40), 5  # sizes in turn, several times: a shared machine is slow in some minutes
ASSUMED_FLOPS = 10e12  # what one accelerator is taken to sustain: a quarter to a half of the peak of a common one
ASSUMED_LINK = 1e9  # bytes a second between two machines: a ten-gigabit network


# --- counts of one training step

FUSED = {  # the processor's fused attention, which torch's counter does not know
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *_, **__: sdpa_flop_count(q, k, v),
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        lambda grad, q, k, v, *_, **__: sdpa_backward_flop_count(grad, q, k, v)
    ),
}


def models() -> list[dict]:
    """Flops and bytes of a forward and backward pass, a token, for the shipped models at the sizes they trained at."""
    from measureflow.models import load_pretrained

    rows = []
    for name in load_pretrained.available():
        model = load_pretrained(name).requires_grad_(True)
        parameters = sum(p.numel() for p in model.parameters())
        for n in (128, 400, 1000):
            rows.append({"model": name, "n": n, "parameters": parameters, **step_costs(model, n)})
            print(rows[-1])
    return rows


def step_costs(model, n: int) -> dict:
    """Per token of a set of n points in the plane; scores that the backward pass computes anew are counted twice."""
    points = torch.randn(1, n, 2, generator=torch.Generator().manual_seed(0))
    snr = torch.tensor([10.0])
    with FlopCounterMode(display=False, custom_mapping=FUSED) as counter:
        model(points, snr).square().sum().backward()
    kept: dict[int, int] = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model(points, snr).square().sum()
    del loss
    return {"flops_per_token": counter.get_total_flops() / n, "saved_bytes_per_token": sum(kept.values()) / n}


# --- one process and two

SCRIPT = """
import sys
from dataclasses import replace
from measureflow.training import Training
from measureflow.training.config import read_config
Training(read_config(sys.argv[1]), sys.argv[2]).run()
"""


def processes() -> list[dict]:
    """configs/tiny.toml in one process and in two that average their gradients: the same weights?"""
    from measureflow.models.checkpoints import load_tensors
    from measureflow.training.config import read_config

    config = ROOT / "configs" / "tiny.toml"
    rows, first = [], None
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "entry.py"
        script.write_text(SCRIPT)
        for count in (1, 2):
            out = Path(folder) / str(count)
            launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
            subprocess.run(
                [sys.executable, *launch, str(script), str(config), str(out)],
                check=True,
                timeout=600,
                capture_output=True,
                env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
            )
            tensors = load_tensors(out / "checkpoint.safetensors")[0]
            weights = {name: t for name, t in tensors.items() if name.startswith("model/")}
            first = first or weights
            times = sorted(float(row["seconds"]) for row in pages.read_csv(out / "log.csv"))
            size = 4 * sum(t.numel() for t in weights.values())
            rows.append(
                {
                    "processes": count,
                    "steps": read_config(config).steps,
                    "step_seconds": times[len(times) // 2],
                    "bytes_per_step": 2 * (count - 1) * size // count,  # a ring sends this
                    "difference": max(float((first[name] - weights[name]).abs().max()) for name in weights),
                }
            )
            print(rows[-1])
    return rows


# --- rows over two workers


def dask() -> list[dict]:
    """`FlowMixture.fit` on a Dask array whose blocks are made where they are used."""
    from distributed import Client, LocalCluster

    rows = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        fit(2)  # imports and compilation
        rounds = [[fit(blocks) for blocks in BLOCKS] for _ in range(ROUNDS)]
    for same in zip(*rounds, strict=True):
        times = [row["fit_seconds"] for row in same]
        middle = statistics.median(times)
        rows.append(
            same[0] | {"fit_seconds": middle, "all_seconds": times, "rows_per_second": same[0]["rows"] / middle}
        )
        print(rows[-1])
    return rows


def fit(blocks: int) -> dict:
    import dask
    import dask.array as da

    from measureflow import FlowMixture
    from measureflow.estimators.flow_mixture import SUMMARY_ROWS

    make = dask.delayed(block)
    parts = [da.from_delayed(make(seed), (BLOCK, COLUMNS), dtype=float) for seed in range(blocks)]
    started = time.monotonic()
    mixture = FlowMixture().fit(da.concatenate(parts))
    seconds = time.monotonic() - started
    return {
        "rows": blocks * BLOCK,
        "blocks": blocks,
        "columns": COLUMNS,
        "fit_seconds": seconds,
        "rows_per_second": blocks * BLOCK / seconds,
        "summary_bytes_per_block": 8 * SUMMARY_ROWS * (COLUMNS + 1),
        "n_clusters": mixture.n_clusters_,
    }


def block(seed: int):
    """Five clusters, the same in every block."""
    import numpy as np

    centers = 4 * np.random.default_rng(0).standard_normal((5, COLUMNS))
    rng = np.random.default_rng(seed + 1)
    return centers[rng.integers(5, size=BLOCK)] + 0.5 * rng.standard_normal((BLOCK, COLUMNS))


# --- what follows


def extrapolation(costs: dict) -> list[dict]:
    """Answers worked out from the measurements, with their arithmetic in words."""
    rows = []
    if "models" in costs:
        rows += pretraining(costs)
    if "dask" in costs:
        rows += billion(costs)
    return rows


def pretraining(costs: dict) -> list[dict]:
    recipe = tomllib.loads((ROOT / "configs" / "paper.toml").read_text(encoding="utf-8"))["stages"][0]
    at = {(row["model"], row["n"]): row for row in costs["models"]}
    row = at["flow-transformer", 1000]
    tokens = recipe["steps"] * recipe["batch"] * recipe["n"]
    total = tokens * row["flops_per_token"]
    log = pages.read_csv(pages.WEIGHTS / "flow-transformer" / "log.csv")
    config = tomllib.loads((ROOT / "configs" / "cpu.toml").read_text(encoding="utf-8"))["stages"]
    times = sorted(float(line["mean_seconds"]) for line in log if line["n"] == "400")
    batch = next(stage["batch"] for stage in config if stage["n"] == 400)
    rate = batch * 400 * at["flow-transformer", 400]["flops_per_token"] / times[len(times) // 2]
    step = recipe["batch"] * recipe["n"] * row["flops_per_token"] / ASSUMED_FLOPS
    exchange = 2 * 4 * row["parameters"] / ASSUMED_LINK
    return [
        {
            "what": "what does the paper's recipe take, with the shipped shape?",
            "from": f"configs/paper.toml: {tokens:.3g} tokens, {row['flops_per_token']:.3g} flops each",
            "gives": f"{total:.2g} flops",
        },
        {
            "what": "on the core that trained the shipped weights?",
            "from": f"{rate:.2g} flops/s, from log.csv at 400 points",
            "gives": f"{total / rate / 86400:.0f} days",
        },
        {
            "what": "on one accelerator?",
            "from": f"{ASSUMED_FLOPS:.0e} flops/s sustained, assumed",
            "gives": f"{total / ASSUMED_FLOPS / 3600:.1f} hours",
        },
        {
            "what": "what share of a step is the exchange of gradients, one machine each?",
            "from": f"{4 * row['parameters']:,} bytes of gradients, {ASSUMED_LINK:.0e} bytes/s assumed",
            "gives": f"{exchange / (exchange + step):.1%}",
        },
    ]


def billion(costs: dict) -> list[dict]:
    few, many = costs["dask"][0], costs["dask"][-1]
    gaps = [slow - quick for quick, slow in zip(few["all_seconds"], many["all_seconds"], strict=True)]
    each = statistics.median(gaps) / (many["rows"] - few["rows"])  # seconds for one more row
    hours = [10**9 * gap / (many["rows"] - few["rows"]) / 3600 for gap in (min(gaps), max(gaps))]
    rows, block_rows = 10**9, 10**6
    summaries = rows // block_rows * many["summary_bytes_per_block"]
    return [
        {
            "what": "how long do 1e9 rows take on these two workers?",
            "from": f"{each:.2g} s for one more row, median of {len(gaps)} differences between the two sizes",
            "gives": f"{rows * each / 3600:.2g} hours (differences give {hours[0]:.2g} to {hours[1]:.2g})",
        },
        {
            "what": "and on 64 such workers?",
            "from": "blocks do not talk to each other",
            "gives": f"{rows * each * 2 / 64 / 60:.2g} minutes, and the fit of the summaries",
        },
        {
            "what": "what must fit where the call is made?",
            "from": f"blocks of {block_rows:,} rows; a label and a weight of 8 bytes for each row",
            "gives": f"{summaries / 1e9:.1f} GB of summaries, {16 * rows / 1e9:.0f} GB of columns",
        },
    ]


def main() -> None:
    chosen = sys.argv[1:] or ["models", "processes", "dask"]
    costs = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
    for name in chosen:
        began = run.commit()  # before: the tree may move while a part is measured
        costs[name] = {"models": models, "processes": processes, "dask": dask}[name]()
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        costs.setdefault("measured", {})[name] = {"date": date, "commit": began, "machine": run.machine()}
        costs["extrapolation"] = extrapolation(costs)
        OUT.parent.mkdir(parents=True, exist_ok=True)
        OUT.write_text(json.dumps(costs, indent=2) + "\n", encoding="utf-8")
    pages.main([])


if __name__ == "__main__":
    main()
