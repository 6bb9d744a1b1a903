"""
Rows that belong to nothing
===========================

Sensors fail, people mistype, and a few rows belong to no cluster. `FlowMixture` shows them in one of two ways. Usually
they are in ``outliers_``, and labelled -1 if you ask for it. But if the clusters are taken to be Gaussians, strays may
form a cluster of their own, much wider than the others. No threshold has to be chosen; look at both.
"""

# %%
# Two groups, and 16 rows scattered over a wide square.

import matplotlib.pyplot as plt
import numpy as np

from measureflow import FlowMixture

rng = np.random.default_rng(3)
groups = np.concatenate([rng.normal((-2.5, 0), 0.5, (150, 2)), rng.normal((2.5, 0), 0.5, (150, 2))])
strays = rng.uniform(-25, 25, (16, 2))
X = np.concatenate([groups, strays])
stray = np.arange(len(X)) >= len(groups)

mixture = FlowMixture(label_outliers=True).fit(X)
found = mixture.outliers_
print(f"{mixture.n_clusters_} clusters; {found.sum()} rows belong to none")
for k in range(mixture.n_clusters_):
    inside = mixture.labels_ == k
    width = np.sqrt(np.trace(mixture.covariances_[k]))
    print(f"cluster {k}: {inside.sum()} rows, {(inside & stray).sum()} of them strays; it is {width:.1f} wide")

# %%
# Crosses are outliers; a cluster far wider than the others would be strays too. A stray that fell into a group cannot
# be told from its members.

figure, ax = plt.subplots(figsize=(6.4, 5), layout="constrained")
ax.scatter(*X[~found].T, c=mixture.labels_[~found], cmap="tab10", vmax=9, s=16, alpha=0.75)
ax.scatter(*X[found].T, marker="x", color="black", label="belongs to nothing")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
