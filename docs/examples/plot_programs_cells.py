"""
Programs of cells from counts of genes
======================================

A cell runs several programs at once, and each program produces molecules of its own genes. The data
matrix counts the molecules of every gene in every cell. This example simulates such counts, chooses
the number of programs, finds the programs by many runs of NMF, and compares them with the true
ones.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_programs
from nmfcluster.metrics import match_components
from nmfcluster.model_selection import sweep_n_clusters

# %%
# Counts
# ------
# There are 300 cells, 400 genes and five programs. Most entries are 0, as in real counts.

counts, usage, programs = make_programs(300, 400, 5, random_state=0)
print(
    f"{counts.shape[0]} cells, {counts.shape[1]} genes, {(counts == 0).mean():.0%} zeros"
)

# %%
# How many programs?
# ------------------
# For every number of programs, some counts are held out and predicted from the others. More
# programs than the true number do not predict better.

start = NMFMetaCluster(2, loss="kullback-leibler", n_estimators=8, random_state=0)
sweep = sweep_n_clusters(start, counts, range(2, 9), random_state=0)
sweep.plot()
plt.show()

# %%
# The programs
# ------------
# Each row of `components_` is a program. An entry is the share of the molecules of this program
# that come from a gene. `match_components` pairs the programs of the fit with the true ones. The
# cosines of the pairs are close to 1, so the fit has found the true programs.

model = sweep.best_estimator_
rows, cosines = match_components(programs, model.components_)
print(f"{model.n_clusters} programs; cosines {np.round(cosines, 3)}")
print(f"they come back in the runs: {np.round(model.recurrence_, 2)}")

# %%
# Their cells
# -----------
# `membership_` is the share of a cell's molecules that each program made. If a column is dark in
# two rows, the cell runs two programs.

shares = model.membership_
order = np.lexsort((-shares.max(axis=1), model.labels_))
figure, ax = plt.subplots(figsize=(7.2, 2.4), layout="constrained")
image = ax.imshow(shares[order].T, "Blues", aspect="auto", interpolation="none")
figure.colorbar(image, label="membership")
ax.set(xlabel="cells", ylabel="program")
plt.show()

# %%
# Their genes
# -----------
# The score of a gene for a program is high if the counts of the gene increase strongly with the
# membership of the cells in the program. The figure shows the genes with the highest scores.

genes, scores = model.top_features(8, model.feature_scores(counts))
figure, axes = plt.subplots(1, model.n_clusters, figsize=(7.2, 3), layout="constrained")
for program, ax in enumerate(axes):
    names = genes[program].astype(str)
    ax.barh(names[::-1], scores[program][::-1], color="#0072B2")
    ax.set_title(f"program {program}", fontsize="medium")
    ax.locator_params(axis="x", nbins=2)
    ax.spines[["top", "right"]].set_visible(False)
figure.supxlabel("score", fontsize="medium")
axes[0].set_ylabel("gene")
plt.show()
