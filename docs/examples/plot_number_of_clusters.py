"""
How many clusters are there, if any?
====================================

The first question about new data, asked in one call: of points with four clusters, of points with
none, of three sorts of wine, and of the digits, whose ten classes are no clear clusters. Four
criteria vote, and the pictures show what each of them says.
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
# Four, and none
# --------------
# Most criteria see all four clusters, although two of them nearly touch. In the square there is
# nothing to see: the mixture, which fills it with Gaussians, is outvoted.

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
# The features have different units. In a pipeline, the criteria see what its last step sees.

wine = load_wine()
scaled = make_pipeline(StandardScaler(), KMeans(n_init=10))
chosen = choose_n_clusters(scaled, wine.data, range(1, 9), random_state=0)
chosen.plot()
print(chosen)

# %%
# Digits
# ------
# Criteria that differ are a warning in themselves: two see a number near ten, and two see too
# little. `as_good` names the numbers that the chosen one can hardly be told from.

digits = load_digits()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    chosen = choose_n_clusters(KMeans(n_init=3), digits.data, random_state=0)
chosen.plot()
print(chosen, "as good:", chosen.candidates[chosen.as_good])
print(*(warning.message for warning in caught), sep="\n")

# %%
# With how many clusters does k-means find the same ones again?
# -------------------------------------------------------------
# That is another question, and stability answers it. The blobs have four stable clusters. But
# clusters of points without any can be found again, too: k-means cuts a square into quarters. So
# ask first whether there are clusters, as above.

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
