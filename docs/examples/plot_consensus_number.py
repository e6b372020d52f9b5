"""
How many clusters? Follow the samples
=====================================

If the number of clusters is not known, you can compare several. For each number, this example
clusters the data fifty times, each time with a different 80 % of the samples, and computes a
consensus. The plots show where samples move as the number grows. None of them needs a matrix of all
pairs of samples.
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
# Where do samples move with one more cluster?
# --------------------------------------------
# Each row is a clustering, each column a sample, and each colour a cluster. `match_labels` matches
# the clusters with those of the row above, so a cluster keeps its colour if it keeps most of its
# samples. A cluster without a match gets a new colour. The step from two to three clusters splits
# one cluster, and changes nothing else. With more clusters, samples move back and forth between the
# clusters. Three is also the number of sorts of wine.

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
# `cluster_consensus` returns the mean confidence of the samples of each cluster. `item_consensus`
# returns a value for each sample and each cluster: how often, on average, a base partition joins
# the sample with a sample of this cluster. If the two largest values of a sample are
# similar, the sample lies between two clusters. Few samples do. A sample is misplaced if it is not
# of the most common sort of its cluster. Half of the misplaced samples lie between two clusters.

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
    f"{misplaced.sum()} samples are misplaced, {np.sum(misplaced & between)} of them lie between"
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
