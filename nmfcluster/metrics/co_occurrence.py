"""Co-occurrence of samples in the clusters of partitions, by pairs and by clusters."""

from typing import Any

import numpy as np

from nmfcluster._utils.labels import (
    cluster_counts,
    encode_labels,
    indicator,
    one_hot,
    share_of_seen,
)
from nmfcluster._utils.validation import normalize_weights


def consensus_matrix(codes, weights, groups: np.ndarray | None = None):
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
    Z = indicator(codes, n_clusters)
    seen = (codes >= 0).astype(np.float64)
    if groups is not None:
        E = indicator(groups[:, None], cluster_counts(groups[:, None])).T.tocsr()
        Z = E @ Z
        seen = E @ seen
    together = ((Z * np.repeat(weights, n_clusters)) @ Z.T).toarray()
    return share_of_seen(together, (seen * weights) @ seen.T)


def confidence(codes, labels, weights: np.ndarray | None = None):
    """Return how often partitions join a sample with the others of its cluster, (n,).

    It is 1 for a sample that is alone, and 0 for one in no cluster, whose label is -1.
    """
    if weights is None:
        weights = np.full(codes.shape[1], 1 / codes.shape[1])
    together, seen, E = _sum_pairs(codes, labels, weights)
    shares = _mean_of_seen((together * E).sum(axis=1), (seen * E).sum(axis=1))
    shares[np.isnan(shares)] = 1
    return np.where(labels >= 0, shares, 0)


def item_consensus(partitions: Any, labels: Any, *, weights: Any = None) -> np.ndarray:
    """Return how often partitions join a sample with the members of every cluster.

    It is the mean co-association of the sample and the other members of a cluster [1]_, over the
    pairs that a partition saw. A sample with about equal values for two clusters lies between them.
    No matrix of all pairs is formed: time and memory are linear in the number of samples.

    Parameters
    ----------
    partitions : array-like of shape (n_samples, n_partitions) or list of label vectors
        As `NMFConsensus.fit` takes them; a negative number, NaN or None means not seen.
    labels : array-like of shape (n_samples,)
        Cluster of every sample, integers or strings; a negative number means in no cluster.
    weights : array-like of shape (n_partitions,), default=None
        Nonnegative weights of the partitions; equal by default.

    Returns
    -------
    ndarray of shape (n_samples, n_clusters)
        In [0, 1]; NaN where no pair was seen, as for a sample that is alone in its cluster. Columns
        are in the order of the sorted labels.

    Raises
    ------
    ValueError
        If lengths differ, no sample is in a cluster, or a parameter is not as described.
    TypeError
        If labels are neither integers nor strings.

    See Also
    --------
    cluster_consensus : The mean over the pairs of a cluster.

    References
    ----------
    .. [1] S. Monti, P. Tamayo, J. Mesirov, T. Golub. Consensus clustering: a resampling-based
       method for class discovery and visualization of gene expression microarray data. Machine
       Learning 52, 2003.

    Examples
    --------
    >>> from nmfcluster.metrics import item_consensus
    >>> item_consensus([[0, 0, 1, 1], [0, 1, 1, 1]], labels=[0, 0, 1, 1])
    array([[0.5 , 0.  ],
           [0.5 , 0.5 ],
           [0.25, 1.  ],
           [0.25, 1.  ]])
    """
    together, seen, _ = _read_pairs(partitions, labels, weights)
    return _mean_of_seen(together, seen)


def cluster_consensus(
    partitions: Any, labels: Any, *, weights: Any = None
) -> np.ndarray:
    """Return how often partitions join two members of a cluster, for every cluster.

    It is the mean co-association of the pairs of different samples in a cluster [1]_, over the
    pairs that a partition saw. It is low for clusters that the partitions do not agree on.

    Parameters
    ----------
    partitions : array-like of shape (n_samples, n_partitions) or list of label vectors
        As `NMFConsensus.fit` takes them; a negative number, NaN or None means not seen.
    labels : array-like of shape (n_samples,)
        Cluster of every sample, integers or strings; a negative number means in no cluster.
    weights : array-like of shape (n_partitions,), default=None
        Nonnegative weights of the partitions; equal by default.

    Returns
    -------
    ndarray of shape (n_clusters,)
        In [0, 1], in the order of the sorted labels; NaN for a cluster of one sample.

    Raises
    ------
    ValueError
        If lengths differ, no sample is in a cluster, or a parameter is not as described.
    TypeError
        If labels are neither integers nor strings.

    See Also
    --------
    item_consensus : The same of every sample with every cluster.

    References
    ----------
    .. [1] S. Monti, P. Tamayo, J. Mesirov, T. Golub. Consensus clustering: a resampling-based
       method for class discovery and visualization of gene expression microarray data. Machine
       Learning 52, 2003.

    Examples
    --------
    >>> from nmfcluster.metrics import cluster_consensus
    >>> cluster_consensus([[0, 0, 1, 1], [0, 1, 1, 1]], labels=["a", "a", "b", "b"])
    array([0.5, 1. ])
    """
    together, seen, E = _read_pairs(partitions, labels, weights)
    return _mean_of_seen((together * E).sum(axis=0), (seen * E).sum(axis=0))


def _mean_of_seen(together, seen):
    """Return the shares, in [0, 1]; NaN where nothing was seen, up to rounding of sums."""
    return np.clip(share_of_seen(together, seen, 1e-9), 0, 1)


def _read_pairs(partitions, labels, weights):
    """Return the sums of `_sum_pairs` for the arguments of a metric."""
    codes, _ = encode_labels(partitions, "partitions")
    if np.ndim(labels) != 1:
        raise ValueError(
            f"labels must have shape (n_samples,), got shape {np.shape(labels)}."
        )
    clusters = encode_labels([labels], "labels")[0][:, 0]
    if len(clusters) != len(codes):
        raise ValueError(
            f"labels must be {len(codes)}, one a sample, got {len(clusters)}."
        )
    if clusters.max() < 0:
        raise ValueError("labels must hold a cluster, got none.")
    return _sum_pairs(codes, clusters, normalize_weights(weights, codes.shape[1]))


def _sum_pairs(codes, clusters, weights):
    """Sum weights of partitions over the pairs of a sample and the other members of a cluster.

    Returned are the weights of the partitions that join the pairs, and of those that saw them,
    both (n_samples, n_clusters), and the indicator of the clusters, whose rows are 0 for samples
    in none.
    """
    n_clusters = max(int(clusters.max()), 0) + 1
    E = one_hot(np.maximum(clusters, 0), n_clusters) * (clusters >= 0)[:, None]
    n_base = cluster_counts(codes)
    Z = indicator(codes, n_base)
    observed = codes >= 0
    together = Z @ (np.repeat(weights, n_base)[:, None] * (Z.T @ E))
    seen = (observed * weights) @ (observed.T @ E)
    itself = E * (observed @ weights)[:, None]
    return together - itself, seen - itself, E
