"""
Does training improve on Lloyd at equal depth?
==============================================

A `kmeans_transformer` is Lloyd's algorithm before any training. Its weights load into a trainable module of the same
shape, so the question that Clarkson et al. leave open can be asked: with the same few layers, does gradient descent on
the k-means objective find a better algorithm than Lloyd's? Here three unrolled layers learn on small random mixtures
whose first centres are random points, the start at which Lloyd is weakest.
"""

# %%
# Random problems: 48 points of four blobs in the plane, and four of the points as first centres.

import matplotlib.pyplot as plt
import torch

from measureflow.circuits import kmeans_transformer
from measureflow.circuits.clarkson import rows

N, D, K, LAYERS, GAMMA, STEPS, BATCH = 48, 2, 4, 3, 30.0, 250, 48
generator = torch.Generator().manual_seed(0)


def problems(count):
    means = torch.randn(count, K, D, generator=generator)
    label = torch.randint(K, (count, N, 1), generator=generator).expand(-1, -1, D)
    X = means.gather(1, label) + 0.25 * torch.randn(count, N, D, generator=generator)
    return X, X[:, :K]


def log_objective(X, C):
    """Log of the k-means objective (3), one for each problem."""
    return (X[:, :, None] - C[:, None]).square().sum(-1).amin(-1).sum(-1).log()


# %%
# Exact Lloyd, the same circuit at a finite gamma (which has gradients), and a trainable copy of it.

settings = {"n_layers": LAYERS, "dtype": torch.float32}
exact = kmeans_transformer(D, K, rows.lloyd(), **settings)
soft = kmeans_transformer(D, K, rows.lloyd(GAMMA), **settings)
learned = kmeans_transformer(D, K, rows.lloyd(GAMMA), learn=True, **settings)
learned.load_state_dict(soft.state_dict())

# %%
# Train on fresh problems at every step.

optimiser = torch.optim.Adam(learned.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
losses = []
for _ in range(STEPS):
    X, C = problems(BATCH)
    loss = log_objective(X, learned(X, C)).mean()
    optimiser.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(learned.parameters(), 1.0)
    optimiser.step()
    schedule.step()
    losses.append(loss.item())

# %%
# On problems never seen: the log objective after each layer, relative to twenty layers of exact Lloyd.

X, C = problems(1000)
with torch.no_grad():
    converged = log_objective(X, kmeans_transformer(D, K, rows.lloyd(), n_layers=20, dtype=torch.float32)(X, C))
    curves = {
        name: [(log_objective(X, s.centers) - converged).mean().item() for s in net.trace(X, C)]
        for name, net in (("Lloyd", exact), (f"circuit, gamma = {GAMMA:g}", soft), ("fine-tuned", learned))
    }
    gain = log_objective(X, exact(X, C)) - log_objective(X, learned(X, C))
error = gain.std().item() / len(gain) ** 0.5
print(f"log objective after {LAYERS} layers, relative to 20 layers of Lloyd:")
for name, curve in curves.items():
    print(f"  {name:22s} {curve[-1]:+.3f}")
print(f"fine-tuned below Lloyd at equal depth by {gain.mean():.3f} +- {error:.3f}")

# %%
# Learning does improve on Lloyd at equal depth, on problems like those it was trained on. It takes another way: its
# first layers leave the objective higher than Lloyd's, and only the last one brings it below.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(losses, color="#33608c", lw=1)
left.set(xlabel="step", ylabel="mean log objective, fresh problems", title="training")
for name, curve in curves.items():
    right.plot(range(1, LAYERS + 1), curve, marker="o", label=name)
right.axhline(0, color="#999999", lw=0.7)
right.set(
    xlabel="layer", ylabel="log objective above\n20 layers of Lloyd", title="new problems", xticks=range(1, LAYERS + 1)
)
right.legend(frameon=False)
plt.show()
