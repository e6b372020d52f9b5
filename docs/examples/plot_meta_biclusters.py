"""
Biclusters that recur in many runs
==================================

A bicluster is a group of rows together with a group of columns, in which the data matrix has large
entries. The matrix of this example has four biclusters, which overlap in rows and in columns. NMF
can find them, but not always: every run has a random start, and different starts lead to different
factors. The method of Badea clusters the clusters of many runs, and keeps those that recur. This is
the setting of section 6 of the paper, with new data, because the paper does not print its own.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import consensus_score

from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_biclusters
from nmfcluster.display import BiclusterDisplay, ConsensusMatrixDisplay
from nmfcluster.metrics import cophenetic_correlation

# %%
# The data matrix and its biclusters
# ----------------------------------
# The rows and columns are in random order. The right plot sorts them by the true biclusters, which
# were planted in the matrix. A row that is in two biclusters has two marks at the left. A column
# that is in two biclusters has two marks at the bottom. The biclusters 0 and 1 are twins: they have
# nearly the same columns in different rows, and one is half as strong.

X, W, H = make_biclusters(random_state=2)
rng = np.random.RandomState(0)
rows, columns = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
X, W, H = X[rows][:, columns], W[rows], H[:, columns]

figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
axes[0].imshow(X, cmap="Greys", aspect="auto")
axes[0].set(title="the data matrix", xlabel="columns", ylabel="rows")
axes[0].locator_params(integer=True, nbins=5)
BiclusterDisplay.from_biclusters(X, W.T > 0, H > 0, ax=axes[1])
axes[1].set_title("sorted by planted biclusters")
plt.show()


# %%
# Single runs disagree
# --------------------
# scikit-learn's `consensus_score` matches biclusters one to one, by the cells that they share. It
# is 1 if all planted biclusters are found. As in `biclusters_`, entries below a fifth of the
# largest are ignored. Most of the twenty single runs find all biclusters, but some do not.


def match(model, W, H):
    """Return how well the biclusters of a model match the planted ones."""
    return consensus_score(model.biclusters_, ((W >= 0.2 * W.max(axis=0)).T, H > 0))


runs = [
    NMFMetaCluster(4, n_estimators=1, random_state=seed).fit(X) for seed in range(20)
]
print("matches of single runs:", *(f"{match(run, W, H):.2f}" for run in runs))

# %%
# Metaclusters recur
# ------------------
# Twenty runs with four clusters each have eighty clusters. `NMFMetaCluster` clusters them into four
# *metaclusters*, and these are the planted biclusters. `recurrence_` is the mean similarity of a
# metacluster and its counterparts in the runs. A run without a counterpart adds 0.

model = NMFMetaCluster(4, n_estimators=20, random_state=0).fit(X)
print(f"match: {match(model, W, H):.2f}")
print(f"relative error: {model.reconstruction_err_ / np.linalg.norm(X):.1e}")
print("recurrence:", model.recurrence_.round(2))

display = BiclusterDisplay.from_estimator(model, X)
display.ax_.set_title("sorted by found biclusters")
plt.show()

# %%
# One-way or two-way
# ------------------
# ``meta="nmf"`` compares clusters by their columns, so it can merge twins. ``meta="ptf"``, the
# default, compares rows and columns together. The code compares both on ten random matrices. It
# also prints the mean of five single runs.

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
# Now the matrix has some noise. The consensus matrix shows how often the runs put two rows into one
# cluster. The left curve is its cophenetic correlation, which is high if the runs agree. The right
# curve is the recurrence of the cluster that recurs least. With up to four clusters, all clusters
# recur in most runs. A fifth cluster can only describe noise.

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
# With six clusters, the runs agree on three blocks of rows. The other rows are in different
# clusters from run to run.

display = ConsensusMatrixDisplay.from_estimator(models[4])
display.ax_.set_title(f"how often runs join rows, k = {ks[4]}")
plt.show()

# %%
# Noise
# -----
# Here the noise is three quarters as large as the data, so the factors have small entries in many
# places. `sparsity` is the weight of a penalty that reduces them. The result depends on the
# penalty: "l1_columns" sets half of the entries of H to 0. "l2", the penalty of the paper, sets
# hardly more entries to 0 than NMF without a penalty. The error is measured relative to the matrix
# without noise. A small `sparsity` slightly lowers it, and a large one raises it.

clean, W, H = make_biclusters(random_state=2)
noisy, _, _ = make_biclusters(noise=0.75, random_state=2)
print(
    "penalty     sparsity  zeros of H  match  error relative to the matrix without noise"
)
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
# None of the fits finds all four biclusters. The last fit finds three of them, with nearly all
# their columns. The weaker twin is lost in the noise, and a cluster of three columns replaces it.
# This cluster has the lowest recurrence, which shows that it is doubtful.

print("recurrence:", model.recurrence_.round(2))
print("columns:   ", model.columns_.sum(axis=1))
display = BiclusterDisplay.from_estimator(model, noisy)
display.ax_.set_title("with noise and a penalty")
plt.show()
