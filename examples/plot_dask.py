"""
More rows than fit in memory
============================

A Dask array is summarised block by block, the summary is clustered, and every block is labelled in turn. Only a few
blocks and the labels are in memory at a time. With a Dask client, the same lines run on a cluster of machines. This
needs the extra ``dask``: ``pip install measureflow[dask]``.
"""

# %%
# Two million rows that exist only when a block of them is asked for.

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from measureflow import FlowMixture

ROWS, BLOCK = 2_000_000, 100_000
centers = np.array([[0.0, 0.0], [6.0, 0.0], [3.0, 5.0], [9.0, 5.0], [6.0, 10.0]])
random = da.random.default_rng(0)
kind = random.integers(0, len(centers), ROWS, chunks=BLOCK)
X = kind.map_blocks(lambda k: centers[k], new_axis=1, chunks=(kind.chunks[0], (2,)), dtype=float, meta=np.zeros((0, 2)))
X = X + random.normal(0, 1, (ROWS, 2), chunks=(BLOCK, 2))
print(X)

# %%
# The fit, and how far off it is.

mixture = FlowMixture().fit(X)
sizes = np.bincount(mixture.labels_)
print(f"{mixture.n_clusters_} clusters of {', '.join(f'{size:,}' for size in sizes)} rows")
away = np.linalg.norm(centers[:, None] - mixture.cluster_centers_[None], axis=-1).min(1)
print(f"every true centre has a found one within {away.max():.3f}")

# %%
# One row in a thousand, with its label.

few, labels = X[::1000].compute(), mixture.labels_[::1000]
figure, ax = plt.subplots(figsize=(6, 4.6), layout="constrained")
ax.scatter(*few.T, c=labels, cmap="tab10", vmax=9, s=8, alpha=0.6)
ax.scatter(*mixture.cluster_centers_.T, marker="x", color="black")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
