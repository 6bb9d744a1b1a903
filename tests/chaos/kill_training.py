"""Kill a training run without warning, again and again, and check that it ends as if nothing had happened.

Run by ``make chaos``: starts `measureflow train ... --resume`, sends SIGKILL at a random moment, starts it again, until
``--kills`` kills have landed; then lets it finish and compares every tensor of the last checkpoint with that of an
uninterrupted run. Three kills in ten land while the run starts; the others wait until it has gone on by a random number
of steps, so that they land in training however slow the machine is.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from measureflow.models.checkpoints import load_tensors

CONFIG = """
kind = "flow-transformer"
workers = 1
checkpoint_seconds = 0.0
evaluate_sets = 2
evaluate_n = 50
average = 0.9
[model]
width = 16
n_heads = 2
hidden = 16
n_layers = 3
max_flow = 4.0
[[stages]]
steps = {steps}
n = 32
batch = 4
rate = 3e-3
"""


def start(config: Path, folder: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "measureflow.cli", "train", str(config), "--out", str(folder), "--resume"]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)


def steps_done(folder: Path) -> int:
    path = folder / "checkpoint.safetensors"
    return load_tensors(path)[1]["done"] if path.exists() else 0


def wait_for_a_moment(process: subprocess.Popen, folder: Path, dice: random.Random) -> None:
    """Return while the run starts, or when it has taken up to twenty steps more and is somewhere within the next."""
    if dice.random() < 0.3:
        time.sleep(dice.uniform(0.0, 3.0))
        return
    goal = steps_done(folder) + dice.randint(1, 20)
    while steps_done(folder) < goal and process.poll() is None:
        time.sleep(0.005)
    time.sleep(dice.uniform(0.0, 0.03))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        config = home / "config.toml"
        config.write_text(CONFIG.format(steps=arguments.steps))
        assert start(config, home / "whole").wait() == 0
        broken = home / "broken"
        for kill in range(1, arguments.kills + 1):
            process = start(config, broken)
            wait_for_a_moment(process, broken, dice)
            if process.poll() is not None:
                raise SystemExit(f"the run ended before kill {kill}, by itself: raise --steps")
            process.send_signal(signal.SIGKILL)
            process.wait()
            print(f"kill {kill:2d}: checkpoint at step {steps_done(broken)}", flush=True)
        assert start(config, broken).wait() == 0
        one, two = (load_tensors(home / name / "checkpoint.safetensors")[0] for name in ("whole", "broken"))
    different = [name for name in one if not torch.equal(one[name], two[name])]
    print(f"{arguments.kills} kills; {len(one)} tensors compared, {len(different)} differ")
    raise SystemExit(1 if different or one.keys() != two.keys() else 0)


if __name__ == "__main__":
    main()
