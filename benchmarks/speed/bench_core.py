"""The core against its peers: softmax fields, sparse normalisers, flows of Gaussians, and memory.

Ours and the peer's run in turn, in one process with one thread each, and the best of several runs counts. Every pair
is checked to give the same answer before it is timed.
"""

import math
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from entmax import normmax_bisect, sparsemax
from scipy.integrate import solve_ivp
from torch.nn.functional import scaled_dot_product_attention

from measureflow.attention import Attention, DotProduct, NormMax, Softmax, Sparsemax
from measureflow.flows import dopri5, integrate
from measureflow.measures import Empirical, Gaussian


def rows() -> list[dict]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for ours and the peers alike, so that processor time is what a user waits for
    try:
        with torch.no_grad():
            return [*softmax_rows(), *sparse_rows(), gaussian_row(), *memory_rows()]
    finally:
        torch.set_num_threads(threads)


def seconds(function: Callable) -> float:
    """Processor time: with one thread it is the time on the clock of a quiet machine, on a busy one too."""
    start = time.process_time()
    function()
    return time.process_time() - start


def race(ours: Callable, peer: Callable, repeats: int) -> tuple[float, float]:
    """The best time of each, run in turn after a warm-up."""
    ours(), peer()
    times = [(seconds(ours), seconds(peer)) for _ in range(repeats)]
    return min(t for t, _ in times), min(t for _, t in times)


def row(name: str, ours: float, peer: float, target: float, note: str) -> dict:
    ratio = peer / ours
    met = ratio >= target
    return {"name": name, "ours_s": ours, "peer_s": peer, "ratio": ratio, "target": target, "met": met, "note": note}


def normal(*shape: int, seed: int = 0, dtype=torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


# ------------------------------------------------------------------------------------------------- softmax fields


def softmax_rows() -> list[dict]:
    return [softmax_row(n, d) for n in (1000, 2000, 4000) for d in (2, 8, 32)]


def softmax_row(n: int, d: int) -> dict:
    x = normal(n, d)
    mu, bare = Empirical(x), x[None, None]
    field = Attention(DotProduct(), Softmax(1 / math.sqrt(d)))
    torch.testing.assert_close(field(mu), scaled_dot_product_attention(bare, bare, bare)[0, 0])
    repeats = max(30, 300_000_000 // n**2)  # short runs need many before one is undisturbed
    ours, peer = race(lambda: field(mu), lambda: scaled_dot_product_attention(bare, bare, bare), repeats)
    note = "bare scaled_dot_product_attention; the target is 1/1.15"
    return row(f"softmax field, n={n}, d={d}", ours, peer, 1 / 1.15, note)


# --------------------------------------------------------------------------------------------- sparse normalisers


def bisect(scores: torch.Tensor, alpha: float) -> torch.Tensor:
    """The peer with the 24 halvings its manual recommends for single precision, not the 50 it does unasked."""
    return normmax_bisect(scores, alpha=alpha, dim=-1, n_iter=24)


def sparse_rows() -> list[dict]:
    scores = normal(1000, 1000)
    members = {
        "Sparsemax": (Sparsemax(), lambda: sparsemax(scores, dim=-1), "entmax sparsemax"),
        "NormMax(2)": (NormMax(2.0), lambda: bisect(scores, 2.0), "entmax normmax_bisect"),
        "NormMax(1.5)": (NormMax(1.5), lambda: bisect(scores, 1.5), "entmax normmax_bisect"),
        "NormMax(inf)": (
            NormMax(math.inf),
            lambda: bisect(scores, 1e4),
            "entmax normmax_bisect at alpha=1e4, as it has no infinity",
        ),
    }
    return [sparse_row(name, scores, *member) for name, member in members.items()]


def sparse_row(name: str, scores: torch.Tensor, ours: Callable, peer: Callable, note: str) -> dict:
    difference = (ours(scores) - peer()).abs().mean().item()
    if difference > 1e-5:
        raise AssertionError(f"{name} differs from its peer by {difference}")
    fast, slow = race(lambda: ours(scores), peer, 5)
    return row(f"{name}, 1000 x 1000, float32", fast, slow, 5.0, note)


# ---------------------------------------------------------------------------------------------- flows of Gaussians


def gaussian_row(n: int = 1000, sample: int = 30, T: float = 1.0) -> dict:
    """Softmax flows with V = I in the plane, some of which blow up before T."""
    A = normal(n, 2, 2, seed=1, dtype=torch.float64)
    R = normal(n, 2, 4, seed=2, dtype=torch.float64)
    mu, field = Gaussian(torch.zeros(n, 2), R @ R.mT / 4), Attention(DotProduct(A))
    path = integrate(field, mu, [T], dopri5)
    blown = torch.isfinite(path.blow_up_time)
    starts = torch.cat([mu.mean, mu.covariance.flatten(1)], 1).numpy()
    for i in range(sample):
        solution = scipy_flow(A[i].numpy(), starts[i], T)
        if bool(blown[i]) != (solution.status == 1):
            raise AssertionError(f"trajectory {i} blows up for one and not for the other")
        if blown[i] and abs(solution.t[-1] - path.blow_up_time[i].item()) > 1e-6:
            raise AssertionError(f"trajectory {i} blows up at another time")
    ours, peer = race(
        lambda: integrate(field, mu, [T], dopri5),
        lambda: [scipy_flow(A[i].numpy(), starts[i], T) for i in range(sample)],
        5,
    )
    note = (
        f"loop of scipy solve_ivp(DOP853, rtol=1e-8) with the same event, timed on {sample} and scaled to {n}; "
        f"{int(blown.sum())} of {n} blow up"
    )
    return row(f"{n} Gaussian trajectories with blow-up", ours, peer * n / sample, 20.0, note)


def scipy_flow(A: np.ndarray, start: np.ndarray, T: float):
    def slope(t: float, y: np.ndarray) -> np.ndarray:
        mean, S = y[:2], y[2:].reshape(2, 2)
        MS = S @ A @ S
        return np.concatenate([mean + S @ (A @ mean), (MS + MS.T).ravel()])

    def gone(t: float, y: np.ndarray) -> float:
        return y @ y - dopri5.limit**2

    gone.terminal = True
    return solve_ivp(slope, (0.0, T), start, "DOP853", rtol=dopri5.rtol, atol=dopri5.atol, events=gone)


# ---------------------------------------------------------------------------------------------------------- memory

FIELD_OF_MANY = """
import resource, sys, time, torch
from measureflow.attention import Attention, {score}, Softmax
x = torch.randn(100_000, 2, generator=torch.Generator().manual_seed(0))
with torch.no_grad():
    start = time.perf_counter()
    velocity = Attention({score}(), Softmax(1.0))(x)
assert torch.isfinite(velocity).all()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, time.perf_counter() - start)
"""


def memory_rows() -> list[dict]:
    return [memory_row("softmax", "DotProduct"), memory_row("L2", "NegativeSquaredDistance")]


def memory_row(name: str, score: str) -> dict:
    """Peak memory of a process of its own, everything it imports included."""
    script = FIELD_OF_MANY.format(score=score)
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    megabytes, took = map(float, answer.split())
    note = f"megabytes, not seconds: peak of the process against 1 GB; the score matrix is 40 GB. Took {took:.1f} s"
    return row(f"{name} field, n=100,000, d=2: memory", megabytes, 1024.0, 1.0, note)


if __name__ == "__main__":
    for result in rows():
        print(f"{result['name']:45} {result['ratio']:7.2f} (target {result['target']:.2f}) {result['note']}")
