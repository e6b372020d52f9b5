"""
Clustering text with a few known pairs
======================================

Documents can be grouped in several ways, and the words alone do not show which one you want. This
example clusters short texts: the descriptions of SciPy's functions and classes. It uses pairs of
texts that are known to be from the same module, or from different modules. It chooses the weights
of these pairs by cross-validation, and shows the words of the clusters.
"""

import importlib
import inspect
import warnings

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import Pipeline

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.metrics import clustering_accuracy
from nmfcluster.model_selection import ConstraintScorer

# %%
# The documents
# -------------
# A document is the part of a docstring above its parameters, if it has at least eight words. Its
# class is its module. The documents depend on the installed version of SciPy, and so do all numbers
# below.

modules = ["linalg", "ndimage", "optimize", "signal", "sparse"]


def descriptions(module):
    """Return the descriptions of the public functions and classes of a module of SciPy."""
    public = importlib.import_module(f"scipy.{module}")
    members = [(name, getattr(public, name)) for name in sorted(public.__all__)]
    found = {
        f"{module}.{name}": (inspect.getdoc(thing) or "").split("\nParameters\n")[0]
        for name, thing in members
        if inspect.isroutine(thing) or inspect.isclass(thing)
    }
    return {name: text for name, text in found.items() if len(text.split()) >= 8}


documents = {
    name: text for module in modules for name, text in descriptions(module).items()
}
names, texts = np.array(list(documents)), np.array(list(documents.values()))
y = np.array([modules.index(name.split(".")[0]) for name in names])
length = np.mean([len(text.split()) for text in texts])
print(f"{len(texts)} documents of {length:.0f} words on average")
for name in ("ndimage.shift", "sparse.kron"):
    print(f"\n{name}: {documents[name]}")

# %%
# The names of modules are stop words, because a text that contains its module would reveal the
# class. The default affinity is a graph of nearest neighbours. With ``affinity="cosine"``, the
# similarity is the cosine, without a graph. Without pairs, both are about equally good. With pairs,
# the graph is better, as the end of this example shows.

words = TfidfVectorizer(
    stop_words=[*ENGLISH_STOP_WORDS, *modules, "scipy", "numpy"],
    token_pattern=r"\b[a-z][a-z]+\b",
    min_df=2,
    max_df=0.5,
    sublinear_tf=True,
)
clusterer = SSNMFClusterer(n_clusters=len(modules), random_state=0)
pipeline = Pipeline([("words", words), ("cluster", clusterer)])

# %%
# What pairs improve
# ------------------
# A random quarter of the documents is in no pair, whatever the number of pairs. If these documents
# are clustered better with more pairs, the pairs also help with documents that they do not contain.
# Each number of pairs is drawn three times.

# some of these fits violate one or two pairs, and warn
warnings.filterwarnings("ignore", "Labels violate")
in_no_pair = np.random.default_rng(0).uniform(size=len(y)) < 0.25
known = np.where(in_no_pair, -1, y)  # -1: not known
n_pairs = [0, 100, 200, 400, 800]
accuracy = np.empty((2, len(n_pairs), 3))
for i, m in enumerate(n_pairs):
    for seed in range(3):
        pairs = PairwiseConstraints.from_labels(known, n_pairs=m, random_state=seed)
        labels = pipeline.fit_predict(texts, cluster__constraints=pairs)
        accuracy[0, i, seed] = clustering_accuracy(y, labels)
        accuracy[1, i, seed] = clustering_accuracy(y[in_no_pair], labels[in_no_pair])

X = words.fit_transform(texts)
k_means = [KMeans(5, n_init=10, random_state=seed).fit_predict(X) for seed in range(3)]
k_means_accuracy = np.mean([clustering_accuracy(y, labels) for labels in k_means])

figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ax.axhline(k_means_accuracy, color="0.5", linewidth=1, linestyle="--")
ax.annotate("k-means", (0, k_means_accuracy), (0, 3), textcoords="offset points")
lines = zip(
    accuracy,
    ["all documents", "documents in no pair"],
    ["#0072B2", "#E69F00"],
    strict=True,
)
for values, label, colour in lines:
    ax.plot(n_pairs, values.mean(axis=1), "o-", color=colour, label=label)
    ax.fill_between(
        n_pairs, values.min(axis=1), values.max(axis=1), color=colour, alpha=0.15
    )
ax.set(xlabel="number of known pairs", ylabel="accuracy", ylim=(None, 1))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper left")
plt.show()

# %%
# Choosing weights without labels
# -------------------------------
# Suppose that you know only 400 pairs. Must-links can be hard or soft. Soft must-links have the
# weight `alpha`, which has no effect on hard ones. Cannot-links have the weight `beta`. The grid
# starts with the defaults, which are hard must-links and a `beta` of 3, because the search takes
# the first of equally good candidates.
#
# In each split, the search fits one half of the documents, with the pairs inside this half. It
# predicts the clusters of the other half. These clusters satisfy a share of the must-links inside
# the other half, and a share of the cannot-links. The score is the mean of the two shares.
# `PairwiseConstraints` is split with the documents. A plain list of pairs would refer to the wrong
# documents in every half.

pairs = PairwiseConstraints.from_labels(y, n_pairs=400, random_state=0)
print(pairs)
search = GridSearchCV(
    pipeline,
    [
        {"cluster__hard_must_link": [True], "cluster__beta": [3, 1, 10]},
        {
            "cluster__hard_must_link": [False],
            "cluster__alpha": [0.25, 1],
            "cluster__beta": [3, 1],
        },
    ],
    scoring=ConstraintScorer(),
    cv=ShuffleSplit(4, test_size=0.5, random_state=0),
)

# %%
# Without metadata routing, pass the pairs twice: to the step that is fitted, and as `y` to the
# scorer. The estimators of this package ignore `y`.

search.fit(texts, pairs, cluster__constraints=pairs)
scores = search.cv_results_["mean_test_score"]
for i in search.cv_results_["rank_test_score"].argsort(kind="stable"):
    parameters = search.cv_results_["params"][i]
    print(
        f"{scores[i]:.3f}",
        {name.split("__")[1]: value for name, value in parameters.items()},
    )

# %%
# With metadata routing, pass the pairs once. They reach every step and scorer that requests them.
# The result is the same.

with sklearn.config_context(enable_metadata_routing=True):
    routed = sklearn.clone(search).fit(texts, constraints=pairs)
np.testing.assert_array_equal(routed.cv_results_["mean_test_score"], scores)
assert routed.best_params_ == search.best_params_
print(search.best_params_)

# %%
# The clusters
# ------------
# The words with the largest mean weight in a cluster show its topic:

best = search.best_estimator_
labels = best["cluster"].labels_
vocabulary = best["words"].get_feature_names_out()
for cluster in range(labels.max() + 1):
    weights = np.asarray(X[labels == cluster].mean(axis=0)).ravel()
    top = ", ".join(vocabulary[weights.argsort()[:-9:-1]])
    print(f"{cluster} ({(labels == cluster).sum()} documents): {top}")

# %%
# How many pairs do the clusters satisfy? Hard must-links are never violated. k-means does not use
# the pairs. It violates many must-links and many cannot-links.

for name, answer in (("chosen weights", labels), ("k-means", k_means[0])):
    must_ok, cannot_ok = pairs.satisfied(answer)
    print(
        f"{name}: {must_ok.mean():.2f} of must-links, {cannot_ok.mean():.2f} of cannot-links"
    )

# %%
# The model also labels new descriptions:

new = [
    "Find the smallest value of a function of several variables by Newton's method.",
    "Erode a binary image by a structuring element.",
]
for text, cluster in zip(new, best.predict(new), strict=True):
    commonest = np.bincount(y[labels == cluster]).argmax()
    print(f"{modules[commonest]}: {text}")

# %%
# Comparison with the true modules
# --------------------------------
# The search used only the 400 pairs, and not the modules of all documents. Now the adjusted Rand
# index compares the clusters with the modules. The last two rows use the cosine instead of the
# graph.

default = pipeline.fit_predict(texts, cluster__constraints=pairs)
cosine = SSNMFClusterer(n_clusters=5, affinity="cosine", random_state=0)
answers = {
    "k-means": k_means[0],
    "no pairs": pipeline.fit_predict(texts),
    "400 pairs, defaults": default,
    "400 pairs, chosen weights": labels,
    "cosine, no pairs": cosine.fit_predict(X),
    "cosine, 400 pairs": cosine.fit_predict(X, constraints=pairs),
}
used = np.zeros(len(y), dtype=bool)
used[np.concatenate([pairs.must_link, pairs.cannot_link]).ravel()] = True
print(f"{'':28}{'all':>8}{f'{(~used).sum()} in no pair':>18}")
for name, answer in answers.items():
    everywhere = adjusted_rand_score(y, answer)
    elsewhere = adjusted_rand_score(y[~used], answer[~used])
    print(f"{name:28}{everywhere:8.3f}{elsewhere:18.3f}")
