"""The Transformer PDE: the fast field against the exact one, and a panel of Figure 1 against a plain NumPy loop."""

from __future__ import annotations

import math
import time

import numpy as np
import torch

from measureflow.attention import Attention, DotProduct, Fast, NegativeSquaredDistance
from measureflow.flows import Dopri5, integrate
from measureflow.measures import Empirical, Gaussian
from measureflow.reproduce.castin2025.covariances.fig1 import PANELS
from measureflow.reproduce.castin2025.covariances.panels import initial_covariances

SIZES = (10_000, 100_000, 1_000_000)
PROBES = 4000  # queries at which the exact field is timed and compared at the largest sizes


def rows() -> list[dict]:
    """One row for each claim: ours and the peer's seconds, their ratio, and whether the target is met."""
    return [*fast_field(), growth(), figure_one()]


def fast_field() -> list[dict]:
    """n = 100,000 in the plane: at least ten times faster at relative error 1e-6."""
    return [
        _against_exact(name, score) for name, score in (("softmax", DotProduct()), ("L2", NegativeSquaredDistance()))
    ]


def _against_exact(name: str, score) -> dict:
    x = _cloud(100_000)
    exact = Attention(score)
    fast = Fast(exact, tol=1e-6)
    ours = _seconds(lambda: fast(x), best_of=3)
    start = time.perf_counter()
    single = exact(x)  # float32, as a user would run it
    peer = time.perf_counter() - start
    rows = torch.cat([torch.arange(PROBES // 2), x.norm(dim=-1).argsort()[-PROBES // 2 :]])  # typical and outermost
    truth = exact.double().at(x[rows].double(), Empirical(x.double()))
    errors = [_relative(values[rows].double(), truth) for values in (fast(x), single)]
    note = f"error {errors[0]:.1e} of the largest velocity against float64 (the exact float32 field: {errors[1]:.1e})"
    return _row(f"fast {name} field, n = 1e5, d = 2", ours, peer, 10.0, errors[0] <= 1e-6, note)


def _relative(values: torch.Tensor, truth: torch.Tensor) -> float:
    return float((values - truth).norm(dim=-1).max() / truth.norm(dim=-1).max())


def growth() -> dict:
    """The exponent of cost against n from 1e4 to 1e6; the peer column is what the exact field would take at 1e6."""
    fast, seconds = Fast(Attention(NegativeSquaredDistance()), tol=1e-6), []
    for n in SIZES:
        x = _cloud(n)
        seconds.append(_seconds(lambda x=x: fast(x), best_of=2))
    exponent = math.log(seconds[-1] / seconds[0]) / math.log(SIZES[-1] / SIZES[0])
    mu = Empirical(_cloud(SIZES[-1]))
    start = time.perf_counter()
    Attention(NegativeSquaredDistance()).at(mu.points[:PROBES], mu)
    peer = (time.perf_counter() - start) * SIZES[-1] / PROBES
    note = f"cost grows like n^{exponent:.2f} ({', '.join(f'{s:.2f}' for s in seconds)} s); exact from {PROBES} queries"
    return _row("fast L2 field, n = 1e6, d = 2", seconds[-1], peer, 10.0, exponent < 1.15, note)


def figure_one() -> dict:
    """A panel of Figure 1, 100 starts: one batched adaptive flow against a loop of Euler steps for each."""
    panel = PANELS[0]
    S0 = initial_covariances(10, panel.reach)
    field, start = panel.attention(panel.parameters), Gaussian(torch.zeros_like(S0[..., 0]), S0)
    T = 0.3 * 2000
    method = Dopri5(rtol=1e-6, atol=1e-9)
    ours = _seconds(lambda: integrate(field, start, list(np.diff(_times(T))), method), best_of=3)
    Q, K, V = (M.numpy() for M in panel.parameters.scaled())
    begun = time.perf_counter()
    ends = np.stack([_euler(S, K.T @ Q, V, 0.3, 2000)[-1] for S in S0.numpy()])
    peer = time.perf_counter() - begun
    end = integrate(field, start, [T], method)[-1].covariance.numpy()
    apart = np.abs(end - ends).max() / np.abs(S0.numpy()).max()
    note = f"{len(S0)} runs to t = {T:g}; ends differ by {apart:.1e} of the start, which is Euler's own error"
    return _row("a panel of Figure 1", ours, peer, 10.0, apart < 1e-2, note)


def _times(T: float) -> np.ndarray:
    return np.concatenate([[0.0], np.geomspace(1e-2, T, 40)])


def _euler(S: np.ndarray, A: np.ndarray, V: np.ndarray, step: float, n_steps: int) -> list[np.ndarray]:
    """The per-trajectory loop: S + step * (V S A S + its transpose)."""
    path = [S]
    for _ in range(n_steps):
        rate = V @ path[-1] @ A @ path[-1]
        path.append(path[-1] + step * (rate + rate.T))
    return path


def _cloud(n: int) -> torch.Tensor:
    return torch.randn(n, 2, generator=torch.Generator().manual_seed(0))


def _seconds(work, best_of: int) -> float:
    work()  # the first call compiles
    best = math.inf
    for _ in range(best_of):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def _row(name: str, ours: float, peer: float, target: float, condition: bool, note: str) -> dict:
    ratio = peer / ours
    met = bool(ratio >= target and condition)
    return {"name": name, "ours_s": ours, "peer_s": peer, "ratio": ratio, "target": target, "met": met, "note": note}


if __name__ == "__main__":
    for row in rows():
        print(f"{row['name']}: {row['ours_s']:.3g} s against {row['peer_s']:.3g} s, {row['ratio']:.3g}x; {row['note']}")
