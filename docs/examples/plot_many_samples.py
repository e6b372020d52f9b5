"""
Many samples and some known pairs
=================================

This example clusters 100,000 points in three rings. k-means cuts the rings into pieces, and
`SSNMFClusterer` separates them. Then known pairs of samples define which rings belong together.

For many samples, a graph of neighbours is slow to compute, and may have several components. Instead
of a graph, the estimator uses *landmarks*: two thousand points, each the mean of some nearby
samples. It computes how similar each sample is to the landmarks near it. Two samples are similar if
they are similar to the same landmarks. The matrix of all similarities is never formed, so time and
memory are linear in the number of samples.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.datasets import make_nested_rings
from nmfcluster.metrics import match_labels

X, rings = make_nested_rings(100_000, radii=(2.0, 3.5, 5.0), random_state=0)
X = X.astype(np.float32)


def timed(name, labels_of, y):
    """Print the time that labels take and their adjusted Rand index, and return the labels."""
    began = perf_counter()
    labels = labels_of()
    seconds, score = perf_counter() - began, adjusted_rand_score(y, labels)
    print(f"{name}: {seconds:.1f} s, adjusted Rand index {score:.2f}")
    return labels


# %%
# Fit a part, predict all
# -----------------------
# Large clusters can be found in a random part of the samples. All samples are then labelled by
# their similarities to the landmarks, in blocks. For more than 3,000 dense samples,
# ``affinity="auto"``, the default, uses landmarks.

part = np.random.default_rng(0).choice(len(X), 20_000, replace=False)
model = SSNMFClusterer(3, random_state=0)

kmeans = timed(
    "KMeans", lambda: KMeans(3, n_init=1, random_state=0).fit_predict(X), rings
)
found = timed("a part, then all", lambda: model.fit(X[part]).predict(X), rings)
print(f"{len(part):,} of {len(X):,} samples are fitted, affinity: {model.affinity_}")

# %%
# Pairs define two groups
# -----------------------
# The outer and the inner ring are one class. The features contain no information about this, but a
# hundred pairs of samples do. The pairs can contain any sample, so all samples are fitted.

classes = np.where(rings == 1, 1, 0)
pairs = PairwiseConstraints.from_labels(classes, n_pairs=100, random_state=0)
pairwise = SSNMFClusterer(2, random_state=0)
told = timed("with pairs", lambda: pairwise.fit_predict(X, constraints=pairs), classes)
print(pairs)
print(
    f"{len(pairwise.labels_):,} samples are fitted, {pairwise.satisfaction_:.0%} of pairs hold"
)

# %%
# Three clusterings
# -----------------
# The plots show a part of the samples. Clusters are matched with the rings, so a ring has the same
# colour in each plot that separates it from the others.

some = part[:4000]
colours = ListedColormap(["#0072B2", "#E69F00", "#009E73"])
shown = {"k-means": kmeans, "landmarks": found, "landmarks and pairs": told}
fig, axes = plt.subplots(
    1, 3, figsize=(7.2, 2.7), sharex=True, sharey=True, layout="constrained"
)
for ax, (title, labels) in zip(axes, shown.items(), strict=True):
    matched = match_labels(labels, rings)[some]
    ax.scatter(*X[some].T, c=matched, s=2, cmap=colours, vmin=0, vmax=2)
    ax.set(title=title, xticks=[], yticks=[], aspect="equal")
plt.show()
