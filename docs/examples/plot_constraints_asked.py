"""
Asking for the most informative pairs
=====================================

A person who knows the samples can decide whether two of them belong together, but has no time for
many pairs. This example clusters handwritten digits. `next_pairs` chooses five pairs at a time, a
person answers, and the model is fitted again with the answers. The clusters are compared with those
of the same number of random pairs.
"""

# sphinx_gallery_thumbnail_number = 2
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.constraints import next_pairs

# %%
# The samples and the answers
# ---------------------------
# The digits 3, 8 and 9 look similar. In this example, the true classes replace the person who
# answers. The clusterer does not get the classes.

X, y = load_digits(return_X_y=True)
chosen = np.flatnonzero(np.isin(y, [3, 8, 9]))
X, y = X[chosen], y[chosen]


def answer(pairs):
    """Return for every pair whether its samples belong together."""
    return y[pairs[:, 0]] == y[pairs[:, 1]]


# %%
# The first questions
# -------------------
# As long as no pair is known, each question compares a sample (upper row) with the central sample
# of its cluster (lower row). The samples in the upper row are not typical. They are chosen because
# they are most informative about other samples. The titles are the answers.

model = SSNMFClusterer(n_clusters=3, random_state=0).fit(X)
first = next_pairs(model, X, 5)
figure, axes = plt.subplots(2, 5, figsize=(6.4, 3), layout="constrained")
for column, pair, same in zip(axes.T, first, answer(first), strict=True):
    for ax, sample in zip(column, pair, strict=True):
        ax.imshow(X[sample].reshape(8, 8), cmap="gray_r")
        ax.set_axis_off()
    column[0].set_title("together" if same else "apart", fontsize="medium")
plt.show()

# %%
# Ask, answer, fit again
# ----------------------
# `next_pairs` never asks a question whose answer follows from earlier answers. For example, it does
# not ask about two samples that a chain of must-links joins, or about two samples from groups that
# are known to be apart. By default, must-links are hard: a fit never separates their samples. A few
# answers therefore form groups, with which other samples can be compared.

# some of these fits violate one or two pairs, and warn
warnings.filterwarnings("ignore", "Labels violate")
must_link = cannot_link = np.empty((0, 2), dtype=int)
asked = [adjusted_rand_score(y, model.labels_)]
for _ in range(12):
    pairs = next_pairs(model, X, 5)
    same = answer(pairs)
    must_link = np.vstack([must_link, pairs[same]])
    cannot_link = np.vstack([cannot_link, pairs[~same]])
    known = PairwiseConstraints(len(X), must_link, cannot_link)
    model.fit(X, constraints=known)
    asked.append(adjusted_rand_score(y, model.labels_))
print(known)

# %%
# Random pairs
# ------------
# For comparison, the same numbers of pairs are drawn at random, five times:

counts = np.arange(len(asked)) * 5
random = np.empty((5, len(counts)))
for draw in range(5):
    for i, count in enumerate(counts):
        some = PairwiseConstraints.from_labels(y, n_pairs=count, random_state=draw)
        random[draw, i] = adjusted_rand_score(y, model.fit(X, constraints=some).labels_)

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.plot(counts, asked, "o-", color="#0072B2", label="chosen")
ax.plot(counts, random.mean(axis=0), "o-", color="#E69F00", label="random")
ax.fill_between(
    counts, random.min(axis=0), random.max(axis=0), color="#E69F00", alpha=0.15
)
ax.set(xlabel="number of answers", ylabel="adjusted Rand index", ylim=(None, 1))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower right")
plt.show()

for count in (25, 60):
    i = count // 5
    print(
        f"{count} answers: chosen {asked[i]:.3f}, random {random[:, i].mean():.3f} on average"
    )

# %%
# With five answers, the clusters become worse, both with chosen pairs and, on average, with random
# pairs. From ten answers on, the chosen pairs are better than random pairs are on average. If there
# are few random pairs, the results differ a lot from draw to draw.
