"""Prediction strength: whether clusters of one half of the samples are those of the other half."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from sklearn.cluster import KMeans

_SPLITS = 12  # into halves
_ENOUGH = 0.8  # with a standard error added, as in the paper: .8 to .9
_STARTS = 2  # of k-means
_PER_CLUSTER = 4  # samples of a half that a cluster has on average, at least


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
    shared = np.zeros((labels.max() + 1, predicted.max() + 1))
    np.add.at(shared, (labels, predicted), 1)
    sizes = shared.sum(axis=1)
    together = (shared * (shared - 1)).sum(axis=1)
    pairs = sizes * (sizes - 1)
    return float(np.min(np.divide(together, pairs, out=np.ones_like(pairs), where=pairs > 0)))


def most_predicted(X: np.ndarray, candidates: Iterable[int], rng: np.random.Generator) -> int:
    """Return the largest number of clusters of k-means whose prediction strength is .8 or more.

    Samples are split into halves twelve times, and the standard error of the mean is added [1]_.

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
    half = len(X) // 2
    tried = [k for k in candidates if 1 < k and k * _PER_CLUSTER <= half]
    strengths = np.empty((_SPLITS, len(tried)))
    for b in range(_SPLITS):
        order = rng.permutation(len(X))
        parts = X[order[:half]], X[order[half:]]
        seed = int(rng.integers(2**31))
        for i, k in enumerate(tried):
            first, second = (
                KMeans(k, n_init=_STARTS, random_state=seed).fit(part) for part in parts
            )
            strengths[b, i] = prediction_strength(second.labels_, first.predict(parts[1]))
    errors = strengths.std(axis=0, ddof=1) / np.sqrt(_SPLITS)
    enough = strengths.mean(axis=0) + errors >= _ENOUGH
    return max((k for k, yes in zip(tried, enough, strict=True) if yes), default=1)
