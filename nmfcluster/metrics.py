"""Scores of clusterings and of consensus matrices, and matching of clusters and components."""

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

# how far entries of a mean of matrices may be outside [0, 1] by rounding
_ENTRY_ROUNDING = 1e-9
# largest relative difference of sums in float64 that counts as rounding
_SUM_ROUNDING = 1e-12


# --- clusterings and consensus matrices ------------------------------------------------


def clustering_accuracy(labels_true: Any, labels_pred: Any) -> float:
    """Return the share of samples in the right cluster under the best matching of clusters.

    Every cluster is matched with at most one class, and every class with at most one cluster. The
    Hungarian method finds the matching with the most samples. This is the accuracy of [1]_.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        True classes.
    labels_pred : array-like of shape (n_samples,)
        Clusters. The labels of clusters need not be those of classes, and there may be more or
        fewer clusters than classes.

    Returns
    -------
    float
        Accuracy in (0, 1]; 1 for the same clustering with other names.

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
    """Return labels as a vector; raise if any is missing."""
    _require_vector(labels, name)
    labels = np.asarray(to_numpy(labels))
    if not len(labels):
        raise ValueError(f"{name} holds 0 samples; at least one is needed.")
    if labels.dtype.kind in "Of" and any(map(is_missing, labels)):
        raise ValueError(
            f"{name} must not hold missing labels. Leave these samples out."
        )
    return labels


def match_labels(labels: Any, reference: Any) -> Any:
    """Renumber clusters to agree with a reference clustering on as many samples as possible.

    Cluster numbers differ from fit to fit. This function gives a cluster the same number, and so
    the same colour in plots, in several clusterings, for example with another seed, with more
    samples, or with another number of clusters. No two clusters get the label of the same reference
    cluster. The Hungarian method finds the matching that leaves the most samples with their
    reference label.

    Parameters
    ----------
    labels : array-like of shape (n_samples,) or (n_samples, n_clusterings)
        Integers or strings. To match several clusterings, pass the columns of a data frame or an
        array, or a list. Each clustering is matched with the reference separately. A negative
        number, NaN and None mark samples in no cluster.
    reference : array-like of shape (n_reference_samples,)
        The clustering whose labels, integers or strings, are kept. If `labels` and `reference` are
        both pandas Series or data frames, samples are aligned by the index, and some samples may be
        in only one of them. Otherwise, samples are aligned by position. Two indices of the same
        length with different names are also aligned by position if one of them is 0, 1, 2, ...

    Returns
    -------
    ndarray, Series or DataFrame of shape (n_samples,) or (n_samples, n_clusterings)
        The renumbered labels, as a pandas object if `labels` is one. A cluster is new if all
        reference clusters that share samples with it are matched with other clusters. New clusters
        get integers above all those in the reference, and the largest new cluster gets the smallest
        one. A sample in no cluster gets -1. If the reference holds strings, new labels are strings,
        too, and None replaces -1. Ties are broken independently of the values in `labels`. The
        order of samples breaks ties only between clusters of equal size that share equally many
        samples with every reference cluster.

    Raises
    ------
    ValueError
        If `reference` holds several clusterings, if samples cannot be aligned, or if a label is a
        number with a fraction.
    TypeError
        If labels are neither integers nor strings.

    See Also
    --------
    clustering_accuracy : Return the share of samples with equal labels after matching.
    match_components : Match the components of two factorizations.

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
            f"reference must hold one clustering, got {len(others) + 1} columns. Pass one column."
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
        # code -1, for no cluster, selects the last number and the last name
        matched[:, t] = all_names[np.append(numbers, -1)[column]]
    if np.ndim(labels) == 1:
        matched = matched[:, 0]
    if not hasattr(labels, "iloc"):
        return matched
    title = {"name": labels.name} if matched.ndim == 1 else {"columns": labels.columns}
    return type(labels)(matched, index=labels.index, **title)


def _encode_clusterings(labels, name):
    """Return the codes and the label names of one clustering, or of several as columns."""
    table = [labels] if len(_shape(labels)) == 1 else labels
    codes, known = encode_labels(table, name)
    return np.maximum(codes, NOISE), known


def _shared_samples(labels, reference, n_samples, n_reference):
    """Return the positions of the samples that are in both of two clusterings."""
    own = validation.row_names(labels)
    other = validation.row_names(reference)
    by_index = own is not None and other is not None
    if by_index and n_samples == n_reference and set(own) != set(other):
        # align by position if one of the indices is 0, 1, 2, ...
        named = map(validation.sample_names, (own, other))
        by_index = all(names is not None for names in named)
    if by_index and not own.equals(other):
        # raise if no name is in both, or if one occurs twice
        union_of_names([own, other], ["labels", "reference"])
        positions = other.get_indexer(own)
        shared = np.flatnonzero(positions >= 0)
        return shared, positions[shared]
    if n_samples != n_reference:
        raise ValueError(
            f"labels must have as many samples as reference, got {n_samples} and {n_reference}. "
            "To align other samples, pass both as pandas objects with sample names as the index."
        )
    return np.arange(n_samples), np.arange(n_samples)


def _match_clusters(codes, shared, reference, n_reference):
    """Return the number of the reference cluster for every cluster, and others for new ones."""
    n_clusters = int(codes.max()) + 1
    _, first, sizes = np.unique(
        codes[codes >= 0], return_index=True, return_counts=True
    )
    in_both = (codes[shared] >= 0) & (reference >= 0)
    table = np.zeros((n_clusters, n_reference), dtype=np.int64)
    np.add.at(table, (codes[shared][in_both], reference[in_both]), 1)
    # order clusters independently of their labels, to break ties
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
    """Return how well an average-linkage tree explains a consensus matrix.

    This is the correlation between the distances ``1 - consensus`` and the heights at which average
    linkage joins the samples [1]_. A perfect consensus, in which all entries are 0 or 1, has a
    correlation of 1. To choose the number of clusters, fit a model with each candidate number, and
    use the same number of clusters in its base partitions. Choose the number after which the
    correlation begins to fall.

    Parameters
    ----------
    consensus : array-like of shape (n_samples, n_samples)
        A symmetric matrix with entries in [0, 1] and ones on the diagonal, such as the result of
        `NMFConsensus.consensus_matrix`. It must have at least 3 samples. NaN marks a pair of
        samples that no partition contains. The correlation ignores such a pair, and the tree uses
        the mean of the other distances for it. A sample with NaN on the diagonal is left out.

    Returns
    -------
    float
        Correlation in [-1, 1]. It is 1 if all distances are equal.

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
            "consensus must hold a number for at least one pair of samples, got only NaN."
        )
    known = distances[seen]
    if np.ptp(known) < 1e-12:  # equal up to rounding, so there is no correlation
        return 1.0
    heights = cophenet(average(np.where(seen, distances, known.mean())))
    return float(np.corrcoef(known, heights[seen])[0, 1])


def _check_consensus(consensus):
    """Check a consensus matrix; remove samples with NaN on the diagonal."""
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
    """Return the weighted share of partitions that join a pair, among those that contain it.

    Parameters
    ----------
    codes : ndarray of shape (n, T), int
    weights : ndarray of shape (T,)
    groups : ndarray of shape (n,), int, default=None
        Group of every sample, 0 to g - 1. The result is then the mean over all pairs of samples of
        two groups. By default, every sample is a group.

    Returns
    -------
    ndarray of shape (n, n) or (g, g)
        A dense matrix, with NaN for pairs that no partition contains.
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
    """Return the confidence of samples in their clusters, by partitions: an array (n,).

    `NMFConsensus` describes it. It is 0 for a sample in no cluster, with label -1.
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

    The item consensus [1]_ is the mean co-association of a sample with the other members of a
    cluster. The mean is over the pairs of samples that at least one partition contains. A sample
    with about equal values for two clusters lies between them. Time and memory are linear in the
    number of samples, as no n × n matrix is formed.

    Parameters
    ----------
    partitions : array-like of shape (n_samples, n_partitions) or list of label vectors
        Partitions in any form that `NMFConsensus.fit` takes.
    labels : array-like of shape (n_samples,)
        Cluster of every sample, an integer or a string. A negative number marks a sample in no
        cluster.
    weights : array-like of shape (n_partitions,), default=None
        Nonnegative weights of the partitions; equal by default.

    Returns
    -------
    ndarray of shape (n_samples, n_clusters)
        Shares in [0, 1]. An entry is NaN if no partition contains such a pair, for example if the
        sample is the only one in its cluster. Columns are in the order of the sorted labels.

    Raises
    ------
    ValueError
        If lengths differ, if no sample is in a cluster, or if a parameter is not as described.
    TypeError
        If labels are neither integers nor strings.

    See Also
    --------
    cluster_consensus : Return the mean confidence of the samples of every cluster.

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

    The confidence of a sample is that of `NMFConsensus.confidence_`, which compares the votes for
    the cluster of the sample with the votes for other clusters. The mean is 1 for a cluster that
    the partitions separate from all others. It is about 1 / n_clusters for a cluster that is
    unrelated to the partitions, whatever the sizes of the clusters. The score of the same name in
    [1]_ is the mean of `item_consensus` over the members of a cluster. It is low for large clusters
    if partitions have more clusters than `labels`.

    Parameters
    ----------
    partitions : array-like of shape (n_samples, n_partitions) or list of label vectors
        Partitions in any form that `NMFConsensus.fit` takes.
    labels : array-like of shape (n_samples,)
        Cluster of every sample, an integer or a string. A negative number marks a sample in no
        cluster.
    weights : array-like of shape (n_partitions,), default=None
        Nonnegative weights of the partitions; equal by default.

    Returns
    -------
    ndarray of shape (n_clusters,)
        Mean confidences in [0, 1], in the order of the sorted labels.

    Raises
    ------
    ValueError
        If lengths differ, if no sample is in a cluster, or if a parameter is not as described.
    TypeError
        If labels are neither integers nor strings.

    See Also
    --------
    item_consensus : Return how often partitions join a sample with the members of every cluster.

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
    """Check the arguments; return codes of partitions, clusters from 0, and weights."""
    codes, _ = encode_labels(partitions, "partitions")
    _require_vector(labels, "labels")
    clusters = encode_labels([labels], "labels")[0][:, 0]
    if len(clusters) != len(codes):
        raise ValueError(
            f"labels must have one entry for each of {len(codes)} samples, got {len(clusters)}."
        )
    if clusters.max() < 0:
        raise ValueError("labels must assign a sample to a cluster, got none.")
    weights = validation.normalize_weights(weights, codes.shape[1])
    return codes, clusters, weights


def _indicator_of(clusters):
    """Return the indicator matrix of clusters; rows of samples in no cluster are 0."""
    n_clusters = max(int(clusters.max()), 0) + 1
    return one_hot(np.maximum(clusters, 0), n_clusters) * (clusters >= 0)[:, None]


# --- components of factorizations ------------------------------------------------------


def match_components(
    components_a: Any, components_b: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Match the components of one factorization with those of another.

    Components are matched one to one, so that the sum of their cosine similarities is largest. Use
    the matching to keep the names of programs from one fit to the next. On simulated data, use it
    to count how many true components a fit has found, such as those with a cosine of at least 0.9.

    Parameters
    ----------
    components_a : array-like of shape (n_components_a, n_features)
        Nonnegative components, such as `components_` of a fitted NMF.
    components_b : array-like of shape (n_components_b, n_features)
        Components of the same features. The columns of two data frames are matched by their names.
        If only one of the two has names, columns are matched by position, with a warning.

    Returns
    -------
    counterparts : ndarray of shape (n_components_a,), int
        For each row of `components_a`, the matching row of `components_b`. It is -1 for a component
        without a counterpart, which happens if `components_b` has fewer rows, or shares no feature
        with it.
    cosines : ndarray of shape (n_components_a,)
        Cosine similarities in [0, 1]; 0 for a component without a counterpart.

    Raises
    ------
    ValueError
        If an entry is negative, NaN or infinite, or the numbers of features differ.

    See Also
    --------
    sklearn.metrics.consensus_score : Compare two sets of biclusters.

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
            f"{a.shape[1]} and {b.shape[1]} features."
        )
    all_cosines = np.minimum(a @ b.T, 1)  # above 1 by rounding
    rows, columns = linear_sum_assignment(all_cosines, maximize=True)
    cosines = np.zeros(len(a))
    cosines[rows] = all_cosines[rows, columns]
    counterparts = np.full(len(a), -1)
    counterparts[rows] = np.where(cosines[rows] > 0, columns, -1)
    return counterparts, cosines


def _read_components(components, name):
    """Return components with rows scaled to length 1, except for rows of zeros."""
    rows = validation.read_matrix(
        components, name, dtype=np.float64, accept_sparse=False
    )
    if rows.min() < 0:
        raise ValueError(f"{name} must have no entry below 0, got {rows.min():.3g}.")
    rows = safe_ratio(rows, rows.max(axis=1, keepdims=True))
    return safe_ratio(rows, np.linalg.norm(rows, axis=1, keepdims=True))


def find_members(memberships, threshold):
    """Return which memberships are above 0 and at least a share of the largest in their row."""
    memberships = as_float64(memberships)
    shares = safe_ratio(memberships, memberships.max(axis=1, keepdims=True))
    return (shares >= threshold * (1 - _SUM_ROUNDING)) & (shares > 0)


# --- agreement of labellings -----------------------------------------------------------


def count_matched(table):
    """Return the number of samples in matched cells under the best matching of clusters.

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
        Labels from 0. A sample with -1 in either labelling counts as placed differently.
    """
    both = (a >= 0) & (b >= 0)
    n_matched = count_matched(contingency_table(a[both], b[both]))
    return (len(a) - n_matched) / len(a)


def contingency_table(a, b):
    """Return the number of samples in each cluster of a and each of b, both from 0."""
    n_rows = int(a.max(initial=0)) + 1
    n_columns = int(b.max(initial=0)) + 1
    cells = a.astype(np.int64) * n_columns + b
    return np.bincount(cells, minlength=n_rows * n_columns).reshape(n_rows, n_columns)


def rand_index(a, b):
    """Return the adjusted Rand index of two labellings.

    Parameters
    ----------
    a, b : ndarray of shape (n_samples,), int
        Labels from 0. All samples with a negative label count as one cluster.
    """
    table = contingency_table(np.maximum(a, -1) + 1, np.maximum(b, -1) + 1)
    # numbers of pairs of samples: joined in both labellings, in each of them, and all
    pairs = []
    for sizes in (table, table.sum(axis=1), table.sum(axis=0), np.array([len(a)])):
        pairs.append(int((sizes * (sizes - 1) // 2).sum()))
    both, of_a, of_b, everything = pairs
    return float(adjusted_rand(both, of_a, of_b, max(everything, 1)))


def table_of_pairs(statistic, codes):
    """Return a statistic for all pairs of labellings, (B, B), with a diagonal of 0.

    Parameters
    ----------
    statistic : callable
        `differing_share` or `rand_index`.
    codes : sequence of B ndarray of shape (n_samples,), int
    """
    return squareform([statistic(a, b) for a, b in combinations(codes, 2)])


def mean_of_pairs(D):
    """Return the mean of the entries off the diagonal, for a diagonal of 0."""
    return float(D.sum() / (len(D) * (len(D) - 1)))


def mean_agreement(codes, most=30):
    """Return the mean adjusted Rand index of labellings, (B, n), over all pairs of them.

    If there are more than about `most`, evenly spaced ones are compared. Labellings with one
    cluster are left out, as they are not informative. The result is 0 if fewer than two are left.
    """
    several = codes[codes.min(axis=1) < codes.max(axis=1)]
    if len(several) < 2:
        return 0.0
    some = several[:: -(-len(several) // most)]
    return mean_of_pairs(table_of_pairs(rand_index, some))


def jackknife(statistic, tables):
    """Return a statistic of matrices of pairs, and its standard error.

    Pairs that share a labelling are not independent. The jackknife therefore leaves out one
    labelling at a time, and not one pair.

    Parameters
    ----------
    statistic : callable
        Function of the matrix, or of the stack of matrices.
    tables : ndarray of shape (B, B) or (n_tables, B, B)
        Matrices for B labellings; B is at least 3.

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
