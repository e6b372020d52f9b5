"""
Views of the same objects, and what each contributes
====================================================

This example has three views of handwritten digits: the upper half of the image, the lower half, and
the amount of ink in each row and column. A fourth view is noise. Some digits are missing from the
first view. `SimilarityFusionNMF` accepts the data frames as they are. It finds the views that
agree, and uses these views to cluster the digits. Its methods then show what each view contributed.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from nmfcluster import SimilarityFusionNMF
from nmfcluster.display import SourceWeightsDisplay

# %%
# Data frames
# -----------
# Data frames are matched by their index, which has the names of the digits. The first frame lacks a
# fifth of the digits, and has a different order.

digits = load_digits()
rng = np.random.default_rng(0)
rows = rng.permutation(len(digits.target))[:600]
pictures, y = digits.images[rows], digits.target[rows]
names = [f"digit {i}" for i in rows]
ink = np.hstack([pictures.sum(axis=1), pictures.sum(axis=2)])
views = {
    "upper half": pd.DataFrame(pictures[:, :4].reshape(600, -1), index=names),
    "lower half": pd.DataFrame(pictures[:, 4:].reshape(600, -1), index=names),
    "ink": pd.DataFrame(ink, index=names),
    "noise": pd.DataFrame(rng.normal(size=(600, 10)), index=names),
}
truth = pd.Series(y, index=names)
views["upper half"] = views["upper half"].sample(frac=0.8, random_state=0)

# %%
# Clusters
# --------
# The fit clusters all digits that are in at least one frame. `sample_names_` has their names, in
# the order of `labels_`. The adjusted Rand index compares the clusters with the true digits. For
# comparison, k-means clusters each view alone.

model = SimilarityFusionNMF(n_clusters=10).fit(views)
found = truth[model.sample_names_]
print(f"fusion: {adjusted_rand_score(found, model.labels_):.2f}")
for name, view in views.items():
    labels = KMeans(10, n_init=10, random_state=0).fit_predict(view)
    print(f"k-means of {name}: {adjusted_rand_score(truth[view.index], labels):.2f}")

# %%
# What each view contributes
# --------------------------
# Three views agree more than by chance, and get equal weights. The noise agrees with no other view,
# and has weight 0. The left part of the plot shows the correlations of the views.

SourceWeightsDisplay.from_estimator(model)
plt.show()

# %%
# `rank_sources` clusters each view alone. The column `agreement` compares these clusters with those
# of the fusion. The clusters of the ink come closest.

print(pd.DataFrame(model.rank_sources()).round(2).to_string(index=False))

# %%
# The views need not contribute equally to a cluster. These are their shares for each cluster, with
# its most common digit:

shares = pd.DataFrame(model.source_contributions(), columns=model.source_names_)
shares.index = [f"mostly {found[model.labels_ == c].mode()[0]}" for c in range(10)]
print(shares.round(2).to_string())

# %%
# A fifth of the digits is missing from the upper half, so this view contributes less than the
# others.
#
# The fused similarity is the graph that the clusters explain. In the plot, the digits are sorted by
# cluster, so the clusters are blocks. Each cell is the mean of 36 entries, of six digits in the
# rows and six in the columns.

order = np.argsort(model.labels_, kind="stable")
fused = model.fused_similarity(order, order).toarray()
cells = fused.reshape(len(fused) // 6, 6, -1, 6).mean(axis=(1, 3))
figure, ax = plt.subplots(figsize=(5, 4.6), layout="constrained")
extent = (0, len(fused), len(fused), 0)
roots = np.sqrt(cells)  # so that small values are visible
ax.imshow(roots, cmap="Blues", extent=extent, interpolation="none")
ax.set(title="Fused similarity, by cluster", xlabel="digits", ylabel="digits")
plt.show()
