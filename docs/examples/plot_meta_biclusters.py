"""
Biclusters that recur in many runs
==================================

A table is made of four groups of rows, each of which shares some columns, and the groups overlap on
both sides. NMF can take the table apart, but does not always: every run has a random start, and
different starts end in different factors. Badea clusters the clusters of many runs once more, and
keeps what recurs. This is the setting of section 6 of the paper. Its tables are not printed; these
are made up.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import consensus_score

from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_biclusters
from nmfcluster.display import BiclusterDisplay, ConsensusMatrixDisplay
from nmfcluster.metrics import cophenetic_correlation

# %%
# A table, and what it is made of
# -------------------------------
# The rows and columns come in random order. On the right they are sorted by the planted biclusters:
# a row that is in two of them has two marks at the left, a column two marks at the bottom. The
# first two, 0 and 1, are twins: they have nearly the same columns, in other rows, and one is half
# as strong.

X, W, H = make_biclusters(random_state=2)
rng = np.random.RandomState(0)
rows, columns = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
X, W, H = X[rows][:, columns], W[rows], H[:, columns]

figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
axes[0].imshow(X, cmap="Greys", aspect="auto")
axes[0].set(title="the table", xlabel="columns", ylabel="rows")
axes[0].locator_params(integer=True, nbins=5)
BiclusterDisplay.from_biclusters(X, W.T > 0, H > 0, ax=axes[1])
axes[1].set_title("sorted by what was planted")
plt.show()


# %%
# Single runs disagree
# --------------------
# scikit-learn's `consensus_score` matches biclusters one to one, by the cells that they share. It
# is 1 if all planted biclusters are found. Entries below a fifth of the largest do not count, as in
# `biclusters_`. Most of twenty single runs find them, the others do not.


def match(model, W, H):
    """Return how well the biclusters of a model match the planted ones."""
    return consensus_score(model.biclusters_, ((W >= 0.2 * W.max(axis=0)).T, H > 0))


runs = [
    NMFMetaCluster(4, n_estimators=1, random_state=seed).fit(X) for seed in range(20)
]
print("matches of single runs:", *(f"{match(run, W, H):.2f}" for run in runs))

# %%
# What recurs
# -----------
# Here are twenty runs, and the metaclusters of their eighty clusters. They are the planted
# biclusters. `recurrence_` is the mean similarity of a cluster with its counterparts in the runs, 0
# where a run has none.

model = NMFMetaCluster(4, n_estimators=20, random_state=0).fit(X)
print(f"match: {match(model, W, H):.2f}")
print(f"relative error: {model.reconstruction_err_ / np.linalg.norm(X):.1e}")
print("recurrence:", model.recurrence_.round(2))

display = BiclusterDisplay.from_estimator(model, X)
display.ax_.set_title("sorted by what was found")
plt.show()

# %%
# One way, two ways
# -----------------
# ``meta="nmf"`` compares clusters by their columns, and so can take twins for one cluster.
# ``meta="ptf"``, the default, compares rows and columns together. There are ten tables, each drawn
# anew, and the mean of five single runs for comparison.

figures = {"single runs": [], "nmf": [], "ptf": []}
for seed in range(10):
    table, *factors = make_biclusters(random_state=seed)
    alone = [
        NMFMetaCluster(4, n_estimators=1, random_state=run).fit(table)
        for run in range(5)
    ]
    figures["single runs"].append(np.mean([match(run, *factors) for run in alone]))
    for meta in ("nmf", "ptf"):
        found = NMFMetaCluster(4, meta=meta, random_state=0).fit(table)
        figures[meta].append(match(found, *factors))
for name, values in figures.items():
    print(f"{name:11}  mean match {np.mean(values):.2f}, worst {min(values):.2f}")

# %%
# How many clusters?
# ------------------
# The table now has some noise. Two curves over k show the cophenetic correlation of how often the
# runs put two rows together, and how often the least stable cluster recurs. Up to four clusters
# recur in most runs. For a fifth one only noise is left.

noisy, W, H = make_biclusters(noise=0.2, random_state=2)
ks = range(2, 9)
models = [NMFMetaCluster(k, random_state=0).fit(noisy) for k in ks]
cophenetic = [cophenetic_correlation(model.consensus_matrix()) for model in models]
recurrence = [model.recurrence_.min() for model in models]

figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.9), layout="constrained")
axes[0].plot(ks, cophenetic, marker="o", color="#0072B2")
axes[0].set(xlabel="number of clusters", title="cophenetic correlation")
axes[1].plot(ks, recurrence, marker="o", color="#0072B2")
axes[1].set(
    xlabel="number of clusters", title="least recurrence of a cluster", ylim=(0, 1.05)
)
plt.show()

# %%
# With six clusters, the runs agree on three blocks of rows. What they join besides differs from run
# to run.

display = ConsensusMatrixDisplay.from_estimator(models[4])
display.ax_.set_title(f"how often runs join rows, k = {ks[4]}")
plt.show()

# %%
# Noise
# -----
# The noise here is three quarters as large as the table. Factors then hold small numbers in many
# places, and `sparsity` asks for fewer. The penalty matters: "l1_columns" sets half of H to 0;
# "l2", the one of the paper, sets hardly more of H to 0 than plain NMF does. A small `sparsity`
# lowers the error to the table without noise a little, a large one raises it.

clean, W, H = make_biclusters(random_state=2)
noisy, _, _ = make_biclusters(noise=0.75, random_state=2)
print("penalty     sparsity  zeros of H  match  error to the table without noise")
for penalty, sparsity in [("l2", 0), ("l2", 0.05), ("l2", 0.2), ("l1_columns", 0.05)]:
    model = NMFMetaCluster(4, sparsity=sparsity, penalty=penalty, random_state=0).fit(
        noisy
    )
    error = np.linalg.norm(model.factor_ @ model.components_ - clean) / np.linalg.norm(
        clean
    )
    zeros = np.mean(model.components_ == 0)
    print(
        f"{penalty:10}  {sparsity:8}  {zeros:10.2f}  {match(model, W, H):5.2f}  {error:.3f}"
    )

# %%
# None of the penalties recovers all four biclusters here. The last fit has three of them with
# nearly all their columns. The weaker twin is lost in the noise, and a cluster of three columns is
# in its place. This cluster recurs least, which shows that it is doubtful.

print("recurrence:", model.recurrence_.round(2))
print("columns:   ", model.columns_.sum(axis=1))
display = BiclusterDisplay.from_estimator(model, noisy)
display.ax_.set_title("noise, and a penalty")
plt.show()
