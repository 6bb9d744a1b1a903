"""Simulations that take longer than a request should: started, watched, and cancelled by their number."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from measureflow.explorer.limits import busy

KEPT = 32  # jobs remembered, finished ones included
SHOWN = 2000  # tokens of a path sent to the page

Matrix = list[list[float]]


class Simulation(BaseModel):
    """What to simulate, in the words of `measureflow.simulate.simulate`."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    attention: Literal["softmax", "l2", "sinkhorn", "linear", "linear-epsilon", "sigmoid", "relu", "exp"] = "softmax"
    d: int = Field(2, ge=1, le=16)
    n: int = Field(500, ge=2, le=20_000)
    time: float = Field(2.0, gt=0, le=1000)
    layers: int = Field(40, ge=1, le=200)
    Q: Matrix | None = None
    K: Matrix | None = None
    V: Matrix | None = None
    epsilon: float = Field(1.0, gt=0)
    relative: bool = False
    sphere: bool = False
    gaussian: bool = False
    spread: float = Field(1.0, gt=0, le=100)
    seed: int = Field(0, ge=0, lt=2**63)
    points: Matrix | None = Field(None, max_length=20_000)


class Cancelled(Exception):
    """Raised inside a simulation to end it."""


class Job:
    """One simulation: where it stands, and what came of it."""

    def __init__(self, simulation: Simulation):
        self.id, self.simulation = secrets.token_hex(8), simulation
        self.state, self.progress = "waiting", 0.0
        self.result: dict[str, Any] | None = None
        self.reason = ""
        self.stop = threading.Event()

    @property
    def over(self) -> bool:
        """Whether it will not change any more."""
        return self.state in ("done", "failed", "cancelled")

    def advance(self, t: float) -> None:
        """Note the time that the flow has reached; raises `Cancelled` if the job was stopped."""
        if self.stop.is_set():
            raise Cancelled
        self.progress = max(self.progress, min(1.0, t / self.simulation.time))

    def run(self) -> None:
        """Do the work, whatever comes of it."""
        try:
            self.advance(0.0)
            self.state = "running"
            self.result = simulated(self.simulation, self.advance)
            self.state, self.progress = "done", 1.0
        except Cancelled:
            self.state = "cancelled"
        except (ValueError, RuntimeError) as error:
            self.state, self.reason = "failed", str(error)

    def report(self) -> dict[str, Any]:
        """State, progress and result, for the page."""
        facts = {"id": self.id, "state": self.state, "progress": round(self.progress, 4)}
        return (
            facts | ({"reason": self.reason} if self.reason else {}) | ({"result": self.result} if self.result else {})
        )


def simulated(simulation: Simulation, progress: Callable[[float], None]) -> dict[str, Any]:
    """The flow as numbers for the page: positions or covariances, times, entropy, blow-up."""
    from measureflow.flows import Outcome, entropy
    from measureflow.simulate import ending, simulate

    options = simulation.model_dump(exclude={"attention", "layers"})
    path = simulate(simulation.attention, n_layers=simulation.layers, progress=progress, **options)
    if path.outcome is Outcome.OUT_OF_STEPS:
        raise RuntimeError("the solver ran out of steps before the end: simulate a shorter time")
    result = {
        "times": [float(t) for t in path.times],
        "divergence": path.divergence,
        "ending": ending(path),
        "blow_up_time": float(path.blow_up_time) if path.outcome is Outcome.BLEW_UP else None,
    }
    if simulation.gaussian:
        return result | {"covariances": path.covariances.tolist()}
    points = path.points
    result["spread"] = points.square().sum(-1).mean(-1).sqrt().tolist()
    if not simulation.sphere:
        result["entropy"] = [_number(entropy(mu)) for mu in path]
    return result | {"points": points[:, :SHOWN].float().mul(1e4).round().div(1e4).tolist()}


def _number(value: Any) -> float | None:
    number = float(value)
    return number if abs(number) < float("inf") else None  # JSON has no infinity


def _one_core() -> None:
    """Several simulations run side by side, so each keeps to one core."""
    import torch

    torch.set_num_threads(1)


class Jobs:
    """All simulations of one server: a few run, some wait, the rest are refused."""

    def __init__(self, running: int, waiting: int):
        self.pool = ThreadPoolExecutor(running, thread_name_prefix="simulation", initializer=_one_core)
        self.most, self.jobs = running + waiting, dict[str, Job]()
        self.lock = threading.Lock()

    def start(self, simulation: Simulation) -> Job:
        """Put a simulation in the queue."""
        with self.lock:
            if sum(not job.over for job in self.jobs.values()) >= self.most:
                raise busy("the server has all the simulations it can queue")
            for old in [key for key, job in self.jobs.items() if job.over][: max(0, len(self.jobs) + 1 - KEPT)]:
                del self.jobs[old]
            job = Job(simulation)
            self.jobs[job.id] = job
        self.pool.submit(job.run)
        return job

    def close(self) -> None:
        """Stop everything."""
        for job in list(self.jobs.values()):
            job.stop.set()
        self.pool.shutdown(wait=True, cancel_futures=True)
