"""Scores of clusterings and of consensus matrices."""

from typing import Any

import numpy as np
from scipy.cluster.hierarchy import average, cophenet
from scipy.spatial.distance import squareform
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_consistent_length, column_or_1d

from nmfcluster._utils.array_api import to_numpy
from nmfcluster._utils.labels import is_missing
from nmfcluster._utils.validation import read_matrix
from nmfcluster.metrics.agreement import count_matched

# how far the entries of a mean of matrices may be outside of [0, 1] by rounding
_ROUNDING = 1e-9


def clustering_accuracy(labels_true: Any, labels_pred: Any) -> float:
    """Return the share of samples in the right cluster under the best matching of clusters.

    Every cluster stands for at most one class and the other way round; the matching with the most
    samples is found by the Hungarian method. This is the accuracy of [1]_.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        Classes.
    labels_pred : array-like of shape (n_samples,)
        Clusters; their names do not matter, and there may be more or fewer than classes.

    Returns
    -------
    float
        In (0, 1].

    Raises
    ------
    ValueError
        If the lengths differ, there is no sample, or a label is None or NaN.

    References
    ----------
    .. [1] T. Li, C. Ding, M. I. Jordan. Solving consensus and semi-supervised clustering
       problems using nonnegative matrix factorization. ICDM 2007.

    Examples
    --------
    >>> from nmfcluster.metrics import clustering_accuracy
    >>> clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 1])
    0.75
    """
    labels_true = _read_labels(labels_true, "labels_true")
    labels_pred = _read_labels(labels_pred, "labels_pred")
    check_consistent_length(labels_true, labels_pred)
    table = contingency_matrix(labels_true, labels_pred)
    return count_matched(table) / len(labels_true)


def _read_labels(labels, name: str):
    """Return labels as a vector, none of them missing."""
    if np.ndim(labels) != 1:
        raise ValueError(
            f"{name} must have shape (n_samples,), got shape {np.shape(labels)}."
        )
    labels = column_or_1d(to_numpy(labels))
    if not len(labels):
        raise ValueError(f"{name} holds 0 samples; at least one is needed.")
    if labels.dtype.kind in "Of" and any(map(is_missing, labels)):
        raise ValueError(
            f"{name} must not hold missing labels: leave these samples out."
        )
    return labels


def cophenetic_correlation(consensus: Any) -> float:
    """Return how well a consensus matrix is explained by its average-linkage tree.

    The correlation between the distances ``1 - consensus`` and the heights at which average
    linkage joins the samples [1]_: 1 for a perfect consensus, in which all entries are 0 or 1. To
    choose the number of clusters, fit models with several, with base partitions of the same number,
    and see where it begins to fall.

    Parameters
    ----------
    consensus : array-like of shape (n_samples, n_samples)
        Symmetric, entries in [0, 1], ones on the diagonal, as
        `NMFConsensus.consensus_matrix` returns it. At least 3 samples. NaN stands for a
        pair that no partition saw. Such pairs do not count in the correlation, and have the mean
        distance of the others in the tree. A sample with NaN on the diagonal is left out.

    Returns
    -------
    float
        In [-1, 1]. 1 if all distances are equal.

    Raises
    ------
    ValueError
        If `consensus` is not such a matrix.

    References
    ----------
    .. [1] J.-P. Brunet, P. Tamayo, T. R. Golub, J. P. Mesirov. Metagenes and molecular pattern
       discovery using matrix factorization. PNAS 101, 2004.

    Examples
    --------
    >>> from nmfcluster.metrics import cophenetic_correlation
    >>> round(cophenetic_correlation([[1, 1, 0.2], [1, 1, 0.4], [0.2, 0.4, 1]]), 3)
    0.971
    """
    consensus = _check_consensus(consensus)
    if len(consensus) < 3:
        raise ValueError(
            f"consensus must have at least 3 samples, got {len(consensus)}."
        )
    # entries may be above 1 by rounding
    distances = squareform(1 - consensus.clip(max=1), checks=False)
    seen = ~np.isnan(distances)
    if not seen.any():
        raise ValueError(
            "consensus must hold a pair of samples that was seen, got only NaN."
        )
    known = distances[seen]
    if np.ptp(known) < 1e-12:  # equal up to rounding: there is nothing to correlate
        return 1.0
    heights = cophenet(average(np.where(seen, distances, known.mean())))
    return float(np.corrcoef(known, heights[seen])[0, 1])


def _check_consensus(consensus):
    """Return a consensus matrix of the samples that were seen, in float64; raise if it is none."""
    consensus = read_matrix(
        consensus,
        "consensus",
        dtype=np.float64,
        ensure_all_finite="allow-nan",
        accept_sparse=False,
    )
    if consensus.shape[0] != consensus.shape[1]:
        raise ValueError(f"consensus must be square, got shape {consensus.shape}.")
    seen = ~np.isnan(consensus.diagonal())
    consensus = consensus[np.ix_(seen, seen)]
    if (consensus < -_ROUNDING).any() or (consensus > 1 + _ROUNDING).any():
        raise ValueError(
            "consensus must have entries in [0, 1], got "
            f"{np.nanmin(consensus):.3g} to {np.nanmax(consensus):.3g}."
        )
    if not np.allclose(consensus, consensus.T, equal_nan=True):
        raise ValueError("consensus must be symmetric.")
    if not np.allclose(consensus.diagonal(), 1):
        raise ValueError("consensus must have ones on its diagonal.")
    return consensus
