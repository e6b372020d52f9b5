"""
Soft clusters as features of a classifier
=========================================

In this example, only a few digits have labels. Clustering needs no labels, so `NMFConsensus` is
fitted to all training digits. The memberships of a digit in the clusters become the features of a
classifier, which is fitted to the few labelled digits. If all digits have labels, both steps form
one pipeline.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster import NMFConsensus

# %%
# Few labels
# ----------
# The training set has the pixels of all its digits, but only some of the digits have a label.

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)

# %%
# Cluster all digits, fit a classifier to a few
# ---------------------------------------------
# The consensus is fitted once, to all training digits. `transform` returns the memberships of each
# digit in forty clusters, also for new digits.

consensus = NMFConsensus(40, n_estimators=30, random_state=0).fit(X)


def accuracy(model, make, known):
    """Return the accuracy on new digits of a classifier that is fitted to the known ones."""
    return model.fit(make(X[known]), y[known]).score(make(X_test), y_test)


counts, seeds = (20, 40, 80, 160), range(10)
scores = np.empty((2, len(counts), len(seeds)))
for i, count in enumerate(counts):
    for seed in seeds:
        known = train_test_split(
            np.arange(len(y)), train_size=count, random_state=seed
        )[0]
        pixels = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        scores[0, i, seed] = accuracy(pixels, np.asarray, known)
        clusters = LogisticRegression(C=100, max_iter=1000)
        scores[1, i, seed] = accuracy(clusters, consensus.transform, known)

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for row, colour, name in zip(
    scores, ("#E69F00", "#0072B2"), ("pixels", "clusters"), strict=True
):
    ax.plot(counts, row.mean(axis=1), "o-", color=colour, label=name)
    ax.fill_between(counts, row.min(axis=1), row.max(axis=1), color=colour, alpha=0.15)
ax.set(xlabel="digits with a label", ylabel="accuracy on new digits")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
plt.show()

for count, pixels, clusters in zip(counts, *scores.mean(axis=2), strict=True):
    print(f"{count:3d} labels: pixels {pixels:.3f}, clusters {clusters:.3f}")

# %%
# One pipeline
# ------------
# A pipeline fits all its steps to the same samples. If all samples have labels, the two steps can
# therefore form one pipeline. You can fit, tune and save it as a whole.

both = make_pipeline(
    NMFConsensus(40, n_estimators=30, random_state=0),
    LogisticRegression(C=100, max_iter=1000),
)
print(f"all {len(y)} labels: {both.fit(X, y).score(X_test, y_test):.3f}")
