"""Criteria that look at clusters: how far apart they are, and if they are found again."""

from collections.abc import Iterable

import numpy as np
from scipy.cluster.hierarchy import complete, fcluster, single
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.metrics.cluster import contingency_matrix

from nmfcluster.model_selection.refits import SEEDS

PER_CLUSTER = 8  # samples, at least, of a cluster that criteria can tell from others
LEAST = 3  # samples of clusters that are far apart: two are near each other by chance
_FAR = 1.5  # times as far as wide, for certain: 3 % of samples of 6 numbers are, and 8 % at 1
_SPLITS = 12  # into halves
_FIRST = 3  # of these, of which one must be strong enough, or the rest will not make up for them
_ENOUGH = 0.8  # strength, with a standard error added, as in the paper: .8 to .9


def n_far_apart(X: np.ndarray, most: int) -> tuple[int, int]:
    """Return the number of clusters that are farther from each other than any of them is wide.

    Then Dunn's index, the least distance of samples of two clusters over the largest one of two
    samples of a cluster, is above 1 [1]_. Single linkage has the one, complete linkage the other,
    and both the same clusters.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    most : int

    Returns
    -------
    likely : int
        The one with the largest index, 1 if there is none, or if a cluster has fewer than three
        samples.
    certain : int
        The same, 1 if the index is below 1.5.

    References
    ----------
    .. [1] J. C. Dunn. Well-separated clusters and optimal fuzzy partitions. Journal of Cybernetics
       4, 1974.
    """
    distances = pdist(X)
    tree, apart, found = complete(distances), single(distances)[:, 2], {1: 1.0}
    for k in range(2, min(most, len(X) // LEAST) + 1):
        width = tree[-k, 2]
        if (
            apart[1 - k] > width
            and np.bincount(fcluster(tree, k, "maxclust"))[1:].min() >= LEAST
        ):
            found[k] = apart[1 - k] / width if width else np.inf
    likely = max(found, key=lambda k: found[k])
    return likely, likely if found[likely] > _FAR else 1


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
    return float(
        np.min(np.divide(together, pairs, out=np.ones(len(pairs)), where=pairs > 0))
    )


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
        seeded = np.random.RandomState(int(rng.integers(SEEDS)))
        self._starts = [
            [kmeans_plusplus(half, most, random_state=seeded)[0] for _ in range(2)]
            for half in self._halves
        ]

    def strength(self, k: int) -> float:
        """Return the prediction strength of k clusters in the second half."""
        best = []
        for part, starts in zip(self._halves, self._starts, strict=True):
            fits = [KMeans(k, init=start[:k], n_init=1).fit(part) for start in starts]
            best.append(min(fits, key=lambda fit: float(fit.inertia_)))
        first, second = best
        return prediction_strength(second.labels_, first.predict(self._halves[1]))


def most_predicted(
    X: np.ndarray, candidates: Iterable[int], rng: np.random.Generator
) -> int:
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
    tried = sorted(k for k in candidates if 1 < k and k * PER_CLUSTER <= len(X))
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
