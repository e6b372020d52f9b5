"""
Clusters of unequal size: count clusters, not pairs
===================================================

The five clusters of this example have 600, 200, 100, 60 and 40 samples. The base runs have 5 to 14
clusters, so most of them cut the large cluster into pieces. The consensus of Li, Ding and Jordan
(2007) counts pairs of samples. It gains more from splitting the large cluster than from finding a
small one. The default gives all clusters the same weight, and finds the small ones.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from nmfcluster import NMFConsensus
from nmfcluster.metrics import match_labels

sizes = (600, 200, 100, 60, 40)
centers = [(0, 0), (7, 0), (0, 7), (7, 7), (3.5, 13)]
X, y = make_blobs(sizes, centers=centers, cluster_std=0.9, random_state=0)

# %%
# Both forms get the same partitions
# ----------------------------------

default = NMFConsensus(5, base_n_clusters=(5, 14), random_state=0).fit(X)
partitions = default.partitions_
paper = NMFConsensus(5, normalize=False, random_state=0).fit(X, partitions=partitions)

# Clusters are matched with the true ones, so a colour means the same cluster in each panel.
five = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9"]
colours = ListedColormap([*five, *plt.cm.tab20b.colors])
shown = {
    "a base partition": partitions[:, -1],
    "pairs count": paper.labels_,
    "clusters count": default.labels_,
}
fig, axes = plt.subplots(
    1, 3, figsize=(8, 3), sharex=True, sharey=True, layout="constrained"
)
for ax, (title, labels) in zip(axes, shown.items(), strict=True):
    matched = match_labels(labels, y)
    ax.scatter(*X.T, c=matched, s=4, cmap=colours, vmin=0, vmax=24)
    score = adjusted_rand_score(y, labels)
    ax.set(title=f"{title}\nadjusted Rand index {score:.2f}", xticks=[], yticks=[])

# %%
# Why pairs prefer the split
# --------------------------
# If all partitions agree on a cluster of s samples, it joins s² pairs. That is 1,600 for the
# cluster of 40, and 90,000 for half of the large one, and some of the partitions that cut the large
# cluster agree on this half. In pairs, the partition that merges small clusters and splits the
# large one therefore has the smaller mean distance. In clusters, the true partition does.


def in_pairs(labels):
    """Return the mean number of pairs on which a partition and the others disagree."""
    same = labels[:, None] == labels
    return np.mean([np.sum(same != (p[:, None] == p)) for p in partitions.T])


def in_clusters(labels):
    """Return the mean squared distance of the projectors of a partition and the others."""

    def projector(labels):
        same = labels[:, None] == labels
        return same / same.sum(axis=0)

    own = projector(labels)
    return np.mean([np.sum((own - projector(p)) ** 2) for p in partitions.T])


print("distance in    pairs  clusters")
for name, labels in {"truth": y, "pairs count": paper.labels_}.items():
    print(f"{name:12} {in_pairs(labels):8.0f} {in_clusters(labels):8.2f}")
