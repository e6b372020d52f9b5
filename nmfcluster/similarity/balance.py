"""Clusters of a similarity that was not normalised: large ones that were split, and how to tell."""

import numpy as np

from nmfcluster._utils.labels import one_hot
from nmfcluster._utils.validation import warn
from nmfcluster.similarity.operators import Similarity

_EXTREMES = (
    0.02,
    0.98,
)  # quantiles of row sums: a few samples far from all others say nothing
_RATIO = 10.0  # of these, from which on the largest clusters have nearly all of the objective
_ALIKE = 0.7  # of the mean similarity in a cluster: splits of blobs are at .79 and more, else .4


def unevenness(
    W: Similarity, labels: np.ndarray, n_clusters: int
) -> tuple[float, float]:
    """Return how much row sums of a similarity differ, and how alike two of its clusters are.

    Parameters
    ----------
    W : Similarity of shape (n, n)
        Its diagonal does not count.
    labels : ndarray of shape (n,), int
    n_clusters : int

    Returns
    -------
    tuple of float
        The 98th percentile of the row sums over the second, 0 unless that is positive; and the
        largest mean similarity of two clusters, over the smaller one of those within them, of
        clusters of two samples and more.
    """
    E, diagonal = one_hot(labels, n_clusters, W.dtype), W.diagonal()
    of_clusters = W @ E
    low, high = np.quantile(of_clusters.sum(axis=1) - diagonal, _EXTREMES)
    if low <= 0:
        return 0.0, 0.0
    sums, sizes = E.T @ of_clusters - np.diag(E.T @ diagonal), E.sum(axis=0)
    used = sizes > 1
    means = (sums / np.maximum(np.outer(sizes, sizes) - np.diag(sizes), 1))[
        np.ix_(used, used)
    ]
    within = np.diagonal(means)
    with np.errstate(
        over="ignore"
    ):  # what is nowhere similar within is far less so than between
        alike = means / np.maximum(
            np.minimum(within[:, None], within), np.finfo(W.dtype).tiny
        )
    np.fill_diagonal(alike, 0)
    return float(high / low), float(alike.max(initial=0))


def warn_of_split(W: Similarity, labels: np.ndarray, n_clusters: int) -> None:
    """Warn where a similarity that was not normalised is likely to have split a large cluster."""
    ratio, alike = unevenness(W, labels, n_clusters)
    if ratio >= _RATIO and alike >= _ALIKE:
        warn(
            f"Sums of the similarities of a sample differ by a factor of {ratio:.0f}, as where "
            "clusters differ as much in size, and two of the clusters found are nearly as similar "
            f"to each other as one of them is within ({alike:.2f}): a large cluster may be split, "
            "and small ones merged. Give normalize=True."
        )
