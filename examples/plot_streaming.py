"""
A stream of rows
================

Rows that arrive in batches need not be kept: ``partial_fit`` remembers a weighted summary of them. A cluster that
appears later is found once enough of its rows have come.
"""

# %%
# Twelve batches of 500 rows. The third group begins with the fifth batch, the fourth with the ninth.

import matplotlib.pyplot as plt
import numpy as np

from measureflow import FlowMixture

rng = np.random.default_rng(5)
centers = np.array([[-4.0, -2.0], [4.0, -2.0], [0.0, 4.0], [0.0, -5.0]])
begins = np.array([0, 0, 4, 8])


def batch(t: int) -> np.ndarray:
    there = centers[begins <= t]
    return there[rng.integers(len(there), size=500)] + 0.8 * rng.standard_normal((500, 2))


stream = FlowMixture()
found, seen = [], []
for t in range(12):
    rows = batch(t)
    stream.partial_fit(rows)
    found.append(stream.n_clusters_)
    seen.append(rows)
print("clusters after each batch:", found)

# %%
# The last batch in the clusters of all that was seen, and how many there were after each.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(1, 1.1), layout="constrained")
left.scatter(*seen[-1].T, c=stream.predict(seen[-1]), cmap="tab10", vmax=9, s=9, alpha=0.7)
left.scatter(*stream.cluster_centers_.T, marker="x", color="black")
left.set_title("the last batch, and the centres")
right.step(range(1, 13), found, where="mid", linewidth=2, label="found")
right.step(
    range(1, 13), [(begins <= t).sum() for t in range(12)], where="mid", linestyle="--", color="grey", label="there"
)
right.set(xlabel="batches seen", ylabel="clusters", yticks=range(1, 6), title="how many")
right.legend(frameon=False)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
