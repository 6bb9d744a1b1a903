"""Put a training's averaged weights where they ship: ``python tools/ship_weights.py RUN CONFIG NAME``.

Beside the weights go the run's evaluations and its log, a row for every hundred steps; where the run began from the
folder of another, that one's rows come first. The run may still be going on: its last checkpoint is taken.
"""

import argparse
import csv
import json
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


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, none where there is no such file."""
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write_after(before: Path, rows: list[dict[str, str]], path: Path, steps: int) -> None:
    """Write rows to a CSV file after those of another, their steps counted on from its ``steps``."""
    later = [row | {"step": str(int(row["step"]) + steps)} for row in rows]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows_of(before) + later)


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
    start = ROOT / training.config.start
    told = (start / "evaluations.csv").is_file()
    steps = json.loads((start / "config.json").read_text())["facts"]["steps"] if told else 0
    training.export(folder, {"config": str(config), "steps": steps + training.done})
    logged = [row for row in rows_of(arguments.run / "log.csv") if int(row["step"]) < training.done]
    judged = [
        {name: value if name == "step" else f"{float(value):.4g}" for name, value in row.items()}
        for row in rows_of(arguments.run / "evaluations.csv")
    ]
    write_after(start / "evaluations.csv", judged, folder / "evaluations.csv", steps)
    write_after(start / "log.csv", condensed(logged, training.config), folder / "log.csv", steps)
    print(f"{folder.relative_to(ROOT)}: {training.done} steps")


if __name__ == "__main__":
    main()
