"""
How many clusters are there, if any?
====================================

`choose_n_clusters` estimates the number of clusters in new data. This example applies it to points
with four clusters, to points without clusters, to three sorts of wine, and to handwritten digits,
whose ten classes are not clearly separated. Four criteria vote, and the plots show their votes.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_wine, make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster.model_selection import choose_n_clusters

blobs, _ = make_blobs(300, centers=4, random_state=1)
nothing = np.random.default_rng(0).uniform(size=(300, 2))

# %%
# Four clusters, and none
# -----------------------
# Most criteria find all four clusters, although two of them nearly touch. The square has no
# clusters, and the vote chooses 1. Only the criterion "mixture", which fits Gaussian mixtures,
# votes for more clusters, because several Gaussians describe the square better than one.

colours = ListedColormap(["#0072B2", "#E69F00", "#009E73", "#CC79A7"])
fig, axes = plt.subplots(
    2, 2, figsize=(8.4, 4.6), height_ratios=[3, 2], layout="constrained"
)
for X, (above, below) in zip((blobs, nothing), axes.T, strict=True):
    chosen = choose_n_clusters(KMeans(n_init=3), X, range(1, 9), random_state=0)
    above.scatter(
        *X.T, c=chosen.best_estimator_.labels_, s=8, cmap=colours, vmin=0, vmax=3
    )
    above.set_axis_off()
    chosen.plot(ax=below)
    print(chosen)

# %%
# Wine
# ----
# The features have different units. In a pipeline, the criteria use the input of the last step.

wine = load_wine()
scaled = make_pipeline(StandardScaler(), KMeans(n_init=10))
chosen = choose_n_clusters(scaled, wine.data, range(1, 9), random_state=0)
chosen.plot()
print(chosen)

# %%
# Digits
# ------
# If the criteria disagree, do not rely on the chosen number. Here two criteria vote for a number
# near ten, and two for a number that is too small. `as_good` marks the numbers that are about as
# good as the chosen one.

digits = load_digits()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    chosen = choose_n_clusters(KMeans(n_init=3), digits.data, random_state=0)
chosen.plot()
print(chosen, "as good:", chosen.candidates[chosen.as_good])
print(*(warning.message for warning in caught), sep="\n")

# %%
# Which numbers of clusters are stable?
# -------------------------------------
# A number of clusters is stable if clusterings of different subsamples agree. For the blobs, four
# clusters are stable. However, the clusters of points without groups can be stable, too: k-means
# cuts the square into quarters. So first test whether there are clusters at all, as above.

from sklearn.model_selection import GridSearchCV

from nmfcluster.display import StabilityDisplay
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer

fig, axes = plt.subplots(2, 1, figsize=(6.4, 7.6), layout="constrained")
for X, ax, name in zip((blobs, nothing), axes, ("blobs", "square"), strict=True):
    search = GridSearchCV(
        KMeans(n_init=1, random_state=0),
        {"n_clusters": range(2, 8)},
        scoring=StabilityScorer(10, details=True),
        cv=FullSampleSplit(),
        refit="stability",
    ).fit(X)
    StabilityDisplay.from_estimator(search, ax=ax)
    ax.set_title(name)
    print(name, search.best_params_)
