"""Criteria that look at clusters: how near, how far apart they are, and if they are found again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.cluster.hierarchy import ward
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.metrics import pairwise_distances, silhouette_score
from sklearn.metrics.cluster import contingency_matrix

from nmfcluster.constraints.graph import components
from nmfcluster.model_selection.copies import SEEDS
from nmfcluster.model_selection.vote.density import has_two_modes

PER_CLUSTER = 4  # samples, at least, of a cluster that can be told from others
_SPLITS = 12  # into halves
_FIRST = 3  # of these, of which one must be strong enough, or the rest will not make up for them
_ENOUGH = 0.8  # strength, with a standard error added, as in the paper: .8 to .9


def largest_silhouette(Z: np.ndarray, labellings: Mapping[int, np.ndarray]) -> int:
    """Return the number of clusters of which the mean silhouette is largest.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
    labellings : mapping of int to ndarray of shape (n,)
        Clusters by their number; those that are one cluster, or all of one sample, do not count.

    Returns
    -------
    int
        1 if there are none.
    """
    distances = pairwise_distances(Z)
    scores = {
        k: float(silhouette_score(distances, labels, metric="precomputed"))
        for k, labels in labellings.items()
        if 1 < len(np.unique(labels)) < len(Z)
    }
    return max(scores, key=lambda k: scores[k], default=1)


def most_apart(X: np.ndarray, candidates: Sequence[int]) -> int:
    """Return the most clusters of Ward's tree of which any two are apart, 1 if there are none.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    candidates : sequence of int

    Returns
    -------
    int
    """
    numbers = sorted(k for k in candidates if 1 < k <= len(X))
    if not numbers:
        return 1
    tree = ward(X)
    return next((k for k in reversed(numbers) if are_apart(X, cut(tree, k))), 1)


def cut(tree: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the clusters that are left after all merges of a tree but the last ones.

    Parameters
    ----------
    tree : ndarray of shape (n - 1, 4)
        As SciPy has it.
    n_clusters : int

    Returns
    -------
    ndarray of shape (n,), int
    """
    n = len(tree) + 1
    made = np.arange(n, 2 * n - n_clusters)  # what the merges made
    merged = tree[: len(made), :2].T.ravel().astype(made.dtype)
    return components(2 * n, np.column_stack([np.tile(made, 2), merged]))[:n]


def are_apart(X: np.ndarray, labels: np.ndarray) -> bool:
    """Return whether the samples of any two clusters have two modes on the axis that parts them.

    That is Fisher's linear discriminant of the two; modes are by `has_two_modes`, at 5 %.
    """
    labels = np.unique(labels, return_inverse=True)[1]
    sizes = np.bincount(labels)
    if sizes.min() < PER_CLUSTER:
        return False
    members = [X[labels == c] for c in range(len(sizes))]
    means = np.array([part.mean(axis=0) for part in members])
    within = [(part - mean).T @ (part - mean) for part, mean in zip(members, means, strict=True)]
    pairs = list(combinations(range(len(sizes)), 2))
    pairs.sort(key=lambda pair: float(np.linalg.norm(means[pair[0]] - means[pair[1]])))
    for i, j in pairs:  # the nearest first: they are the least apart
        S = (within[i] + within[j]) / (sizes[i] + sizes[j])
        # a millionth of the mean variance more: some variances are 0
        S[np.diag_indices_from(S)] += 1e-6 * np.trace(S) / len(S) + np.finfo(float).tiny
        axis = np.linalg.solve(S, means[i] - means[j])
        if not has_two_modes(np.concatenate([members[i] @ axis, members[j] @ axis])):
            return False
    return True


def prediction_strength(labels: np.ndarray, predicted: np.ndarray) -> float:
    """Return the share of pairs of a cluster that are predicted to be together, for the worst one.

    Parameters
    ----------
    labels : ndarray of shape (n,), int
        Clusters of samples, numbered from 0, by a fit to them.
    predicted : ndarray of shape (n,), int
        Clusters of these samples, by a fit to others.

    Returns
    -------
    float
        1 for clusters of one sample.
    """
    shared = contingency_matrix(labels, predicted)
    sizes = shared.sum(axis=1)
    together = (shared * (shared - 1)).sum(axis=1)
    pairs = sizes * (sizes - 1)
    return float(np.min(np.divide(together, pairs, out=np.ones(len(pairs)), where=pairs > 0)))


class Split:
    """Two halves of the samples, with starts of k-means for every number of clusters.

    The start of k clusters is the first k centres of the longest one: k-means++ draws them one by
    one. Of two starts, the one that ends better counts.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    most : int
        The largest number of clusters.
    rng : Generator
    """

    def __init__(self, X: np.ndarray, most: int, rng: np.random.Generator) -> None:
        order, half = rng.permutation(len(X)), len(X) // 2
        self._halves = X[order[:half]], X[order[half:]]
        self._most, self._seed = most, int(rng.integers(SEEDS))

    @cached_property
    def _starts(self) -> list[list[np.ndarray]]:
        rng = np.random.RandomState(self._seed)
        return [
            [kmeans_plusplus(part, self._most, random_state=rng)[0] for _ in range(2)]
            for part in self._halves
        ]

    def strength(self, k: int) -> float:
        """Return the prediction strength of k clusters in the second half."""
        best = []
        for part, starts in zip(self._halves, self._starts, strict=True):
            fits = [KMeans(k, init=start[:k], n_init=1).fit(part) for start in starts]
            best.append(min(fits, key=lambda fit: float(fit.inertia_)))
        first, second = best
        return prediction_strength(second.labels_, first.predict(self._halves[1]))


def most_predicted(X: np.ndarray, candidates: Iterable[int], rng: np.random.Generator) -> int:
    """Return the largest number of clusters of k-means whose prediction strength is .8 or more.

    Samples are split into halves twelve times, and the standard error of the mean is added [1]_.
    The largest number is asked first; it is given up where none of three splits has .8.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    candidates : iterable of int
    rng : Generator

    Returns
    -------
    int
        1 if there is no other.

    References
    ----------
    .. [1] R. Tibshirani, G. Walther. Cluster validation by prediction strength. Journal of
       Computational and Graphical Statistics 14, 2005.
    """
    tried = sorted(k for k in candidates if 1 < k and k * PER_CLUSTER <= len(X) // 2)
    if not tried:
        return 1
    splits = [Split(X, tried[-1], rng) for _ in range(_SPLITS)]
    return next((k for k in reversed(tried) if _is_predicted(splits, k)), 1)


def _is_predicted(splits: list[Split], k: int) -> bool:
    strengths = [split.strength(k) for split in splits[:_FIRST]]
    if max(strengths) < _ENOUGH:
        return False
    strengths += [split.strength(k) for split in splits[_FIRST:]]
    error = np.std(strengths, ddof=1) / np.sqrt(_SPLITS)
    return bool(np.mean(strengths) + error >= _ENOUGH)
