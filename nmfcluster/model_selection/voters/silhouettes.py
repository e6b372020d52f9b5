"""Which clusters have the largest silhouette, of several clusterings of the same samples."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.metrics import pairwise_distances

from nmfcluster._arrays.labels import one_hot


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
    codes = {k: np.unique(labels, return_inverse=True)[1] for k, labels in labellings.items()}
    codes = {k: own for k, own in codes.items() if 0 < own.max() < len(Z) - 1}
    if not codes:
        return 1
    memberships = [one_hot(own, own.max() + 1) for own in codes.values()]
    widths = np.cumsum([E.shape[1] for E in memberships])
    sums = pairwise_distances(Z) @ np.hstack(memberships)  # in one product, which is fast
    parts = np.split(sums, widths[:-1], axis=1)
    scores = [mean_silhouette(*both) for both in zip(parts, codes.values(), strict=True)]
    return list(codes)[int(np.argmax(scores))]


def mean_silhouette(sums: np.ndarray, labels: np.ndarray) -> float:
    r"""Return the mean of :math:`(b - a) / \max(a, b)`, 0 of a sample that is alone [1]_.

    a is the mean distance to the others of the own cluster, b to the nearest other cluster.

    Parameters
    ----------
    sums : ndarray of shape (n, k)
        Distances from a sample to those of a cluster, added up.
    labels : ndarray of shape (n,), int
        Clusters, none of which is empty, numbered from 0.

    References
    ----------
    .. [1] P. J. Rousseeuw. Silhouettes: a graphical aid to the interpretation and validation of
       cluster analysis. Journal of Computational and Applied Mathematics 20, 1987.
    """
    sizes, rows = np.bincount(labels), np.arange(len(labels))
    a = sums[rows, labels] / np.maximum(sizes[labels] - 1, 1)
    means = sums / sizes
    means[rows, labels] = np.inf
    b = means.min(axis=1)
    larger = np.maximum(a, b)
    values = np.divide(b - a, larger, out=np.zeros_like(a), where=larger > 0)
    return float(np.where(sizes[labels] > 1, values, 0).mean())
