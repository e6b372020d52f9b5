"""Which clusters of one set are which of another: components, and clusters that may overlap."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from nmfcluster._arrays.arguments import check_number, warn
from nmfcluster._arrays.storage import row_blocks
from nmfcluster._arrays.tables import column_names, columns_in_order_of, read_table, sample_names

_CELLS = 2**20  # memberships of cells that are held at a time: 8 MiB in float64
_ROUNDING = 1e-12  # relative: sums of float64 that differ by less are equal


def match_components(components_a: Any, components_b: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return which component of b is the counterpart of every component of a.

    Pairs are one to one, such that their cosines have the largest sum. So programs keep their
    names from one fit to the next, and planted ones are counted as found, with a cosine of .9 at
    least, say.

    Parameters
    ----------
    components_a : array-like of shape (n_components_a, n_features)
        Nonnegative, as `components_` of an NMF, such as those of an earlier fit.
    components_b : array-like of shape (n_components_b, n_features)
        Others of the same features. Of two data frames, the columns are matched by their names;
        where one of the two has no names, they are taken by position, with a warning.

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
    overlap_match : Compares sets of features, which may be in several clusters.

    Examples
    --------
    >>> from nmfcluster.metrics import match_components
    >>> counterparts, cosines = match_components([[3, 4, 0], [0, 0, 1]], [[0, 0, 2], [1, 0, 0]])
    >>> counterparts, cosines
    (array([1, 0]), array([0.6, 1. ]))
    """
    own, other = column_names(components_a), column_names(components_b)
    if (sample_names(own) is None) != (sample_names(other) is None):
        warn("One of components_a and components_b has no names: features are taken by position.")
    components_b = columns_in_order_of(own, components_b, "components_b", "components_a")
    a = _read_components(components_a, "components_a")
    b = _read_components(components_b, "components_b")
    if a.shape[1] != b.shape[1]:
        got = f"{a.shape[1]} and {b.shape[1]}"
        raise ValueError(f"components_a and components_b must have the same features, got {got}.")
    cosines = np.minimum(a @ b.T, 1)  # it may be more by rounding
    rows, columns = linear_sum_assignment(cosines, maximize=True)
    counterparts, of_pairs = np.full(len(a), -1), np.zeros(len(a))
    similar = cosines[rows, columns] > 0
    counterparts[rows[similar]] = columns[similar]
    of_pairs[rows] = cosines[rows, columns]
    return counterparts, of_pairs


def _read_components(components: Any, name: str) -> np.ndarray:
    """Return components with rows of length 1; a row of zeros stays as it is."""
    rows = read_table(components, name, dtype=np.float64, accept_sparse=False)
    if rows.min() < 0:
        raise ValueError(f"{name} must have no entry below 0, got {rows.min():.3g}.")
    rows = rows / np.maximum(rows.max(axis=1, keepdims=True), np.finfo(float).tiny)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1))


def overlap_match(clusters_a: Any, clusters_b: Any, *, threshold: float | None = 0.2) -> float:
    r"""Return how well two sets of clusters that may overlap match, after Badea [1]_.

    A cluster c of one set is best included in the cluster b(c) of the other that has most of it,
    with the largest :math:`|c \cap d| / |c|`. The match of a cluster d is

    .. math:: \frac{|d \cap U_d|}{|d \cup U_d|} , \qquad U_d = \bigcup_{c: b(c) = d} c ,

    and the mean of the matches of all clusters of both sets is returned.

    Parameters
    ----------
    clusters_a, clusters_b : array-like of shape (n_clusters, n_objects), or pair of them
        Memberships, at least 0, of every object in every cluster: `components_` of an NMF, or the
        transpose of its `membership_`; or booleans. A pair (rows, columns) of shapes
        (n_clusters, n_rows) and (n_clusters, n_columns), as `biclusters_` of scikit-learn, is a
        set of biclusters, whose objects are the cells. The numbers of clusters may differ.
    threshold : float or None, default=0.2
        An object is in a cluster if its membership is at least this share, in (0, 1], of the
        largest one in the cluster; a cell, if its row and its column are. None compares
        fuzzy sets: memberships are divided by the largest one in the cluster, that of a cell is
        the product of its row's and its column's, :math:`|\cdot|` is a sum, an intersection the
        minimum and a union the maximum of memberships.

    Returns
    -------
    float
        In [0, 1]: 1 for the same clusters in any order, if no cluster occurs twice.

    Raises
    ------
    TypeError
        If `threshold` is not a number.
    ValueError
        If a membership is no number, or a negative or infinite one, a shape is not as above, the
        numbers of objects differ, or `threshold` is not in (0, 1].

    See Also
    --------
    nmfcluster.datasets.make_biclusters : Data with clusters to find again.
    sklearn.metrics.consensus_score : Matches biclusters one to one.

    Notes
    -----
    The paper does not say which objects are in a soft cluster, and how ties are broken. Here, of
    clusters that have the same share of c, the smallest includes it best, so that a cluster is
    matched with its equal and not with a larger one around it; of those of one size, the first. A
    cluster that shares no object with the other set is included in none of its clusters. Its match
    is 0, and so is that of a cluster whose memberships are all 0.

    The result does not depend on which set comes first. The time is
    O(n_clusters_a n_clusters_b n_objects); cells are formed some rows at a time.

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
        check_number(threshold, "threshold", 0, 1, closed="right")
    a, b = _read_clusters(clusters_a, "clusters_a"), _read_clusters(clusters_b, "clusters_b")
    sizes = [(part.rows.shape[1], part.columns.shape[1]) for part in (a, b)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            "clusters_a and clusters_b must be of the same objects, got (n_rows, n_columns) "
            f"{sizes[0]} and {sizes[1]}; objects that are not cells count as columns of one row."
        )
    if threshold is None:
        a, b = (_Clusters(*map(_shares, one)) for one in (a, b))
    else:
        a, b = (_Clusters(*(members(part, threshold) * 1.0 for part in one)) for one in (a, b))
    common = _in_common(a, b)
    of_b = _matches(a, b, _best_including(common, b))
    of_a = _matches(b, a, _best_including(common.T, a))
    return float(np.mean(np.concatenate([of_a, of_b])))


class _Clusters(NamedTuple):
    """Memberships of rows and of columns; objects that are not cells are columns of one row."""

    rows: np.ndarray  # (n_clusters, n_rows)
    columns: np.ndarray  # (n_clusters, n_columns)


def _read_clusters(value: Any, name: str) -> _Clusters:
    """Return a matrix of memberships, or a pair of them, as clusters of cells."""
    pair = isinstance(value, tuple | list) and len(value) == 2
    if pair and all(np.ndim(part) == 2 for part in value):
        rows, columns = (_read_memberships(part, f"{name}[{i}]") for i, part in enumerate(value))
        if len(rows) != len(columns):
            wanted = "rows and columns of the same number of clusters"
            got = f"{len(rows)} and {len(columns)}"
            raise ValueError(f"{name} must have {wanted}, got {got}.")
        return _Clusters(rows, columns)
    columns = _read_memberships(value, name)
    return _Clusters(np.ones((len(columns), 1)), columns)


def _read_memberships(value: Any, name: str) -> np.ndarray:
    try:
        array = read_table(value, name, dtype=np.float64, accept_sparse=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must hold memberships, of shape (n_clusters, n_objects), or be a pair (rows, "
            f"columns) of such arrays: {error}"
        ) from error
    if array.min() < 0:
        raise ValueError(f"{name} must have no membership below 0, got {array.min():.3g}.")
    return array


def _shares(memberships: np.ndarray) -> np.ndarray:
    """Return memberships as shares of the largest one in the cluster; of an empty one 0."""
    largest = memberships.max(axis=1, keepdims=True)
    return np.divide(memberships, largest, out=np.zeros_like(memberships), where=largest > 0)


def members(memberships: np.ndarray, threshold: float) -> np.ndarray:
    """Return which memberships are at least a share of the largest one in the cluster, above 0."""
    shares = _shares(memberships.astype(np.float64, copy=False))
    return (shares >= threshold * (1 - _ROUNDING)) & (shares > 0)


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
