"""Put a training's averaged weights where they ship: ``python tools/ship_weights.py RUN CONFIG NAME``.

Beside the weights go the run's evaluations and its log, a row for every hundred steps. The run may still be going on:
its last checkpoint is taken.
"""

import argparse
import csv
import shutil
from pathlib import Path
from statistics import fmean

from measureflow.training.config import TrainingConfig, read_config
from measureflow.training.loop import Training

ROOT = Path(__file__).parents[1]
EVERY = 100  # steps that a row of the shipped log stands for


def condensed(rows: list[dict[str, str]], config: TrainingConfig) -> list[dict[str, str]]:
    """A row for every so many steps: its last step, the most points of its stage, the rate, the mean loss and time."""
    out = []
    for start in range(0, len(rows), EVERY):
        part = rows[start : start + EVERY]
        out.append(
            {
                "step": part[-1]["step"],
                "n": str(config.stage_of(int(part[-1]["step"]))[0].n),
                "rate": part[-1]["rate"],
                "mean_loss": f"{fmean(float(row['loss']) for row in part):.5g}",
                "mean_seconds": f"{fmean(float(row['seconds']) for row in part):.4g}",
            }
        )
    return out


def main() -> None:
    """Export, copy, condense."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("config", type=Path)
    parser.add_argument("name", help="what load_pretrained will call it")
    arguments = parser.parse_args()
    training = Training(read_config(arguments.config), arguments.run, resume=True)
    folder = ROOT / "src" / "measureflow" / "weights" / arguments.name
    config = arguments.config.resolve().relative_to(ROOT)
    training.export(folder, {"config": str(config), "steps": training.done})
    shutil.copy(arguments.run / "evaluations.csv", folder)
    with (arguments.run / "log.csv").open(newline="") as file:
        rows = condensed([row for row in csv.DictReader(file) if int(row["step"]) < training.done], training.config)
    with (folder / "log.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{folder.relative_to(ROOT)}: {training.done} steps")


if __name__ == "__main__":
    main()
