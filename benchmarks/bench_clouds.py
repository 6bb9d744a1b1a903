"""FlowMixture on clouds in the manner of published ones: ``python benchmarks/bench_clouds.py [--only target ...]``.

The same comparison as `bench_tables.py`, on clouds whose clusters a reader would draw. In the table "ours" and "peer"
are scores, not seconds.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import clouds
from bench_tables import compared


def rows(only=None, kept: Path = Path("out") / "clouds.json") -> list[dict]:
    return compared({name: partial(clouds.cloud, name) for name in only or clouds.DRAWN}, "clouds", kept)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=[*clouds.DRAWN])
    for line in rows(parser.parse_args().only):
        print(f"{line['name']:45s} {line['ours_s']:.3f} {line['peer_s']:.3f} {line['ratio']:.2f} {line['note']}")
