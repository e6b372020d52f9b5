"""Figures for clusterings and consensus matrices."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import average, cophenet
from scipy.spatial.distance import squareform
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from nmfcluster._arrays.arguments import shown
from nmfcluster._arrays.labels import encode
from nmfcluster._arrays.storage import row_blocks
from nmfcluster.metrics.agreement import differing_share, matched

__all__ = [
    "clustering_accuracy",
    "cophenetic_correlation",
    "disagreement",
    "dispersion",
    "overlap_match",
]

_CELLS = 2**20  # memberships of cells that are held at a time
_ROUNDING = 1e-12  # relative: smaller differences do not decide


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
        If the lengths differ or there is no sample.

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
    labels_true, labels_pred = column_or_1d(labels_true), column_or_1d(labels_pred)
    check_consistent_length(labels_true, labels_pred)
    if not len(labels_true):
        raise ValueError("labels_true holds 0 samples; at least one is needed.")
    return matched(contingency_matrix(labels_true, labels_pred)) / len(labels_true)


def disagreement(labels_a: Any, labels_b: Any) -> float:
    r"""Return the share of samples that two clusterings place differently.

    The clusters of the one are matched with those of the other so that the share is smallest,

    .. math:: d(Y, Y') = \min_\pi \frac{1}{n} \sum_i I\{y_i \neq \pi(y'_i)\} ,

    eq. 9 of [1]_, by the Hungarian method, in O(n + k^3) for labels that are small integers.
    With different numbers of clusters, those without a partner count as placed differently.

    Parameters
    ----------
    labels_a, labels_b : array-like of shape (n_samples,)
        Clusters, integers or strings; their names do not matter. A negative number, NaN and None
        mean that a sample is in no cluster: it is placed differently from whatever the other
        clustering says, from no cluster, too.

    Returns
    -------
    float
        In [0, 1]: 0 for equal clusterings of all samples. Below (k - 1) / k for k clusters.

    Raises
    ------
    ValueError
        If the lengths differ, there is no sample, or a label is a fraction.
    TypeError
        If the labels of a clustering are of several kinds.

    See Also
    --------
    clustering_accuracy : One minus the disagreement with classes, where all samples have a label.
    nmfcluster.model_selection.StabilityScorer : Uses it to choose parameters.

    References
    ----------
    .. [1] T. Lange, J. M. Buhmann. Fusion of similarity data in clustering. NIPS 18, 2005.

    Examples
    --------
    >>> from nmfcluster.metrics import disagreement
    >>> disagreement([0, 0, 1, 1], ["b", "b", "a", "b"])
    0.25
    >>> disagreement([0, 0, 1, -1], [1, 1, 0, -1])
    0.25
    """
    codes = []
    for name, labels in (("labels_a", labels_a), ("labels_b", labels_b)):
        if np.ndim(labels) != 1:
            raise ValueError(f"{name} must have shape (n_samples,), got {np.shape(labels)}.")
        codes.append(encode([labels], name)[0][:, 0])
    if len(codes[0]) != len(codes[1]):
        raise ValueError(
            f"labels_a and labels_b must be of one length, got {len(codes[0])} and "
            f"{len(codes[1])} samples."
        )
    return differing_share(*codes)


def cophenetic_correlation(consensus: Any) -> float:
    """Return how well a consensus matrix is explained by its average-linkage tree.

    The correlation between the distances ``1 - consensus`` and the heights at which average
    linkage joins the samples [1]_: 1 for a perfect consensus, in which all entries are 0 or 1. Fit
    for several numbers of clusters, with base partitions of that number, and look where it
    begins to fall.

    Parameters
    ----------
    consensus : array-like of shape (n_samples, n_samples)
        Symmetric, entries in [0, 1], ones on the diagonal, as
        `NMFConsensus.consensus_matrix` returns it. At least 3 samples.

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
        raise ValueError(f"consensus must have at least 3 samples, got {len(consensus)}.")
    distances = np.maximum(squareform(1 - consensus, checks=False), 0)  # 1 may be 1 + rounding
    if np.ptp(distances) < 1e-12:
        return 1.0
    heights = cophenet(average(distances))
    return float(np.corrcoef(distances, heights)[0, 1])


def dispersion(consensus: Any) -> float:
    """Return how close the entries of a consensus matrix are to 0 and 1.

    The mean of ``4 (consensus - 1/2)^2`` [1]_: 1 if all are 0 or 1, 0 if all are 1/2.

    Parameters
    ----------
    consensus : array-like of shape (n_samples, n_samples)
        Symmetric, entries in [0, 1], ones on the diagonal.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    ValueError
        If `consensus` is not such a matrix.

    References
    ----------
    .. [1] H. Kim, H. Park. Sparse non-negative matrix factorizations via alternating
       non-negativity-constrained least squares for microarray data analysis.
       Bioinformatics 23, 2007.

    Examples
    --------
    >>> from nmfcluster.metrics import dispersion
    >>> dispersion([[1, 0.5], [0.5, 1]])
    0.5
    """
    consensus = _check_consensus(consensus)
    return float(np.mean(4 * (consensus - 0.5) ** 2))


def overlap_match(clusters_a: Any, clusters_b: Any, *, threshold: float | None = 0.2) -> float:
    r"""Return how well two sets of clusters that may overlap match, after Badea [1]_.

    A cluster c of the one is best included in the cluster b(c) of the other that has most of it,
    with the largest :math:`|c \cap d| / |c|`. The match of a cluster d is

    .. math:: \frac{|d \cap U_d|}{|d \cup U_d|} , \qquad U_d = \bigcup_{c: b(c) = d} c ,

    and what is returned is the mean of the matches of all clusters of both.

    Parameters
    ----------
    clusters_a, clusters_b : array-like of shape (n_clusters, n_objects), or pair of them
        Memberships, at least 0, of every object in every cluster: `components_` of an NMF, or the
        transpose of its `membership_`; or booleans. A pair (rows, columns) of shapes
        (n_clusters, n_rows) and (n_clusters, n_columns), as `biclusters_` of scikit-learn, is a
        set of biclusters, whose objects are the cells. There may be more clusters in one than in
        the other.
    threshold : float or None, default=0.2
        An object is in a cluster if its membership is at least this share, in (0, 1], of the
        largest one in the cluster; a cell, if its row and its column are. None compares
        fuzzy sets: memberships are divided by the largest one in the cluster, that of a cell is
        the product of its row's and its column's, :math:`|\cdot|` is a sum, an intersection the
        minimum and a union the maximum of memberships.

    Returns
    -------
    float
        In [0, 1]: 1 for the same clusters in whatever order, if none is there twice.

    Raises
    ------
    TypeError
        If memberships or `threshold` are no numbers.
    ValueError
        If a membership is negative, NaN or infinite, a shape is none of the above, the numbers of
        objects differ, or `threshold` is not in (0, 1].

    See Also
    --------
    nmfcluster.datasets.make_biclusters : Data with clusters to find again.
    sklearn.metrics.consensus_score : Matches biclusters one to one.

    Notes
    -----
    The paper does not say what is in a soft cluster and what decides between equals.
    Here the smaller of two clusters that have the same share of a cluster includes it best, so that
    equal clusters find each other in larger ones, and among those of one size the first. A cluster
    that shares no object with the other clustering is included in none. Its match is 0, and so is
    that of a cluster without members, whose memberships are all 0.

    It is symmetric. The time is O(n_clusters_a n_clusters_b n_objects); cells are formed some rows
    at a time.

    References
    ----------
    .. [1] L. Badea. Clustering and metaclustering with nonnegative matrix decompositions.
       ECML 2005, section 6.

    Examples
    --------
    >>> from nmfcluster.metrics import overlap_match
    >>> planted = [[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]]
    >>> overlap_match(planted, [[0, 0, 0.7, 0.5, 0.9], [0.3, 0.4, 0.5, 0, 0.01]])
    1.0
    >>> overlap_match(planted, [[1, 1, 1, 1, 1], [0, 0, 0, 0, 0]])
    0.4
    """
    if threshold is not None:
        if not isinstance(threshold, Real) or isinstance(threshold, bool):
            raise TypeError(f"threshold must be a number or None, got {shown(threshold)}.")
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold must be in (0, 1] or None, got {threshold}.")
    a, b = _read_clusters(clusters_a, "clusters_a"), _read_clusters(clusters_b, "clusters_b")
    _check_same_objects(a, b)
    a, b = (_Clusters(*(_members(part, threshold) for part in one)) for one in (a, b))
    common = _in_common(a, b)
    of_b = _matches(a, b, _best_including(common, b))
    of_a = _matches(b, a, _best_including(common.T, a))
    return float(np.mean(np.concatenate([of_a, of_b])))


class _Clusters(NamedTuple):
    """Memberships of rows and of columns; objects that are no cells are columns of one row."""

    rows: np.ndarray  # (n_clusters, n_rows)
    columns: np.ndarray  # (n_clusters, n_columns)


def _read_clusters(value: Any, name: str) -> _Clusters:
    if isinstance(value, tuple | list) and len(value) == 2 and min(map(_n_axes, value)) == 2:
        rows, columns = (_read_memberships(part, f"{name}[{i}]") for i, part in enumerate(value))
        if len(rows) != len(columns):
            raise ValueError(
                f"{name} must have rows and columns of the same number of clusters, got "
                f"{len(rows)} and {len(columns)}."
            )
        return _Clusters(rows, columns)
    columns = _read_memberships(value, name)
    return _Clusters(np.ones((len(columns), 1)), columns)


def _n_axes(value: Any) -> int:
    try:
        return np.ndim(value)
    except ValueError:  # lists of different lengths
        return -1


def _read_memberships(value: Any, name: str) -> np.ndarray:
    any_shape = {"ensure_2d": False, "allow_nd": True, "ensure_min_samples": 0}
    try:
        array = check_array(
            value, dtype=np.float64, input_name=name, ensure_min_features=0, **any_shape
        )
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} must hold the memberships of objects: {error}") from error
    if array.ndim != 2 or not array.size:
        raise ValueError(
            f"{name} must have shape (n_clusters, n_objects), none of them 0, or be a pair (rows, "
            f"columns) of such arrays, got shape {array.shape}."
        )
    if array.min() < 0:
        raise ValueError(f"{name} must have no membership below 0, got {array.min():.3g}.")
    return array


def _check_same_objects(a: _Clusters, b: _Clusters) -> None:
    one, other = ((part.rows.shape[1], part.columns.shape[1]) for part in (a, b))
    if one != other:
        raise ValueError(
            "clusters_a and clusters_b must be of the same objects, got (n_rows, n_columns) "
            f"{one} and {other}; objects that are no cells count as columns of one row."
        )


def _members(memberships: np.ndarray, threshold: float | None) -> np.ndarray:
    """Return memberships as shares of the largest one in the cluster, or 0 and 1."""
    largest = memberships.max(axis=1, keepdims=True)
    shares = np.divide(memberships, largest, out=np.zeros_like(memberships), where=largest > 0)
    if threshold is None:
        return shares
    return ((shares >= threshold * (1 - _ROUNDING)) & (largest > 0)).astype(np.float64)


def _cells(a: _Clusters, b: _Clusters) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the memberships of the cells of some rows, (n_clusters, n_cells), in both."""
    width = (len(a.rows) + len(b.rows)) * a.columns.shape[1]
    for block in row_blocks(a.rows.shape[1], max(1, _CELLS // width)):
        X, Y = (part.rows[:, block, None] * part.columns[:, None] for part in (a, b))
        yield X.reshape(len(X), -1), Y.reshape(len(Y), -1)


def _in_common(a: _Clusters, b: _Clusters) -> np.ndarray:
    """Return what clusters have in common, (n_clusters_a, n_clusters_b)."""
    common = np.zeros((len(a.rows), len(b.rows)))
    for X, Y in _cells(a, b):
        common += [[np.minimum(x, y).sum() for y in Y] for x in X]
    return common


def _best_including(common: np.ndarray, b: _Clusters) -> np.ndarray:
    """Return the cluster of b that includes each cluster of a best, -1 for none."""
    largest = common.max(axis=1, keepdims=True)
    equals = common >= largest * (1 - _ROUNDING)
    sizes = np.where(equals, b.rows.sum(axis=1) * b.columns.sum(axis=1), np.inf)
    smallest = sizes <= sizes.min(axis=1, keepdims=True) * (1 + _ROUNDING)
    return np.where(largest[:, 0] > 0, smallest.argmax(axis=1), -1)


def _matches(a: _Clusters, b: _Clusters, best: np.ndarray) -> np.ndarray:
    """Return how well every cluster of b matches the union of those of a that it includes best."""
    common, joint = np.zeros((2, len(b.rows)))
    for X, Y in _cells(a, b):
        for d, cluster in enumerate(Y):
            union = X[best == d].max(axis=0, initial=0)
            common[d] += np.minimum(union, cluster).sum()
            joint[d] += np.maximum(union, cluster).sum()
    return np.divide(common, joint, out=np.zeros_like(common), where=joint > 0)


def _check_consensus(consensus: Any) -> np.ndarray:
    consensus = check_array(consensus, dtype=np.float64, input_name="consensus")
    if consensus.shape[0] != consensus.shape[1]:
        raise ValueError(f"consensus must be square, got shape {consensus.shape}.")
    if consensus.min() < -1e-9 or consensus.max() > 1 + 1e-9:
        raise ValueError(
            f"consensus must have entries in [0, 1], got {consensus.min():.3g} to "
            f"{consensus.max():.3g}."
        )
    if not np.allclose(consensus, consensus.T, atol=1e-8):
        raise ValueError("consensus must be symmetric.")
    if not np.allclose(consensus.diagonal(), 1, atol=1e-8):
        raise ValueError("consensus must have ones on its diagonal.")
    return consensus
