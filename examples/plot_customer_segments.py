"""
Segments of customers, and how stable they are
==============================================

A shop has 400 customers and three numbers for each: how often they buy, what they spend at a time, and how long ago
they last came. How many kinds of customers are there? The table is made here, of four kinds, so that the answer can be
checked.
"""

# %%
# Four kinds of customers. Money and counts are never negative and have long tails, as they do in shops.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from measureflow import FlowMixture

rng = np.random.default_rng(7)
KINDS = {  # name: how many, then the medians of orders a year, euros an order and days since the last
    "regulars": (150, 40, 25, 6),
    "big baskets": (90, 8, 210, 30),
    "seasonal": (100, 4, 60, 150),
    "lapsed": (60, 1.2, 30, 420),
}
parts = [
    pd.DataFrame(np.exp(rng.normal(np.log(medians), 0.28, (n, 3))), columns=["orders", "basket", "days_since"])
    for n, *medians in KINDS.values()
]
customers = pd.concat(parts, ignore_index=True)
truth = np.repeat(list(KINDS), [len(part) for part in parts])
print(customers.describe().round(1).loc[["min", "50%", "max"]])

# %%
# Amounts that differ by factors belong on a log scale. `n_stability` fits twenty parts of the rows again, to see what
# comes back.

segments = FlowMixture(n_stability=20, random_state=0).fit(np.log(customers))
print(f"{segments.n_clusters_} segments; adjusted Rand index {adjusted_rand_score(truth, segments.labels_):.2f}")
print("K in the refits:", segments.stability_.n_clusters)
print("each segment came back:", segments.stability_.clusters.round(2))

# %%
# What a segment is, in the units of the table: medians, and how many.

profile = customers.groupby(segments.labels_).median().round(1)
profile.insert(0, "customers", np.bincount(segments.labels_))
print(profile)

# %%
# A picture to show to others.

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, (across, up) in zip(axes, [("orders", "basket"), ("days_since", "basket")], strict=True):
    for k in range(segments.n_clusters_):
        inside = customers[segments.labels_ == k]
        ax.scatter(inside[across], inside[up], s=14, alpha=0.7, label=f"segment {k}: {len(inside)} customers")
    ax.set(xscale="log", yscale="log", xlabel=across, ylabel=up)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].legend(frameon=False, fontsize=9, loc="upper left")
plt.show()
