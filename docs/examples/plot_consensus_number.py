"""
How many clusters? Follow the samples
=====================================

The number of clusters is not known, so several are tried: for each, the data are clustered fifty
times, every time another 80 % of the samples, and a consensus is made. Pictures compare the numbers
by where samples go. None of them needs a matrix of all pairs of samples.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from nmfcluster import NMFConsensus
from nmfcluster.metrics import cluster_consensus, item_consensus, match_labels

data = load_wine()
X = StandardScaler().fit_transform(data.data)
options = {"max_samples": 0.8, "random_state": 0}
models = [NMFConsensus(k, base_n_clusters=k, **options).fit(X) for k in range(2, 8)]

# %%
# Where do samples go when there is one cluster more?
# ---------------------------------------------------
# A row is a clustering, a column a sample, a colour a cluster. `match_labels` matches clusters with
# those of the row above, so that one keeps its colour where it keeps most of its samples; the one
# that is left is new. Up to three clusters, one is split and no more, and there are three sorts of
# wine. From there on the pieces have no right order: samples go back and forth between them.

rows = [models[0].labels_]
for model in models[1:]:
    rows.append(match_labels(model.labels_, rows[-1]))
fig, ax = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
ax.imshow(
    np.array(rows)[:, np.lexsort(rows[::-1])],
    "tab10",
    aspect="auto",
    interpolation="none",
)
texts = ax.set(
    xlabel="samples", ylabel="clusters", yticks=range(6), yticklabels=range(2, 8)
)

# %%
# Which clusters, and which samples?
# ----------------------------------
# The consensus of a cluster is the mean over its pairs; that of an item tells with which clusters
# a sample is how often. The samples that lie between two clusters are few, and half of the
# misplaced ones are among them.

model = models[1]
print(
    "consensus of the clusters:",
    cluster_consensus(model.partitions_, model.labels_).round(2),
)
items = item_consensus(model.partitions_, model.labels_)
second, first = np.sort(items, axis=1)[:, -2:].T
between = first - second < 0.5

classes = np.array(
    [np.bincount(data.target[model.labels_ == c]).argmax() for c in range(3)]
)
misplaced = classes[model.labels_] != data.target
print(f"{between.sum()} of {len(X)} samples lie between two clusters")
print(
    f"{misplaced.sum()} samples are misplaced, {np.sum(misplaced & between)} of these among them"
)

order = np.lexsort((-first, model.labels_))
fig, ax = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
for c, colour in enumerate(("#0072B2", "#E69F00", "#009E73")):
    ax.plot(items[order, c], color=colour, lw=1.5, label=f"with cluster {c}")
ax.plot(
    np.flatnonzero(misplaced[order]),
    np.full(misplaced.sum(), 1.06),
    "kv",
    label="misplaced",
)
ax.set(xlabel="samples, by cluster", ylabel="item consensus")
ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
plt.show()
