"""Broken weight files: config.json and model.safetensors of the shipped flow, wounded at random.

Each one must give a model whose weights are all finite, or a ValueError that says something. ``PYTHONPATH=tests python
-m fuzz.weights [cases]`` tries 100,000.
"""

import sys
import tempfile
from collections import Counter
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
from rich.progress import track

from fuzz.limits import guarded, refusal
from fuzz.mutations import mutated
from measureflow.models.pretrained import load_model

SHIPPED = files("measureflow") / "weights" / "any-dimension"


def fuzz(cases: int, folder: Path, seed: int = 0) -> Counter:
    """How many broken files were loaded all the same, and how many refused; anything else raises."""
    config, weights = ((SHIPPED / name).read_bytes() for name in ("config.json", "model.safetensors"))
    outcomes: Counter = Counter()
    (folder / "config.json").write_bytes(config)
    for case in track(range(seed, seed + cases), transient=True):
        rng = np.random.default_rng(case)
        broken_config = rng.random() < 0.4
        (folder / "config.json").write_bytes(mutated(config, rng) if broken_config else config)
        broken = mutated(weights, rng, front=4000) if not broken_config or rng.random() < 0.1 else weights
        (folder / "model.safetensors").write_bytes(broken)
        try:
            outcomes[tried(folder)] += 1
        except BaseException:
            print(f"case {case} was not handled", file=sys.stderr)
            raise
    return outcomes


def tried(folder: Path) -> str:
    """What became of one folder."""
    try:
        with guarded(seconds=20):
            model = load_model(folder)
    except ValueError as error:
        return refusal(error)
    assert all(torch.isfinite(parameter).all() for parameter in model.parameters())
    return "loaded"


if __name__ == "__main__":
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    memory = Path("/dev/shm")  # so many files are better not written to a disk
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        print(f"{cases} broken weight files: {dict(fuzz(cases, Path(folder)))}")
