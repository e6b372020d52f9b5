"""
Asking about the pairs that tell most
=====================================

Somebody who knows the samples can say of two of them whether they belong together, but not of very
many. This example clusters handwritten digits, asks about five pairs at a time, chosen by
`next_pairs`, and fits again with the answers. It compares the clusters with those of as many pairs
that are drawn at random.
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
# Samples, and somebody who answers
# ---------------------------------
# The digits 3, 8 and 9 are alike. The true classes take the place of the person who answers; the
# clusterer does not see them.

X, y = load_digits(return_X_y=True)
chosen = np.flatnonzero(np.isin(y, [3, 8, 9]))
X, y = X[chosen], y[chosen]


def answer(pairs):
    """Return for every pair whether its samples belong together."""
    return y[pairs[:, 0]] == y[pairs[:, 1]]


# %%
# What is asked first
# -------------------
# While nothing is known, samples are asked about with the middle of the cluster where they seem to
# be, the lower row. The upper row has the samples that tell most about others, not those that are
# typical. In the titles are the answers.

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
# No pair is asked about that follows from the answers so far: not two samples that a chain of
# must-links joins, nor two of groups of which a cannot-link is known. The clusterer joins samples
# of must-links for good, so that few answers make groups to ask others against.

# of so many fits some violate a pair or two
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
# As many pairs, drawn five times.

counts = np.arange(len(asked)) * 5
random = np.empty((5, len(counts)))
for draw in range(5):
    for i, count in enumerate(counts):
        some = PairwiseConstraints.from_labels(y, n_pairs=count, random_state=draw)
        random[draw, i] = adjusted_rand_score(y, model.fit(X, constraints=some).labels_)

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.plot(counts, asked, "o-", color="#0072B2", label="asked")
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
        f"{count} answers: asked {asked[i]:.3f}, random {random[:, i].mean():.3f} in the mean"
    )

# %%
# Five answers do harm here: asked ones, and random ones in the mean. From ten on the asked pairs
# are ahead of the mean of the random ones. What few random pairs give differs a lot from draw to
# draw.
