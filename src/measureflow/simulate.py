"""The flow of an attention given by name; ``measureflow simulate`` calls it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from measureflow.attention import (
    Attention,
    DotProduct,
    Exp,
    Fast,
    Field,
    Identity,
    Masked,
    MultiHead,
    NegativeSquaredDistance,
    Relative,
    ReLU,
    Sigmoid,
    Sinkhorn,
    Softmax,
    SoftmaxExpansion,
)
from measureflow.flows import Dopri5, OnSphere, Outcome, Tangent, Trajectory, Uniform, integrate, rk4
from measureflow.measures import Empirical, Gaussian
from measureflow.measures.checks import positive, whole

ATTENTIONS: dict[str, tuple[type, Callable]] = {
    "softmax": (DotProduct, lambda epsilon: Softmax()),
    "l2": (NegativeSquaredDistance, lambda epsilon: Softmax()),
    "sinkhorn": (DotProduct, Sinkhorn),
    "linear": (DotProduct, lambda epsilon: Identity()),
    "linear-epsilon": (DotProduct, SoftmaxExpansion),
    "sigmoid": (DotProduct, lambda epsilon: Sigmoid()),
    "relu": (DotProduct, lambda epsilon: ReLU()),
    "exp": (DotProduct, lambda epsilon: Exp()),
}
METHOD = Dopri5(limit=1e4)  # a cubic field leaves a cloud this large within a few roundings of its blow-up time
FRAMES = 60  # of an animation, at most


def field_named(attention: str, d: int, *, Q=None, K=None, V=None, epsilon: float = 1.0, heads: int = 1) -> Field:
    """The field of a named attention; Q, K, V are d x d matrices, the identity where None.

    With several heads the rows of Q, K and V are dealt out to them and their outputs joined, as in a transformer.
    """
    if attention not in ATTENTIONS:
        raise ValueError(f"attention must be one of {', '.join(ATTENTIONS)}, got {attention!r}")
    if heads < 1 or d % heads:
        raise ValueError(f"heads must divide d = {d}, got {heads}")
    score, normaliser = ATTENTIONS[attention]
    if heads == 1:
        return Attention(score(Q, K), normaliser(epsilon), V)
    Q, K, V = (_square(name, M, d) for name, M in (("Q", Q), ("K", K), ("V", V)))
    Q, K, V = (M.unflatten(0, (heads, d // heads)) for M in (Q, K, V))
    return MultiHead.concatenated(Attention(score(Q, K), normaliser(epsilon), V), torch.eye(d).to(V))


def _square(name: str, M, d: int) -> Tensor:
    M = torch.eye(d, dtype=torch.float64) if M is None else torch.as_tensor(M, dtype=torch.float64)
    if M.shape != (d, d):
        raise ValueError(f"{name} must have shape ({d}, {d}), got {tuple(M.shape)}")
    return M


def simulate(
    attention: str = "softmax",
    *,
    d: int = 2,
    n: int = 500,
    time: float = 2.0,
    n_layers: int = 40,
    Q=None,
    K=None,
    V=None,
    epsilon: float = 1.0,
    heads: int = 1,
    masked: bool = False,
    relative: bool = False,
    sphere: bool = False,
    gaussian: bool = False,
    fast: float | None = None,
    spread: float = 1.0,
    seed: int = 0,
    points=None,
    progress: Callable[[float], None] | None = None,
) -> Trajectory:
    r"""Flow a standard normal cloud of ``n`` points in R^d (or that Gaussian itself) for ``time``, in ``n_layers``.

    ``points`` (n, d) are flowed instead, if given; they decide n, and neither ``spread`` nor ``seed`` moves them.
    ``masked`` adds a position in [0, 1] as first coordinate, which stays; ``relative`` flows along
    :math:`\Gamma_\mu(x) - x`; ``sphere`` keeps tokens on the unit sphere [Zimin 2025, (1)]; ``fast`` is a tolerance for
    the Gauss transform, and ``progress`` is called with the time reached. Steps are adaptive; a blow-up ends the flow
    and has a time.

    >>> path = simulate("l2", n=100, V=-torch.eye(2), time=1.0, n_layers=4)
    >>> len(path), path.divergence
    (5, 'none')
    >>> simulate("linear", gaussian=True, time=10.0).blow_up_time
    tensor(0.5000, dtype=torch.float64)
    """
    _check(d, n, time, spread)
    if sphere and (gaussian or masked):
        raise ValueError("sphere goes with a cloud of plain tokens: neither gaussian nor masked")
    if fast is not None and masked:
        raise ValueError("fast goes with tokens that see all others: not masked")
    Q, K, V = (None if M is None else _square(name, M, d) for name, M in (("Q", Q), ("K", K), ("V", V)))
    field = field_named(attention, d, Q=Q, K=K, V=V, epsilon=epsilon, heads=heads)
    if gaussian and heads > 1 and not any(_couples(M, d // heads) for M in (Q, K, V)):
        raise ValueError(
            "heads must be 1 for this Gaussian, on which all heads act as one: its coordinates are alike, and none of "
            "Q, K, V couples those of different heads"
        )
    if fast is not None:
        field = Fast(field, fast)  # pyright: ignore[reportArgumentType], which says so itself for several heads
    field = Relative(field) if relative else field
    field = Masked(field) if masked else field  # outermost: nothing moves the positions
    x = None if points is None else _given(points, d, gaussian)
    mu = _start(d, n, spread, seed, gaussian, masked, sphere, x)
    field, method = (Tangent(field), OnSphere(rk4)) if sphere else (field, METHOD)
    tell = None if progress is None else lambda t, state: progress(float(t))
    return integrate(field, mu, Uniform(time, n_layers), method, callback=tell)


def _couples(M: Tensor | None, k: int) -> bool:
    """Whether a matrix has entries outside its diagonal blocks of size k."""
    return M is not None and any(
        bool(M[a : a + k, :a].any() or M[a : a + k, a + k :].any()) for a in range(0, len(M), k)
    )


def _check(d: int, n: int, time: float, spread: float) -> None:
    for name, value in (("d", d), ("n", n)):
        whole(name, value)
    for name, value in (("time", time), ("spread", spread)):
        positive(name, value)


def _given(points, d: int, gaussian: bool) -> Tensor:
    x = torch.as_tensor(points, dtype=torch.float64)
    if gaussian:
        raise ValueError("points go with a cloud, not with gaussian")
    if x.ndim != 2 or x.shape[1] != d or not len(x) or not bool(x.isfinite().all()):
        raise ValueError(f"points must be finite numbers of shape (n, {d}), got {tuple(x.shape)}")
    return x


def _start(d: int, n: int, spread: float, seed: int, gaussian: bool, masked: bool, sphere: bool, x: Tensor | None):
    if gaussian:
        return Gaussian(torch.zeros(d, dtype=torch.float64), spread**2 * torch.eye(d, dtype=torch.float64))
    if x is None:
        x = spread * torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    if sphere:
        x = x / x.norm(dim=-1, keepdim=True)
    if masked:
        x = torch.cat([torch.linspace(0, 1, len(x), dtype=x.dtype)[:, None], x], -1)
    return Empirical(x)


def ending(path: Trajectory) -> str:
    """How a flow ended, in a sentence.

    >>> ending(simulate("linear", gaussian=True, time=10.0))
    'Blow-up in finite time, at t = 0.5.'
    """
    sentences = {
        Outcome.FINISHED: "It did not diverge.",
        Outcome.BLEW_UP: f"Blow-up in finite time, at t = {float(path.blow_up_time):.6g}.",
        Outcome.LEFT_FOR_INFINITY: "It outgrew the limit: divergence in infinite time.",
        Outcome.OUT_OF_STEPS: "The solver ran out of steps before the time asked for: what becomes of it is not known.",
    }
    return sentences[cast(Outcome, path.outcome)]


def save(path: Trajectory, out: str | Path, *, animate: bool = True) -> list[Path]:
    """Write ``trajectory.csv``, ``flow.png`` and, for a cloud in two or more dimensions, ``flow.gif`` into ``out``."""
    import matplotlib.pyplot as plt

    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "trajectory.csv", folder / "flow.png"]
    path.to_pandas().to_csv(files[0], index=False)
    figure, axes = plt.subplots(figsize=(5, 5))
    path.plot(axes)
    figure.savefig(files[1], dpi=160, bbox_inches="tight")
    plt.close(figure)
    if animate and not isinstance(path[0], Gaussian) and path.points.shape[-1] > 1:
        files.append(_animate(path, folder / "flow.gif"))
    return files


def _animate(path: Trajectory, file: Path) -> Path:
    import matplotlib.pyplot as plt
    from matplotlib.animation import FuncAnimation, PillowWriter

    points = path.points[:: -(-len(path) // FRAMES), ..., :2].numpy()
    figure, axes = plt.subplots(figsize=(4.5, 4.5))
    dots = axes.scatter(*points[0].T, s=6, color="#1f6feb", linewidths=0)
    reach = 1.05 * float(abs(points).max())
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    axes.spines[["top", "right"]].set_visible(False)
    show = FuncAnimation(figure, lambda i: dots.set_offsets(points[i]), frames=len(points))
    show.save(file, writer=PillowWriter(fps=15))
    plt.close(figure)
    return file
