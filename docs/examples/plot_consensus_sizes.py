"""
Clusters of unequal size: count clusters, not pairs
===================================================

The five clusters of this example have 600, 200, 100, 60 and 40 samples. The base runs have 5 to 14
clusters, so most of them cut the large cluster into pieces. The consensus of Li, Ding and Jordan
(2007) gives all pairs of samples the same weight. A large cluster has far more pairs than a small
one, so splitting the large cluster improves the objective more than finding a small one. The
default gives all clusters the same weight, and finds the small ones.
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
# The default and the method of the paper
# ---------------------------------------
# Both fits get the same base partitions. `normalize=False` is the method of the paper.

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
# A cluster of s samples joins s² pairs. The cluster of 40 samples joins 1,600 pairs. Half of the
# large cluster joins 90,000, and some of the base partitions contain such a half. Therefore, if
# pairs count, splitting the large cluster matters more than separating small ones.
#
# The code below computes the mean distance of a partition to the base partitions in two ways. Each
# partition is a matrix, with a 1 for each pair of samples in the same cluster. If pairs count, the
# distance of two partitions is the number of entries in which their matrices differ. By this
# distance, a partition that merges small clusters and splits the large one is nearer than the true
# one. If clusters count, each entry is first divided by the size of its cluster. The distance is
# the sum of the squared differences. By this distance, the true partition is nearer.


def in_pairs(labels):
    """Return the mean number of pairs on which the base partitions disagree with this one."""
    same = labels[:, None] == labels
    return np.mean([np.sum(same != (p[:, None] == p)) for p in partitions.T])


def in_clusters(labels):
    """Return the mean squared distance to the base partitions, with clusters of equal weight."""

    def projector(labels):
        same = labels[:, None] == labels
        return same / same.sum(axis=0)

    own = projector(labels)
    return np.mean([np.sum((own - projector(p)) ** 2) for p in partitions.T])


print("distance in    pairs  clusters")
for name, labels in {"truth": y, "pairs count": paper.labels_}.items():
    print(f"{name:12} {in_pairs(labels):8.0f} {in_clusters(labels):8.2f}")
