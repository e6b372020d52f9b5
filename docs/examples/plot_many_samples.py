"""
A hundred thousand samples, and some pairs that are known
=========================================================

A graph of neighbours of many samples takes long, and falls apart. Landmarks take its place: some
hundred points, to each of which a sample is near to some degree. Similarities by way of them are
never formed, so that time and memory are linear in the number of samples. Here the two rings are
found that k-means cuts in halves, and pairs of samples say which of three rings belong together.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.datasets import make_nested_rings

X, rings = make_nested_rings(100_000, radii=(2.0, 3.5, 5.0), random_state=0)
X = X.astype(np.float32)


def timed(name, labels_of, y):
    """Print the time and the adjusted Rand index of a fit, and return its labels."""
    began = perf_counter()
    labels = labels_of()
    seconds, score = perf_counter() - began, adjusted_rand_score(y, labels)
    print(f"{name}: {seconds:.1f} s, adjusted Rand index {score:.2f}")
    return labels


# %%
# Three rings
# -----------
# ``affinity="auto"`` takes landmarks for so many dense samples.

kmeans = timed("KMeans", lambda: KMeans(3, n_init=1, random_state=0).fit(X).labels_, rings)
model = SSNMFClusterer(3, random_state=0)
found = timed("SSNMFClusterer", lambda: model.fit(X).labels_, rings)
print("affinity:", model.affinity_)

# %%
# Two groups, of which pairs tell
# -------------------------------
# The outer and the inner ring are one class. That is nowhere in the features: a hundred pairs of
# samples tell it.

classes = np.where(rings == 1, 1, 0)
pairs = PairwiseConstraints.from_labels(classes, n_pairs=100, random_state=0)
pairwise = SSNMFClusterer(2, random_state=0)
told = timed("with pairs", lambda: pairwise.fit(X, constraints=pairs).labels_, classes)

# %%
# The same samples, three times
# -----------------------------

some = np.random.default_rng(0).permutation(len(X))[:4000]
shown = {"k-means": kmeans, "landmarks": found, "landmarks and pairs": told}
fig, axes = plt.subplots(1, 3, figsize=(9, 3.3), sharex=True, sharey=True, layout="constrained")
for ax, (title, labels) in zip(axes, shown.items(), strict=True):
    ax.scatter(*X[some].T, c=labels[some], s=2, cmap="tab10")
    ax.set(title=title, xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# New samples have their labels from their similarities to the landmarks, without the old ones.

new, truth = make_nested_rings(1_000, radii=(2.0, 3.5, 5.0), random_state=1)
score = adjusted_rand_score(truth, model.predict(new.astype(np.float32)))
print(f"new samples: adjusted Rand index {score:.2f}")
