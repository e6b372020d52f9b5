"""
Consensus of fifty runs on handwritten digits
=============================================

k-means finds different clusters for every seed. This example clusters the 1,797 images of digits
that come with scikit-learn. It shows how much single runs differ from each other, and from the true
classes. A consensus of fifty runs is one partition, which is closer to the true classes than
k-means is. The consensus also shows on which images the runs agree.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from nmfcluster import NMFConsensus
from nmfcluster.display import ConsensusMatrixDisplay
from nmfcluster.metrics import clustering_accuracy

X, y = load_digits(return_X_y=True)

# %%
# Single runs, the best of ten, and consensus
# -------------------------------------------
# Each method is run with six seeds. Each fit of the consensus makes fifty base runs. They factorize
# graphs of neighbours, with 10 to 15 clusters each.

seeds = range(6)
answers = {
    "single k-means run": [
        KMeans(10, n_init=1, random_state=seed).fit_predict(X) for seed in seeds
    ],
    "k-means, best of 10": [
        KMeans(10, n_init=10, random_state=seed).fit_predict(X) for seed in seeds
    ],
    "consensus of 50": [
        NMFConsensus(10, random_state=seed).fit_predict(X) for seed in seeds
    ],
}


def pairwise_agreement(partitions):
    """Return the adjusted Rand index of every two partitions."""
    return [
        adjusted_rand_score(a, b)
        for i, a in enumerate(partitions)
        for b in partitions[:i]
    ]


accuracy = {
    name: [clustering_accuracy(y, z) for z in partitions]
    for name, partitions in answers.items()
}
agreement = {
    name: pairwise_agreement(partitions) for name, partitions in answers.items()
}
for name in answers:
    print(
        f"{name:20} accuracy {np.mean(accuracy[name]):.3f} "
        f"({np.min(accuracy[name]):.3f} to {np.max(accuracy[name]):.3f}), "
        f"agreement between seeds {np.mean(agreement[name]):.3f}"
    )

# %%
# The left panel shows the accuracy: the share of images in the right cluster, under the best
# matching of clusters and classes. The right panel shows the stability: the adjusted Rand index
# between the results of two seeds.
#
# The best of ten runs of k-means is almost the same for every seed. However, it is only a little
# more accurate than a single run, because a partition with a lower k-means loss need not be closer
# to the true classes. The consensus is the most accurate. Its results differ less between seeds
# than those of single runs, but they still differ a little.

figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.7), layout="constrained", sharey=True)
rng = np.random.default_rng(0)
panels = zip(
    axes, [accuracy, agreement], ["accuracy", "agreement between seeds"], strict=True
)
for ax, values, title in panels:
    for row, name in enumerate(answers):
        jitter = rng.uniform(-0.15, 0.15, len(values[name]))
        ax.plot(
            values[name], row + jitter, "o", color="#0072B2", alpha=0.4, markersize=5
        )
        ax.plot(
            np.mean(values[name]),
            row,
            "|",
            color="black",
            markersize=22,
            markeredgewidth=2,
        )
    ax.set(xlabel=title, yticks=range(len(answers)), yticklabels=list(answers))
    ax.locator_params(axis="x", nbins=5)
    ax.spines[["top", "right"]].set_visible(False)
axes[0].invert_yaxis()
plt.show()

# %%
# What the runs agree on
# ----------------------
# The co-association of two images is the share of the runs that put them into the same cluster. The
# plot shows the co-association of all pairs. The images are sorted by cluster, so the clusters are
# dark blocks on the diagonal. If a block has a pattern inside, runs with more clusters divide this
# cluster, because its digit is written in several ways. A pale rectangle off the diagonal is a pair
# of clusters that some runs mix.

model = NMFConsensus(10, random_state=0).fit(X)
display = ConsensusMatrixDisplay.from_estimator(model)
plt.show()

# %%
# This is the most common digit of each cluster:

print("cluster  size  commonest digit  share")
for cluster in range(model.labels_.max() + 1):
    counts = np.bincount(y[model.labels_ == cluster])
    print(
        f"{cluster:7} {counts.sum():5} {counts.argmax():10} {counts.max() / counts.sum():14.0%}"
    )

# %%
# Which digits to check
# ---------------------
# `confidence_` measures how clearly the base partitions vote for the cluster of an image. An image
# is misplaced if its digit is not the most common digit of its cluster. Most of the misplaced
# images are among those with the lowest confidence, and few are in the more confident half.

commonest = np.array([np.bincount(y[model.labels_ == c]).argmax() for c in range(10)])
misplaced = commonest[model.labels_] != y
tenths = np.array_split(np.argsort(model.confidence_, kind="stable"), 10)

figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
ax.bar(range(1, 11), [misplaced[tenth].mean() for tenth in tenths], color="#0072B2")
ax.axhline(misplaced.mean(), color="0.4", linewidth=1, linestyle="--")
ax.annotate(
    "all digits",
    (10.5, misplaced.mean()),
    (0, 3),
    textcoords="offset points",
    ha="right",
)
ax.set(
    xlabel="tenth of the digits, by confidence",
    ylabel="share misplaced",
    xticks=range(1, 11),
)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# These are the twelve images with the lowest confidence. Each title has the digit, and the most
# common digit of its cluster:

figure, axes = plt.subplots(2, 6, figsize=(7, 2.8), layout="constrained")
for ax, i in zip(axes.flat, tenths[0], strict=False):
    ax.imshow(X[i].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{y[i]} with {commonest[model.labels_[i]]}", fontsize=9)
    ax.axis("off")
plt.show()

# %%
# The loss of each start
# ----------------------
# The consensus is a factorization, which is fitted from several starts. The first start is computed
# from eigenvectors. The others are random, or come from base partitions. The start that is kept is
# the one whose partition is nearest to the base partitions. Its loss need not be the lowest: the
# loss measures how well the factors fit, and the partition is derived from the factors.

for i, curve in reversed(list(enumerate(model.loss_curves_))):
    plt.plot(curve, color="0.7" if i else "C0", label=None if i else "kept")
plt.xlabel("update")
plt.ylabel("loss")
plt.legend()
plt.show()
