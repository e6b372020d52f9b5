"""
Many samples, and some pairs that are known
===========================================

A graph of neighbours of many samples takes long, and falls apart. Landmarks take its place: two
thousand points, to each of which a sample is near to some degree. Similarities by way of them are
never formed, so that time and memory are linear in the number of samples. Here the rings are found
that k-means cuts in pieces, and pairs of samples say which of three rings belong together.
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
# Three rings, of a part of the samples
# -------------------------------------
# Large clusters are found in a random part of the samples. All samples then have their labels from
# their similarities to the landmarks, in blocks, without the samples of the fit.
# ``affinity="auto"`` takes landmarks for so many dense samples.

part = np.random.default_rng(0).choice(len(X), 20_000, replace=False)
model = SSNMFClusterer(3, random_state=0)

kmeans = timed(
    "KMeans", lambda: KMeans(3, n_init=1, random_state=0).fit_predict(X), rings
)
found = timed("a part, then all", lambda: model.fit(X[part]).predict(X), rings)
print(f"{len(part):,} of {len(X):,} samples are fitted, affinity: {model.affinity_}")

# %%
# Two groups, of which pairs tell
# -------------------------------
# The outer and the inner ring are one class. That is nowhere in the features: a hundred pairs of
# samples tell it. They are pairs of all samples, and so all are fitted.

classes = np.where(rings == 1, 1, 0)
pairs = PairwiseConstraints.from_labels(classes, n_pairs=100, random_state=0)
pairwise = SSNMFClusterer(2, random_state=0)
told = timed("with pairs", lambda: pairwise.fit_predict(X, constraints=pairs), classes)
print(pairs)
print(
    f"{len(pairwise.labels_):,} samples are fitted, {pairwise.satisfaction_:.0%} of pairs hold"
)

# %%
# The same samples, three times
# -----------------------------
# A picture shows some of them. Clusters are matched with the rings, so that they have one colour in
# all three pictures.

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
