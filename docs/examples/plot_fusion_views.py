"""
Views of the same objects, and what each of them gave
=====================================================

Handwritten digits are described three times: by the upper half of the picture, by the lower half,
and by how much ink there is in every row and column. A fourth view is noise. Some digits are
missing from the first view. `SimilarityFusionNMF` takes the tables as they are, finds out which of
them agree, clusters the digits by these, and says what each view gave.
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
# Tables
# ------
# Data frames are matched by the names of the digits in their index. The first one lacks a fifth of
# them, and is in another order.

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
# `sample_names_` says whose labels these are: those of all digits that one of the frames has.

model = SimilarityFusionNMF(n_clusters=10).fit(views)
found = truth[model.sample_names_]
print(f"fusion: {adjusted_rand_score(found, model.labels_):.2f}")
for name, view in views.items():
    labels = KMeans(10, n_init=10, random_state=0).fit_predict(view)
    print(f"k-means of {name}: {adjusted_rand_score(truth[view.index], labels):.2f}")

# %%
# What each view gave
# -------------------
# Three views agree in what they say beyond independence, and count alike. Noise agrees with none of
# them, and has no weight. At the left of the picture are the correlations of the views.

SourceWeightsDisplay.from_estimator(model)
plt.show()

# %%
# Each view can also be clustered alone. The agreement here is that of its clusters with those of
# all: the one view that nearly found them is the ink.

print(pd.DataFrame(model.rank_sources()).round(2).to_string(index=False))

# %%
# A cluster need not be told by all views alike: here are their shares, beside the digit that is
# commonest in the cluster.

shares = pd.DataFrame(model.source_contributions(), columns=model.source_names_)
shares.index = [f"mostly {found[model.labels_ == c].mode()[0]}" for c in range(10)]
print(shares.round(2).to_string())

# %%
# A fifth of the digits is missing from the upper half, which therefore tells less than the others.
#
# The fused similarity is the graph that the clusters explain. In the order of the clusters it is
# close to blocks. Each cell of the picture is the mean of six by six digits.

order = np.argsort(model.labels_, kind="stable")
fused = model.fused_similarity(order, order).toarray()
cells = fused.reshape(len(fused) // 6, 6, -1, 6).mean(axis=(1, 3))
figure, ax = plt.subplots(figsize=(5, 4.6), layout="constrained")
extent = (0, len(fused), len(fused), 0)
roots = np.sqrt(cells)  # small values are seen, too
ax.imshow(roots, cmap="Blues", extent=extent, interpolation="none")
ax.set(title="Fused similarity, by cluster", xlabel="digits", ylabel="digits")
plt.show()
