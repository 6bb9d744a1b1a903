"""
Tokens gather along an attention flow
=====================================

Old Faithful's eruptions as tokens of a transformer: how long each lasted, and the wait for the next. Every layer moves
each token a little toward the average of what it attends to, those near it, and nobody says how many groups there are.
"""

import matplotlib.pyplot as plt
import torch

from measureflow.attention import Attention, NegativeSquaredDistance, Relative, Softmax
from measureflow.data import load_faithful
from measureflow.flows import Trajectory, Uniform, cluster_count, integrate
from measureflow.measures import Empirical

GAMMA = 3.0  # tokens look about 1 / sqrt(2 GAMMA) = 0.4 standard deviations around them
LAYERS = 40
NEAR = 0.1  # tokens less than this apart count as one cluster
COLOURS = ("#d1495b", "#00798c", "#edae49", "#66a182", "#2e4057")
GREY, FAINT = "#8d99ae", "#c9ced6"


def flow(tokens: Empirical) -> Trajectory:
    """Every layer moves each token a little toward the average of what it attends to: those near it."""
    attention = Attention(NegativeSquaredDistance(), Softmax(GAMMA))
    return integrate(Relative(attention), tokens, Uniform(time=6.0, n_layers=LAYERS))


def clusters(points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Tokens that ended in one place, largest group first: labels, centres and sizes."""
    labels = torch.full((len(points),), -1)
    for i in range(len(points)):
        if labels[i] < 0:
            near = (points - points[i]).norm(dim=1) < NEAR
            labels[near & (labels < 0)] = labels.max() + 1
    sizes = torch.bincount(labels)
    order = sizes.argsort(descending=True)
    labels = order.argsort()[labels]
    centers = torch.stack([points[labels == k].mean(0) for k in range(len(order))])
    return labels, centers, sizes[order]


def draw(path: Trajectory, counts: list[int], labels: torch.Tensor, mean, spread) -> plt.Figure:
    """Before with the paths, after, and the number of clusters from layer to layer."""
    minutes = (path.points * spread + mean).numpy()
    colours = [COLOURS[k % len(COLOURS)] for k in labels.tolist()]
    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, (before, after, layers) = plt.subplots(
        1, 3, figsize=(13, 4.3), width_ratios=(1, 1, 0.8), layout="constrained"
    )
    for i, colour in enumerate(colours):
        before.plot(*minutes[:, i].T, color=colour, alpha=0.25, linewidth=0.7, zorder=1)
    before.scatter(*minutes[0].T, s=14, color=GREY, edgecolors="white", linewidths=0.4, zorder=2)
    before.set_title("272 eruptions, and the way each token takes")
    draw_end(after, minutes, labels)
    for axes in (before, after):
        axes.set(xlabel="eruption lasted (minutes)", xlim=(1.3, 5.4), ylim=(40, 99))
    before.set_ylabel("wait for the next (minutes)")
    layers.plot(counts, color="#2e4057", linewidth=2)
    layers.set(yscale="log", xlabel="layer", title="groups of tokens", xlim=(0, len(counts) - 1), ylim=(1, 110))
    layers.set_yticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
    layers.minorticks_off()
    layers.annotate(
        f"{counts[-1]} groups", (len(counts) - 1, counts[-1]), (0, 8), textcoords="offset points", ha="right"
    )
    return figure


def draw_end(axes, minutes, labels: torch.Tensor) -> None:
    """Where the tokens came from, faint, and where they are now, as large as they are many."""
    axes.set_title(f"after {LAYERS} attention layers")
    for k in range(int(labels.max()) + 1):
        colour, members = COLOURS[k % len(COLOURS)], (labels == k).numpy()
        axes.scatter(*minutes[0, members].T, s=12, color=colour, alpha=0.35, linewidths=0)
        x, y = minutes[-1, members].mean(0)
        axes.scatter(x, y, s=2.5 * members.sum() + 80, color=colour, edgecolors="white", linewidths=1.5, zorder=3)
        axes.annotate(f"{members.sum()}", (x, y), color="white", ha="center", va="center", fontsize=9, zorder=4)


# %%
# Flow, and count the groups from layer to layer.

table = load_faithful()
minutes = torch.tensor(table[["eruptions", "waiting"]].to_numpy(), dtype=torch.float64)
mean, spread = minutes.mean(0), minutes.std(0)
path = flow(Empirical((minutes - mean) / spread))
counts = [int(cluster_count(state, NEAR)) for state in path]
labels, centers, sizes = clusters(path[-1].points)
for (lasted, wait), size in zip((centers * spread + mean).tolist(), sizes.tolist(), strict=True):
    print(f"{size:3d} eruptions of about {lasted:.1f} minutes, followed by a wait of about {wait:.0f} minutes")

# %%
# Before with the way each token takes, after, and the number of groups.

figure = draw(path, counts, labels, mean, spread)
plt.show()
