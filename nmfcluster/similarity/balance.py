"""Warn of large clusters that were split because a similarity was not normalised."""

import numpy as np

from nmfcluster._utils.labels import one_hot
from nmfcluster._utils.validation import warn
from nmfcluster.similarity.operators import Similarity

# quantiles of row sums that are compared, so that a few samples far from all others do not count
_EXTREMES = (0.02, 0.98)
# ratio of these above which the largest clusters make up nearly all of the objective
_MIN_RATIO = 10.0
# similarity between two clusters over that within them above which they may be one: that of the
# halves of a Gaussian cluster was at least 0.79, that of others about 0.4
_MIN_RELATIVE_SIMILARITY = 0.7


def measure_unevenness(W: Similarity, labels, n_clusters: int) -> tuple[float, float]:
    """Return how much row sums of a similarity differ, and how similar two of its clusters are.

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
        largest mean similarity between two clusters, over the smaller one of those within them,
        among clusters of two samples and more.
    """
    # row sums without the diagonal
    E = one_hot(labels, n_clusters, W.dtype)
    to_clusters = W @ E
    diagonal = W.diagonal()
    low, high = np.quantile(to_clusters.sum(axis=1) - diagonal, _EXTREMES)
    if low <= 0:
        return 0.0, 0.0
    # mean similarities between clusters, and within them
    sizes = E.sum(axis=0)
    used = sizes > 1
    sums = E.T @ to_clusters - np.diag(E.T @ diagonal)
    n_pairs = np.outer(sizes, sizes) - np.diag(sizes)
    means = (sums / np.maximum(n_pairs, 1))[np.ix_(used, used)]
    within = np.diagonal(means)
    smaller = np.maximum(np.minimum(within[:, None], within), np.finfo(W.dtype).tiny)
    with np.errstate(over="ignore"):  # nothing may be similar within
        relative = means / smaller
    np.fill_diagonal(relative, 0)
    return float(high / low), float(relative.max(initial=0))


def warn_of_split(W: Similarity, labels, n_clusters: int) -> None:
    """Warn where a similarity that was not normalised is likely to have split a large cluster."""
    ratio, similarity = measure_unevenness(W, labels, n_clusters)
    if ratio >= _MIN_RATIO and similarity >= _MIN_RELATIVE_SIMILARITY:
        warn(
            f"Sums of the similarities of a sample differ by a factor of {ratio:.0f}, as where "
            "clusters differ as much in size, and two of the clusters found are nearly as similar "
            f"to each other as one of them is within ({similarity:.2f}): a large cluster may be "
            "split, and small ones merged. Give normalize=True."
        )
