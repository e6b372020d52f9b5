"""What partitions say of pairs of samples, and of samples, for those who look at it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.labels import cluster_counts, indicator, over_seen
from nmfcluster.metrics.members import mean_over_pairs, pairs_with_clusters


def consensus_matrix(
    codes: np.ndarray, weights: np.ndarray, groups: np.ndarray | None = None
) -> np.ndarray:
    """Return the co-association over the co-occurrence as a dense array.

    Parameters
    ----------
    codes : ndarray of shape (n, T), int
    weights : ndarray of shape (T,)
    groups : ndarray of shape (n,), int, default=None
        Group of every sample, 0 to g - 1: the result is then the mean over all pairs of two groups.
        By default every sample is a group.

    Returns
    -------
    ndarray of shape (n, n) or (g, g)
        NaN where no partition saw a pair together.
    """
    n_clusters = cluster_counts(codes)
    Z, seen = indicator(codes, n_clusters), (codes >= 0).astype(np.float64)
    if groups is not None:
        shape = (int(groups.max()) + 1, len(groups))
        E = sp.csr_array((np.ones(len(groups)), (groups, np.arange(len(groups)))), shape=shape)
        Z, seen = E @ Z, E @ seen
    together = ((Z * np.repeat(weights, n_clusters)) @ Z.T).toarray()
    both = (seen * weights) @ seen.T
    return over_seen(together, both)


def confidence(
    codes: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return how often a sample is with the others of its cluster in partitions, (n,).

    It is 1 for a sample that is alone, and 0 for one in no cluster, whose label is -1.
    """
    shares = np.full(codes.shape[1], 1 / codes.shape[1]) if weights is None else weights
    together, seen, E = pairs_with_clusters(codes, labels, shares)
    own = mean_over_pairs((together * E).sum(axis=1), (seen * E).sum(axis=1))
    return np.where(labels >= 0, np.where(np.isnan(own), 1, own), 0)
