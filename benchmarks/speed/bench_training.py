"""A training step of the `cpu` recipe against the same model written plainly in PyTorch, its loss a loop of POT.

Both start from the same weights and see the same sets, and their losses agree. Times are processor seconds of one
thread, which a busy machine disturbs little. Memory is the growth of a fresh process over one step.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ot
import torch
from bench_kmeans import status
from torch import Tensor, nn

from measureflow.measures.decibels import from_decibels
from measureflow.measures.priors import Mixtures
from measureflow.models import FlowTransformer
from measureflow.training import Training
from measureflow.training.config import TrainingConfig, read_config
from measureflow.training.loop import data_of

RECIPE = Path(__file__).parents[2] / "configs" / "cpu.toml"
TARGET = 2.0


class PlainBlock(nn.Module):
    """A pre-norm transformer layer, attention spelled out."""

    def __init__(self, width: int, n_heads: int, hidden: int):
        super().__init__()
        self.n_heads = n_heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.ffn = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x: Tensor) -> Tensor:
        B, n, width = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(B, n, self.n_heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        weights = torch.softmax(q @ k.transpose(-1, -2) / (width // self.n_heads) ** 0.5, dim=-1)
        a = self.out((weights @ v).transpose(1, 2).reshape(B, n, width))
        return a + self.ffn(self.norm2(x + a))


class PlainFlow(nn.Module):
    """Appendix C of Zimin 2025 for the uniform schedule, as one would write it down."""

    def __init__(self, model: FlowTransformer):
        super().__init__()
        c = self.config = model.config
        self.block = PlainBlock(c.width, c.n_heads, c.hidden)
        self.encoder, self.outside = (nn.Parameter(p.detach().clone()) for p in (model.encoder, model.outside))
        self.a, self.b = (nn.Parameter(p.detach().clone()) for p in (model.speed.weights, model.speed.positions))
        self.block.load_state_dict(_plain_names(model.blocks[0].state_dict()))

    def forward(self, points: Tensor, snr_db: Tensor) -> Tensor:
        c, n, d = self.config, *points.shape[1:]
        Q, R = torch.linalg.qr(self.encoder)
        P = Q * torch.sign(torch.diagonal(R))
        mean = points.mean(1, keepdim=True)
        scale = ((points - mean).pow(2).sum((1, 2), keepdim=True) / (n * d)).sqrt()
        x = (points - mean) / scale @ P.T
        step = self.total_flow(snr_db)[:, None, None] / c.n_layers
        for _ in range(c.n_layers):
            x = x + step * self.block(x)
        x = x - x.mean(1, keepdim=True)
        x = x / (x.pow(2).sum((1, 2), keepdim=True) / (n * d)).sqrt()
        main = x @ P
        return mean + scale * (main + (x - main @ P.T) @ self.outside.T)

    def total_flow(self, snr_db: Tensor) -> Tensor:
        c, N = self.config, len(self.a)
        x = (snr_db - c.snr_low) / (c.snr_high - c.snr_low)
        at = (1 + 10 / N) * torch.sigmoid(self.b) - 5 / N
        return c.max_flow * (1 - (torch.softmax(self.a, 0) * torch.sigmoid(N * (x[:, None] - at))).sum(-1))


def _plain_names(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Heads joined end to end, and the names of `PlainBlock`."""
    names = {"q": "attention.heads.score.Q.M", "k": "attention.heads.score.K.M", "v": "attention.heads.value.M"}
    plain = {f"{ours}.weight": weights[theirs].flatten(0, 1) for ours, theirs in names.items()}
    plain["out.weight"] = weights["attention.output.M"].transpose(0, 1).flatten(1)
    for name, tensor in weights.items():
        if not name.startswith("attention."):
            plain[name.replace("before_attention", "norm1").replace("before_ffn", "norm2")] = tensor
    return plain


def pot_loss(tokens: Tensor, mixtures: Mixtures) -> Tensor:
    """SNR times W2 squared over d, one set after the other; POT gives the gradient."""
    total = tokens.new_zeros(())
    for x, atoms, weights, snr_db in zip(tokens, *_truth(mixtures), mixtures.snr_db, strict=True):
        kept = weights > 0
        cost = ot.dist(x, atoms[kept])
        w2 = ot.emd2(x.new_full((len(x),), 1 / len(x)), weights[kept], cost)
        total = total + from_decibels(snr_db) * w2
    return total / tokens.shape[0] / tokens.shape[-1]


def _truth(mixtures: Mixtures) -> tuple[Tensor, Tensor]:
    return mixtures.mixing.points, mixtures.mixing.weights


def sides(config: TrainingConfig, step: int) -> tuple[Callable[[], float], Callable[[], float]]:
    """Two functions that take one training step each, data included, and return its loss."""
    training = Training(config, tempfile.mkdtemp())
    plain = PlainFlow(training.model)  # pyright: ignore[reportArgumentType]: the recipe's kind
    optimiser = torch.optim.AdamW(plain.parameters(), lr=config.stage_of(step)[0].rate_at(0), betas=(0.9, 0.99))

    def ours() -> float:
        return training.take_step(step, [data_of(config, step)])["loss"]

    def peer() -> float:
        mixtures = data_of(config, step)
        loss = pot_loss(plain(mixtures.points, mixtures.snr_db), mixtures)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(plain.parameters(), config.clip)
        optimiser.step()
        return loss.item()

    return ours, peer


def rows(repeats: int = 7) -> list[dict]:
    config = read_config(RECIPE)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [row for step in first_steps(config) for row in race(config, step, repeats)]
    finally:
        torch.set_num_threads(threads)


def first_steps(config: TrainingConfig) -> list[int]:
    """The first step of each size of batch the recipe has."""
    found, step = {}, 0
    for stage in config.stages:
        found.setdefault((stage.n, stage.batch), step)
        step += stage.steps
    return list(found.values())


def race(config: TrainingConfig, step: int, repeats: int) -> list[dict]:
    stage, _ = config.stage_of(step)
    ours, peer = sides(config, step)
    torch.testing.assert_close(
        ours(), peer(), rtol=1e-4, atol=0.0
    )  # single precision through 16 layers; also a warm-up
    times = [(seconds(ours), seconds(peer)) for _ in range(repeats)]
    fast, slow = min(t for t, _ in times), min(t for _, t in times)
    name = f"training step, {stage.batch} sets of {stage.n} points"
    note = f"{stage.batch / fast:.1f} sets/s for {stage.batch / slow:.1f} of plain PyTorch and a POT loop, one thread"
    used = row(f"{name}, memory", megabytes("ours", step), megabytes("peer", step), None, "MB, not seconds")
    return [row(name, fast, slow, TARGET, note), used]


def row(name: str, ours: float, peer: float, target: float | None, note: str) -> dict:
    ratio = peer / ours
    met = None if target is None else ratio >= target
    return {
        "name": name, "ours_s": ours, "peer_s": peer, "ratio": ratio, "target": target, "met": met, "note": note,
    }  # fmt: skip


def seconds(function: Callable) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def megabytes(side: str, step: int) -> float:
    """Growth of a fresh process that takes one step."""
    command = [sys.executable, __file__, "--memory", side, str(step)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def report_memory(side: str, step: int) -> None:
    torch.set_num_threads(1)
    config = read_config(RECIPE)
    take_step = sides(config, step)[("ours", "peer").index(side)]
    before = status("VmRSS")
    take_step()
    print((status("VmHWM") - before) / 1024)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--memory"]:
        report_memory(sys.argv[2], int(sys.argv[3]))
    else:
        for found in rows():
            print(f"{found['name']:50} {found['ratio']:6.2f} (target {found['target']}) {found['note']}")
