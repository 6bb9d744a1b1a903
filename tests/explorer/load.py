"""Many clients at once: ``python tests/explorer/load.py --clients 64 --seconds 60`` starts a server and asks it for
everything it has, over and over, and tells how many answers were errors and how long they took.
"""

import argparse
import asyncio
import random
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import contextmanager

import httpx
import numpy as np

LIGHT = ("/", "/assets/index.js", "/icon.svg", "/api/models", "/api/examples", "/api/examples/penguins", "/api/papers")
HEAVY = 0.1  # share of requests that make the server calculate


@contextmanager
def server():
    """`measureflow explore` on a free port; its address."""
    command = [sys.executable, "-m", "measureflow.cli", "explore", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield re.search(r"http://[\d.:]+", process.stdout.readline()).group()
        finally:
            process.terminate()


async def client(number: int, address: str, deadline: float, times: dict, troubles: Counter) -> None:
    """Ask for one thing after another until time is up."""
    draw = random.Random(number)
    async with httpx.AsyncClient(base_url=address, timeout=60) as http:
        while time.monotonic() < deadline:
            kind, asked = _next(draw, http)
            began = time.monotonic()
            try:
                answer = await asked
                if answer.status_code not in (200, 202):
                    troubles[f"{kind}: {answer.status_code} {answer.text[:80]}"] += 1
            except httpx.HTTPError as error:
                troubles[f"{kind}: {type(error).__name__}"] += 1
            times[kind].append(time.monotonic() - began)


def _next(draw: random.Random, http: httpx.AsyncClient):
    if draw.random() > HEAVY:
        path = draw.choice(LIGHT)
        return path, http.get(path)
    if draw.random() < 0.5:
        return "circuit", http.post("/api/circuit", json={"seed": draw.randrange(200), "n": 24})
    return "simulate", http.post("/api/simulate", json={"n": 50, "layers": 3, "time": 0.2, "seed": draw.randrange(999)})


def load(address: str, clients: int, seconds: float) -> tuple[dict[str, list[float]], Counter]:
    """Seconds each kind of request took, and what went wrong how often."""
    times, troubles = defaultdict(list), Counter()

    async def all_of_them():
        deadline = time.monotonic() + seconds
        await asyncio.gather(*(client(i, address, deadline, times, troubles) for i in range(clients)))

    asyncio.run(all_of_them())
    return times, troubles


def main() -> int:
    """Run, and say what happened."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--clients", type=int, default=64)
    words.add_argument("--seconds", type=float, default=60)
    asked = words.parse_args()
    with server() as address:
        times, troubles = load(address, asked.clients, asked.seconds)
    everything = [t for took in times.values() for t in took]
    for kind, took in [*sorted(times.items()), ("all", everything)]:
        p50, p95 = np.quantile(took, [0.5, 0.95])
        print(f"{kind:<24} {len(took):>7} requests   median {p50:6.3f} s   p95 {p95:6.3f} s   most {max(took):6.3f} s")
    print(f"{asked.clients} clients, {asked.seconds:g} s, {sum(troubles.values())} errors {dict(troubles) or ''}")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
