"""Scores of clusterings and of consensus matrices, co-occurrence, and agreement of labellings."""

from itertools import combinations
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import average, cophenet
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import squareform
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_consistent_length

from nmfcluster._utils import validation
from nmfcluster._utils.alignment import union_of_names
from nmfcluster._utils.array_api import to_numpy
from nmfcluster._utils.labels import (
    NOISE,
    adjusted_rand,
    cluster_counts,
    cluster_votes,
    confidence_of_votes,
    encode_labels,
    indicator,
    is_missing,
    noise_weights,
    one_hot,
    share_of_seen,
)
from nmfcluster._utils.storage import as_float64, safe_ratio

__all__ = [
    "cluster_consensus",
    "clustering_accuracy",
    "cophenetic_correlation",
    "item_consensus",
    "match_components",
    "match_labels",
]

# how far the entries of a mean of matrices may be outside of [0, 1] by rounding
_ENTRY_ROUNDING = 1e-9
# relative difference up to which sums in float64 are equal
_SUM_ROUNDING = 1e-12


# --- clusterings and consensus matrices ------------------------------------------------


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


def _shape(labels):
    """Return the shape of labels; None stands for lists of several lengths."""
    try:
        return np.shape(labels)
    except ValueError:
        return len(labels), None


def _require_vector(labels, name):
    shape = _shape(labels)
    if len(shape) != 1:
        raise ValueError(f"{name} must have shape (n_samples,), got shape {shape}.")


def _read_labels(labels, name):
    """Return labels as a vector, none of them missing."""
    _require_vector(labels, name)
    labels = np.asarray(to_numpy(labels))
    if not len(labels):
        raise ValueError(f"{name} holds 0 samples; at least one is needed.")
    if labels.dtype.kind in "Of" and any(map(is_missing, labels)):
        raise ValueError(
            f"{name} must not hold missing labels: leave these samples out."
        )
    return labels


def match_labels(labels: Any, reference: Any) -> Any:
    """Renumber clusters to agree with a reference clustering on as many samples as possible.

    Cluster numbers differ from fit to fit. Use this to keep the number, and the colour, of a
    cluster from one clustering to another: with other seeds, with more samples, or with another
    number of clusters. Every cluster gets the label of at most one reference cluster, such that the
    number of samples with equal labels is largest, by the Hungarian method.

    Parameters
    ----------
    labels : array-like of shape (n_samples,) or (n_samples, n_clusterings)
        Integers or strings. A data frame or an array can hold several clusterings, one a column,
        and a list one an element: each is matched with the reference by itself. A negative number,
        NaN and None stand for samples in no cluster.
    reference : array-like of shape (n_reference_samples,)
        Labels that are kept: integers or strings. If it and `labels` are pandas Series or data
        frames, samples are aligned by the index, and only some of them need to be in both.
        Otherwise samples are taken by position. So are samples under two indices of one length
        that hold different names, if one of them is 0, 1, 2, ...

    Returns
    -------
    ndarray, Series or DataFrame of shape (n_samples,) or (n_samples, n_clusterings)
        Labels of the reference, in pandas if `labels` are. A new cluster, for which no reference
        cluster with common samples is left, gets an integer above all in the reference; larger
        clusters get smaller ones. A sample in no cluster has -1. If the reference holds strings,
        new labels are strings, too, and None takes the place of -1. Ties do not depend on the
        values in `labels`. They depend on the order of samples only between clusters of one size
        that have as many samples in common with every reference cluster.

    Raises
    ------
    ValueError
        If `reference` holds several clusterings, samples cannot be aligned, or labels are not
        whole numbers.
    TypeError
        If labels are neither integers nor strings.

    See Also
    --------
    clustering_accuracy : The share of samples with equal labels, where every sample has one.
    match_components : Matches the components of two factorizations.

    Examples
    --------
    >>> from nmfcluster.metrics import match_labels
    >>> match_labels([0, 0, 1, 1, 2, -1], reference=[1, 1, 0, 0, 0, 0])
    array([ 1,  1,  0,  0,  2, -1])
    """
    codes, _ = _encode_clusterings(labels, "labels")
    reference_codes, (names, *others) = _encode_clusterings(reference, "reference")
    if others:
        raise ValueError(
            f"reference must hold a single clustering, got {len(others) + 1} columns: pass one."
        )
    own, other = _shared_samples(labels, reference, len(codes), len(reference_codes))
    are_texts = names.dtype == object
    integers = [int(name) for name in names if not are_texts or name.isdecimal()]
    first_new = max(integers, default=-1) + 1
    new = range(first_new, first_new + int(codes.max()) + 1)
    if are_texts:
        all_names = np.array([*names, *map(str, new), None])
    else:
        all_names = np.array([*names, *new, -1], dtype=object)
    matched = np.empty(codes.shape, dtype=names.dtype)
    for t, column in enumerate(codes.T):
        numbers = _match_clusters(column, own, reference_codes[other, 0], len(names))
        # a sample in no cluster has code -1: the last number, and the last name
        matched[:, t] = all_names[np.append(numbers, -1)[column]]
    if np.ndim(labels) == 1:
        matched = matched[:, 0]
    if not hasattr(labels, "iloc"):
        return matched
    title = {"name": labels.name} if matched.ndim == 1 else {"columns": labels.columns}
    return type(labels)(matched, index=labels.index, **title)


def _encode_clusterings(labels, name):
    """Return the codes and labels of one clustering, or of several, one a column."""
    table = [labels] if len(_shape(labels)) == 1 else labels
    codes, known = encode_labels(table, name)
    return np.maximum(codes, NOISE), known


def _shared_samples(labels, reference, n_samples, n_reference):
    """Return the positions of the samples that are in both of two clusterings."""
    own = validation.row_names(labels)
    other = validation.row_names(reference)
    by_index = own is not None and other is not None
    if by_index and n_samples == n_reference and set(own) != set(other):
        # names beside positions, 0, 1, 2, ...
        named = map(validation.sample_names, (own, other))
        by_index = all(names is not None for names in named)
    if by_index and not own.equals(other):
        # raises if no name is in both, or one occurs twice
        union_of_names([own, other], ["labels", "reference"])
        positions = other.get_indexer(own)
        shared = np.flatnonzero(positions >= 0)
        return shared, positions[shared]
    if n_samples != n_reference:
        raise ValueError(
            f"labels are of {n_samples} samples, reference of {n_reference}: they must be of the "
            "same samples, or both pandas Series or data frames whose index names the samples."
        )
    return np.arange(n_samples), np.arange(n_samples)


def _match_clusters(codes, shared, reference, n_reference):
    """Return the number of the reference cluster of every cluster; new ones get those after."""
    n_clusters = int(codes.max()) + 1
    _, first, sizes = np.unique(
        codes[codes >= 0], return_index=True, return_counts=True
    )
    in_both = (codes[shared] >= 0) & (reference >= 0)
    table = np.zeros((n_clusters, n_reference), dtype=np.int64)
    np.add.at(table, (codes[shared][in_both], reference[in_both]), 1)
    # an order of the clusters that does not depend on their labels, for ties
    order = np.lexsort((first, -sizes, *table.T))
    rows, columns = linear_sum_assignment(table[order], maximize=True)
    is_match = table[order[rows], columns] > 0
    numbers = np.full(n_clusters, -1)
    numbers[order[rows[is_match]]] = columns[is_match]
    by_size = np.lexsort((first, -sizes))
    is_new = by_size[numbers[by_size] < 0]
    numbers[is_new] = n_reference + np.arange(len(is_new))
    return numbers


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
    consensus = validation.read_matrix(
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
    if (consensus < -_ENTRY_ROUNDING).any() or (consensus > 1 + _ENTRY_ROUNDING).any():
        raise ValueError(
            "consensus must have entries in [0, 1], got "
            f"{np.nanmin(consensus):.3g} to {np.nanmax(consensus):.3g}."
        )
    if not np.allclose(consensus, consensus.T, equal_nan=True):
        raise ValueError("consensus must be symmetric.")
    if not np.allclose(consensus.diagonal(), 1):
        raise ValueError("consensus must have ones on its diagonal.")
    return consensus


# --- co-occurrence ---------------------------------------------------------------------


def consensus_matrix(codes, weights, groups=None):
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


def confidence(codes, labels, weights=None):
    """Return the confidence of samples in their clusters by partitions, see `NMFConsensus`, (n,).

    It is 0 for a sample in no cluster, whose label is -1.
    """
    if weights is None:
        weights = np.full(codes.shape[1], 1 / codes.shape[1])
    E = _indicator_of(labels)
    n_base = cluster_counts(codes)
    Z = indicator(codes, n_base)
    coverage = np.where(codes >= 0, weights, 0.0).sum(axis=1)
    votes = Z @ cluster_votes(Z.T @ E, n_base, weights)
    return confidence_of_votes(votes, coverage, noise_weights(codes, weights), labels)


def item_consensus(partitions: Any, labels: Any, *, weights: Any = None) -> np.ndarray:
    """Return how often partitions join a sample with the members of every cluster.

    It is the mean co-association of the sample and the other members of a cluster [1]_, over the
    pairs that a partition saw. A sample with about equal values for two clusters lies between them.
    No matrix of all pairs is formed: time and memory are linear in the number of samples.

    Parameters
    ----------
    partitions : array-like of shape (n_samples, n_partitions) or list of label vectors
        As `NMFConsensus.fit` takes them.
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
    cluster_consensus : How surely the samples of every cluster belong to it.

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
    codes, clusters, weights = _read_clusters(partitions, labels, weights)
    E = _indicator_of(clusters)
    n_base = cluster_counts(codes)
    Z = indicator(codes, n_base)
    observed = codes >= 0
    together = Z @ (np.repeat(weights, n_base)[:, None] * (Z.T @ E))
    seen = (observed * weights) @ (observed.T @ E)
    itself = E * (observed @ weights)[:, None]
    shares = share_of_seen(together - itself, seen - itself, 1e-9)
    return np.clip(shares, 0, 1)


def cluster_consensus(
    partitions: Any, labels: Any, *, weights: Any = None
) -> np.ndarray:
    """Return the mean confidence of the samples of every cluster.

    It is the mean over the samples of `confidence_` of `NMFConsensus`, which compares the votes for
    their own cluster with those for the others: 1 for a cluster that the partitions keep apart from
    all others, and about 1 / n_clusters for one that has nothing to do with them, whatever their
    sizes. The mean co-association of the pairs in a cluster [1]_, the mean of `item_consensus`,
    instead is low for large clusters where partitions have more clusters than `labels`.

    Parameters
    ----------
    partitions : array-like of shape (n_samples, n_partitions) or list of label vectors
        As `NMFConsensus.fit` takes them.
    labels : array-like of shape (n_samples,)
        Cluster of every sample, integers or strings; a negative number means in no cluster.
    weights : array-like of shape (n_partitions,), default=None
        Nonnegative weights of the partitions; equal by default.

    Returns
    -------
    ndarray of shape (n_clusters,)
        In [0, 1], in the order of the sorted labels.

    Raises
    ------
    ValueError
        If lengths differ, no sample is in a cluster, or a parameter is not as described.
    TypeError
        If labels are neither integers nor strings.

    See Also
    --------
    item_consensus : How often partitions join a sample with the members of every cluster.

    References
    ----------
    .. [1] S. Monti, P. Tamayo, J. Mesirov, T. Golub. Consensus clustering: a resampling-based
       method for class discovery and visualization of gene expression microarray data. Machine
       Learning 52, 2003.

    Examples
    --------
    >>> from nmfcluster.metrics import cluster_consensus
    >>> cluster_consensus([[0, 0, 1, 1], [0, 1, 1, 1]], labels=["a", "a", "b", "b"]).round(2)
    array([0.91, 0.91])
    """
    codes, clusters, weights = _read_clusters(partitions, labels, weights)
    shares = confidence(codes, clusters, weights)
    inside = clusters >= 0
    return np.bincount(clusters[inside], shares[inside]) / np.bincount(clusters[inside])


def _read_clusters(partitions, labels, weights):
    """Return codes of partitions, clusters numbered from 0 and the weights, all checked."""
    codes, _ = encode_labels(partitions, "partitions")
    _require_vector(labels, "labels")
    clusters = encode_labels([labels], "labels")[0][:, 0]
    if len(clusters) != len(codes):
        raise ValueError(
            f"labels must be {len(codes)}, one a sample, got {len(clusters)}."
        )
    if clusters.max() < 0:
        raise ValueError("labels must hold a cluster, got none.")
    weights = validation.normalize_weights(weights, codes.shape[1])
    return codes, clusters, weights


def _indicator_of(clusters):
    """Return the indicator of clusters, whose rows are 0 for samples in none."""
    n_clusters = max(int(clusters.max()), 0) + 1
    return one_hot(np.maximum(clusters, 0), n_clusters) * (clusters >= 0)[:, None]


# --- components of factorizations ------------------------------------------------------


def match_components(
    components_a: Any, components_b: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the counterpart among the components of b for every component of a.

    Components are matched one to one, such that the sum of their cosines is largest. Use it to
    keep the names of programs from one fit to the next, or to count how many planted components a
    fit has found, say with a cosine of at least 0.9.

    Parameters
    ----------
    components_a : array-like of shape (n_components_a, n_features)
        Nonnegative, as `components_` of an NMF, such as those of an earlier fit.
    components_b : array-like of shape (n_components_b, n_features)
        Others of the same features. The columns of two data frames are matched by their names;
        if one of the two has no names, they are matched by position, with a warning.

    Returns
    -------
    counterparts : ndarray of shape (n_components_a,), int
        Row of `components_b`; -1 where there is none, as b has fewer or shares no feature.
    cosines : ndarray of shape (n_components_a,)
        In [0, 1]; 0 where there is none.

    Raises
    ------
    ValueError
        If an entry is negative, NaN or infinite, or the numbers of features differ.

    See Also
    --------
    sklearn.metrics.consensus_score : Compares biclusters, sets of samples and of features.

    Examples
    --------
    >>> from nmfcluster.metrics import match_components
    >>> counterparts, cosines = match_components([[3, 4, 0], [0, 0, 1]], [[0, 0, 2], [1, 0, 0]])
    >>> counterparts, cosines
    (array([1, 0]), array([0.6, 1. ]))
    """
    own = validation.column_names(components_a)
    other = validation.column_names(components_b)
    if (validation.sample_names(own) is None) != (
        validation.sample_names(other) is None
    ):
        validation.warn(
            "One of components_a and components_b has no names: features are taken by position."
        )
    components_b = validation.reorder_columns(
        own, components_b, "components_b", "components_a"
    )
    a = _read_components(components_a, "components_a")
    b = _read_components(components_b, "components_b")
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            "components_a and components_b must have the same features, got "
            f"{a.shape[1]} and {b.shape[1]}."
        )
    all_cosines = np.minimum(a @ b.T, 1)  # above 1 by rounding
    rows, columns = linear_sum_assignment(all_cosines, maximize=True)
    cosines = np.zeros(len(a))
    cosines[rows] = all_cosines[rows, columns]
    counterparts = np.full(len(a), -1)
    counterparts[rows] = np.where(cosines[rows] > 0, columns, -1)
    return counterparts, cosines


def _read_components(components, name):
    """Return components with rows of length 1; a row of zeros stays as it is."""
    rows = validation.read_matrix(
        components, name, dtype=np.float64, accept_sparse=False
    )
    if rows.min() < 0:
        raise ValueError(f"{name} must have no entry below 0, got {rows.min():.3g}.")
    rows = safe_ratio(rows, rows.max(axis=1, keepdims=True))
    return safe_ratio(rows, np.linalg.norm(rows, axis=1, keepdims=True))


def find_members(memberships, threshold):
    """Return which memberships are above 0 and at least a share of the cluster's largest one."""
    memberships = as_float64(memberships)
    shares = safe_ratio(memberships, memberships.max(axis=1, keepdims=True))
    return (shares >= threshold * (1 - _SUM_ROUNDING)) & (shares > 0)


# --- agreement of labellings -----------------------------------------------------------


def count_matched(table):
    """Return the number of samples in matched cells under the best matching of rows to columns.

    Parameters
    ----------
    table : ndarray of shape (n_clusters_a, n_clusters_b)
        Number of samples that are in both of two clusters.
    """
    rows, columns = linear_sum_assignment(table, maximize=True)
    return int(table[rows, columns].sum())


def differing_share(a, b):
    """Return the share of samples that two labellings place differently, eq. 9 of Lange (2005).

    Parameters
    ----------
    a, b : ndarray of shape (n_samples,), int
        Labels from 0; a sample with -1 in either of them is placed differently.
    """
    both = (a >= 0) & (b >= 0)
    n_matched = count_matched(contingency_table(a[both], b[both]))
    return (len(a) - n_matched) / len(a)


def contingency_table(a, b):
    """Return the number of samples in every two clusters of two labellings, from 0."""
    n_rows = int(a.max(initial=0)) + 1
    n_columns = int(b.max(initial=0)) + 1
    cells = a.astype(np.int64) * n_columns + b
    return np.bincount(cells, minlength=n_rows * n_columns).reshape(n_rows, n_columns)


def rand_index(a, b):
    """Return the adjusted Rand index of two labellings.

    Parameters
    ----------
    a, b : ndarray of shape (n_samples,), int
        Labels from 0; samples with a negative label count as one cluster.
    """
    table = contingency_table(np.maximum(a, -1) + 1, np.maximum(b, -1) + 1)
    # pairs of samples that both labellings join, that each of them joins, and all pairs
    pairs = []
    for sizes in (table, table.sum(axis=1), table.sum(axis=0), np.array([len(a)])):
        pairs.append(int((sizes * (sizes - 1) // 2).sum()))
    both, of_a, of_b, everything = pairs
    return float(adjusted_rand(both, of_a, of_b, max(everything, 1)))


def table_of_pairs(statistic, codes):
    """Return a statistic of every two labellings, (B, B); the diagonal is 0.

    Parameters
    ----------
    statistic : callable
        `differing_share` or `rand_index`.
    codes : sequence of B ndarray of shape (n_samples,), int
    """
    return squareform([statistic(a, b) for a, b in combinations(codes, 2)])


def mean_of_pairs(D):
    """Return the mean of the entries off the diagonal, which is 0."""
    return float(D.sum() / (len(D) * (len(D) - 1)))


def mean_agreement(codes, most=30):
    """Return the mean adjusted Rand index of labellings, (B, n), or of some, evenly spaced.

    A labelling with one cluster is left out, as it says nothing; it is 0 if no two are left.
    """
    several = codes[codes.min(axis=1) < codes.max(axis=1)]
    if len(several) < 2:
        return 0.0
    some = several[:: -(-len(several) // most)]
    return mean_of_pairs(table_of_pairs(rand_index, some))


def jackknife(statistic, tables):
    """Return a statistic of tables of pairs, and its standard error.

    Pairs that share a labelling are not independent. Therefore labellings are left out, one at a
    time, and not pairs.

    Parameters
    ----------
    statistic : callable
        Takes the table, or the stack of tables.
    tables : ndarray of shape (B, B) or (n_tables, B, B)
        B is 3 or more.

    Returns
    -------
    value, error : float
    """
    B = tables.shape[-1]
    values = []
    for i in range(B):
        kept = np.delete(range(B), i)
        values.append(statistic(tables[..., kept[:, None], kept]))
    spread = np.sum((values - np.mean(values)) ** 2)
    error = np.sqrt((B - 1) / B * spread)
    return statistic(tables), float(error)
