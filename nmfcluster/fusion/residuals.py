"""Residuals of sources from independence, their agreement, and the graph of their sum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, isqrt
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nmfcluster._utils import storage

AGREE = 5.0  # z-score above which sources agree: 0.05 % of 23,562 independent pairs are above it
_NEGLIGIBLE = 1e-12  # share of the largest entry below which an entry counts as 0
# size of a component of a sparse source up to which the source does not cover its objects: these
# are single objects and pairs
_ISOLATED = 2
# mean number of neighbours, in roots of n, above which a source is a graph only if it has few
# distinct entries
_DENSE_GRAPH = 2
# iterations for the margins without a diagonal: a few objects need 50, many objects three
_MARGIN_STEPS = 50
_N_PERMUTATIONS = 49  # permutations of the test whether a source agrees with clusters
# correlation, of all pairs and of those that are similar in both, above which sources are copies
_DUPLICATE = 0.95
_COMPARED_ENTRIES = 2**22  # entries compared of two sources that may be copies
# share of the largest entry below which an entry is the float32 rounding of 0
_ROUNDED = 1e-6
# share of the norm of a source below which its residual is rounding, and the source is constant
_CONSTANT = 1e-5
_TINY = np.finfo(np.float64).tiny  # divisor in place of 0
_GRAPH_ROWS = 256  # rows of a block of a dense graph
# largest number of neighbours, as a share of the mean cluster: an object then need not keep all
# others of a small cluster
_CLUSTER_SHARE = 0.75


@dataclass
class Residual:
    r"""A source minus the similarity expected of independent objects with the same margins.

    The source S is normalised to :math:`N = D_r^{-1/2} S D_c^{-1/2}`, where :math:`D_r` and
    :math:`D_c` hold the sums of rows and of columns plus their means [1]_. The residual is

    .. math:: R = N - u v', \quad R 1 = 0, \; R' 1 = 0 .

    If rows and columns differ, :math:`u v' = r s' / 1'r` for :math:`r = N 1` and :math:`s = N' 1`.
    If objects are compared with each other, N is symmetric, the diagonals of N and R are 0, and
    u = v solves :math:`u_i \sum_{j \ne i} u_j = r_i`.

    Attributes
    ----------
    stored : {ndarray, csr_array} of shape (n, p)
        R in float32 if the source is dense; N if it is sparse, so that R is never formed.
    rows : ndarray of shape (n,)
        The vector u. It is 0 for objects that the source does not cover, whose rows of R are 0.
    columns : ndarray of shape (p,)
        The vector v.
    degrees : ndarray of shape (p,)
        The sums of the columns of S.
    size : float
        The root mean square of R over the pairs that the source covers. It is 0 if R consists only
        of rounding errors.
    square : bool
        Whether the objects are compared with each other.
    is_graph : bool
        Whether the source is a network, see `_is_network`.

    References
    ----------
    .. [1] T. Qin, K. Rohe. Regularized spectral clustering under the degree-corrected stochastic
       blockmodel. NIPS 2013.
    """

    stored: Any
    rows: np.ndarray
    columns: np.ndarray
    degrees: np.ndarray
    size: float
    square: bool
    is_graph: bool = False

    @property
    def seen(self):
        """Which of the objects in rows the source covers, (n,), bool."""
        return self.rows > 0

    def restrict_to(self, objects):
        """Return the residual of only the objects at some positions."""
        N = self.stored[objects]
        columns = self.columns
        if self.square:
            N = N[:, objects]
            columns = columns[objects]
        if not sp.issparse(N):
            N = N + np.outer(self.rows[objects], columns)
            N[N < _ROUNDED * N.max(initial=0)] = 0  # entries that were 0 before float32
            if self.square:
                np.fill_diagonal(N, 0)
        return _residual_of_scaled(N, self.degrees, self.square, self.is_graph)

    def residual_of_new(self, source):
        """Return the residual of the similarities of new objects, (m, n), to these."""
        if sp.issparse(self.stored):
            source = sp.csr_array(source)
        source = _clean(source, square=False)
        row_degrees = storage.row_sums(source)
        N = _divide_by_roots(source, row_degrees, self.degrees, self.seen.sum())
        rows = sums_of(N, axis=1) / (self.columns.sum() or 1.0)
        stored = _subtract_expected(N, rows, self.columns, square=False)
        return replace(self, stored=stored, rows=rows, square=False)

    def block(self, rows):
        """Return some rows of R as an array in float32, without clearing the diagonal."""
        if not sp.issparse(self.stored):
            return self.stored[rows]
        block = storage.as_dense(storage.rows_of(self.stored, rows)).astype(np.float32)
        block -= np.outer(self.rows[rows].astype(np.float32), self.columns)
        return block

    def entries(self, rows, columns):
        """Return entries of R, off its diagonal, in float64."""
        stored = storage.as_dense(self.stored[rows, columns])
        stored = np.asarray(stored, dtype=np.float64).ravel()
        if not sp.issparse(self.stored):
            return stored
        return stored - self.rows[rows] * self.columns[columns]


def compute_residual(source, square=True):
    """Return the residual of a source from independence.

    Parameters
    ----------
    source : {ndarray, csr_array} of shape (n, p)
        Negative entries count as 0. The source does not cover an object whose similarities are all
        0. A sparse source also does not cover objects in components of at most two objects.
    square : bool, default=True
        Whether the source compares the objects with each other, and so is symmetric.

    Returns
    -------
    Residual
    """
    S = _clean(source, square)
    is_graph = _is_network(S)
    if is_graph:
        S = sp.csr_array(S)
    if square and sp.issparse(S):
        component = connected_components(S, directed=False)[1]
        is_inside = np.bincount(component)[component] > _ISOLATED
        # a component is symmetric, so that clearing its columns clears its rows
        S = storage.scaled_columns(S, is_inside.astype(S.dtype))
        S.eliminate_zeros()
    degrees = sums_of(S, axis=0)
    row_degrees = degrees if square else sums_of(S, axis=1)
    N = _divide_by_roots(S, row_degrees, degrees, np.count_nonzero(row_degrees))
    return _residual_of_scaled(N, degrees, square, is_graph)


def _is_network(S):
    """Return whether a source has few entries a row, or few distinct ones.

    Distinct entries are few if there are no more of them than neighbours that would be kept. The
    kept neighbours would then be chosen among ties. In this case, at most half of all entries may
    be above 0. The result is the same for dense and sparse storage.
    """
    n, p = S.shape
    n_links = np.count_nonzero(storage.stored_values(S))
    if n_links <= _DENSE_GRAPH * isqrt(p) * n:
        return True
    if 2 * n_links > n * p:
        return False
    values = storage.stored_values(S)
    return len(np.unique(values[values > 0])) <= isqrt(p)


def _residual_of_scaled(N, degrees, square, is_graph):
    """Return the residual of a source that is already divided by the roots of its sums."""
    row_sums = sums_of(N, axis=1)
    root = np.sqrt(row_sums.sum() or 1.0)
    u = row_sums / root
    if square:
        # find u such that u_i sum_{j != i} u_j is the sum of row i, by a fixed-point iteration
        for _ in range(_MARGIN_STEPS):
            rest = np.maximum(u.sum() - u, _TINY)
            u = np.sqrt(u * row_sums / rest)
        v = u
    else:
        v = sums_of(N, axis=0) / root
    stored = _subtract_expected(N, u, v, square)
    R = Residual(stored, u, v, degrees, 0.0, square, is_graph)
    squares = inner_product(R, R)
    if squares > _CONSTANT**2 * storage.sum_of_squares(N):
        R.size = float(np.sqrt(squares / n_pairs(R, R)))
    return R


def _subtract_expected(N, u, v, square):
    """Return the matrix that a residual stores: N if sparse, else N - u v' in float32."""
    if sp.issparse(N):
        return N
    stored = np.empty(N.shape, dtype=np.float32)
    for rows in storage.row_blocks(len(N)):
        stored[rows] = N[rows] - np.outer(u[rows], v)
    if square:
        np.fill_diagonal(stored, 0)
    return stored


def _clean(source, square):
    """Return a source without negative or negligible entries, and a square one without diagonal."""
    least = _NEGLIGIBLE * max(float(source.max()), 0) if all(source.shape) else 0.0
    if sp.issparse(source):
        # use float64, because sums over R are differences of sums over N
        values = source.data.astype(np.float64)
        source = storage.with_nonzero_data(source, np.where(values < least, 0, values))
        return storage.without_diagonal(source) if square else source
    cleaned = np.where(source < least, 0, source)
    if square:
        np.fill_diagonal(cleaned, 0)
    return cleaned


def _divide_by_roots(S, row_degrees, column_degrees, n_rows):
    """Return a source divided by the roots of its sums plus their means, in place if dense.

    Without the means, outliers, which are similar to few objects, would have the largest entries.
    The means are over the fitted objects that the source covers, `n_rows` in rows.
    """
    total = column_degrees.sum()
    row_mean = total / max(n_rows, 1)
    column_mean = total / max(np.count_nonzero(column_degrees), 1)
    row_factors = storage.safe_inverse(np.sqrt(row_degrees + row_mean))
    column_factors = storage.safe_inverse(np.sqrt(column_degrees + column_mean))
    if sp.issparse(S):
        return storage.scaled_columns(
            storage.scaled_rows(S, row_factors), column_factors
        )
    S *= row_factors[:, None]
    S *= column_factors
    return S


def sums_of(array, axis):
    """Return the sums of a matrix along an axis, in float64."""
    return np.asarray(array.sum(axis=axis, dtype=np.float64)).ravel()


# --- the agreement of sources --------------------------------------------------------------------


class Agreement(NamedTuple):
    """Correlations of the residuals of sources, and their scores.

    Attributes
    ----------
    correlations : ndarray of shape (n_sources, n_sources)
        Correlations of residuals, over the pairs of objects that both sources cover. The diagonal
        is 1.
    scores : ndarray of shape (n_sources, n_sources)
        Correlations times the square root of the number of pairs. They are z-scores, which have
        mean 0 and variance 1 for two independent sources. The diagonal is 0.
    """

    correlations: np.ndarray
    scores: np.ndarray


def measure_agreement(residuals):
    """Return the correlations of the residuals of sources, and their scores."""
    correlations = np.eye(len(residuals))
    scores = np.zeros_like(correlations)
    for j, i in combinations(range(len(residuals)), 2):
        one = residuals[i]
        other = residuals[j]
        both = one.seen & other.seen
        if not both.all():
            one = one.restrict_to(np.flatnonzero(both))
            other = other.restrict_to(np.flatnonzero(both))
        if one.size and other.size:
            n = n_pairs(one, other)
            correlation = inner_product(one, other) / (one.size * other.size * n)
            score = correlation * np.sqrt(n / 2 if one.square else n)
            correlations[i, j] = correlations[j, i] = correlation
            scores[i, j] = scores[j, i] = score
    return Agreement(correlations, scores)


def n_pairs(one, other):
    """Return the number of ordered pairs of objects that both sources cover."""
    n_seen = int((one.seen & other.seen).sum())
    if one.square:
        return n_seen * (n_seen - 1)
    return n_seen * int(((one.columns > 0) & (other.columns > 0)).sum())


def inner_product(one, other):
    """Return the inner product of two residuals, without their diagonals."""
    # start from the stored matrices; u v' is not yet subtracted from sparse ones
    product = storage.inner_product(one.stored, other.stored)
    expected = 0.0
    for sparse, R in ((other, one), (one, other)):
        if sp.issparse(sparse.stored):
            columns = sparse.columns.astype(R.stored.dtype)
            expected += float(sparse.rows @ (R.stored @ columns))
    if sp.issparse(one.stored) and sp.issparse(other.stored):
        outer = float(one.rows @ other.rows) * float(one.columns @ other.columns)
        if one.square:
            outer -= float((one.rows * one.columns) @ (other.rows * other.columns))
        product += outer
    return product - expected


def agrees_with_clusters(R, vectors):
    """Return whether a source agrees with clusters of other sources.

    The score measures the correlation of its residual with the projector onto the eigenvectors that
    separate clusters. It must exceed `AGREE`. It must also exceed twice the largest score under
    permutations of the objects, because the scores of a source with few large eigenvalues have a
    long tail.

    Parameters
    ----------
    R : Residual
        A residual of objects that are compared with each other.
    vectors : ndarray of shape (n, r)
    """
    if not R.seen.all():
        seen = np.flatnonzero(R.seen)
        vectors = vectors[seen]
        R = R.restrict_to(seen)
    n = len(vectors)
    if n <= vectors.shape[1]:
        return False
    # find an orthonormal basis of the vectors minus their means; ignore the diagonal
    Q = np.linalg.qr(vectors - vectors.mean(axis=0))[0]
    lengths = (Q**2).sum(axis=1)
    squares = Q.shape[1] - lengths @ lengths
    if (
        not R.size or squares < _ROUNDED
    ):  # there is one cluster, or each object is its own
        return False
    size = np.sqrt(squares) * R.size

    def score(order):
        basis = Q[order]
        product = (basis * (R.stored @ basis)).sum()
        if sp.issparse(R.stored):
            product -= ((R.rows @ basis) ** 2).sum() - R.rows**2 @ lengths[order]
        return product / size / np.sqrt(2)

    found = score(slice(None))
    if found <= AGREE:
        return False
    rng = np.random.default_rng(0)
    chance = max(score(rng.permutation(n)) for _ in range(_N_PERMUTATIONS))
    return bool(found > 2 * chance)


def find_duplicates(residuals, found):
    """Return which sources are nearly equal, (L, L), bool.

    Sources are nearly equal if their residuals correlate over all pairs, and also over the pairs
    that are similar in both sources. The second test is needed because two sources with the same
    clear clusters correlate over all pairs, but differ inside these clusters.
    """
    same = np.eye(len(residuals), dtype=bool)
    correlated = (found.correlations > _DUPLICATE) & (found.scores > AGREE)
    for i, j in np.argwhere(np.triu(correlated, 1)):
        same[i, j] = same[j, i] = _are_equal_inside(residuals[i], residuals[j])
    return same


def _are_equal_inside(one, other):
    """Return whether two residuals correlate over the pairs that are similar in both."""
    n_rows = min(len(one.rows), max(1, _COMPARED_ENTRIES // len(one.columns)))
    blocks = np.array([R.block(slice(0, n_rows)) for R in (one, other)])
    both = (blocks > 0).all(axis=0)
    # subtract the mean of these pairs in every row
    sums = np.where(both, blocks, 0).sum(axis=2, dtype=np.float64)
    means = sums / np.maximum(both.sum(axis=1), 1)
    a, b = (blocks - means[:, :, None])[:, both]
    # sum of squares that rounding leaves of a constant source
    least = _CONSTANT**2 * len(a)
    a_varies = a @ a > least * one.size**2
    b_varies = b @ b > least * other.size**2
    if a_varies and b_varies:
        return bool(a @ b > _DUPLICATE * np.sqrt((a @ a) * (b @ b)))
    return not (a_varies or b_varies)


# --- the graph of the sum of sources -------------------------------------------------------------


class FusedGraph(NamedTuple):
    """The graph of pairs that are similar in the sum of the sources.

    Attributes
    ----------
    A : csr_array of shape (n, p)
        :math:`D_r^{-1/2} G D_c^{-1/2}`, G the graph.
    degrees : ndarray of shape (p,)
        The sums of the columns of G.
    contributions : ndarray of shape (n_counted, nnz), float32
        The part of every source that is used in the entries of A, in the order of
        `counted_sources`. Parts can be negative.
    n_neighbors : int or None
        Number of neighbours that every object keeps, see `n_neighbors_to_keep`.
    """

    A: Any
    degrees: Any = None
    contributions: Any = None
    n_neighbors: int | None = None


def n_neighbors_to_keep(
    residuals,
    weights,
    n_clusters,
    distinct=slice(None),
):
    """Return how many neighbours an object keeps in the sum of sources; None for all.

    The number is None if all sources that are used are graphs. Otherwise it is the square root of
    the number of objects, or three quarters of the mean size of a cluster if that is less.

    Parameters
    ----------
    residuals : list of Residual
    weights : ndarray of shape (L,)
    n_clusters : int
    distinct : ndarray of int or slice, default=slice(None)
        The columns that are counted, one for each set of equal objects.

    Returns
    -------
    int or None
    """
    if all(R.is_graph for R, w in zip(residuals, weights, strict=True) if w > 0):
        return None
    n = len(residuals[0].columns[distinct])
    return min(isqrt(n), max(2, ceil(_CLUSTER_SHARE * n / n_clusters)))


def fused_graph(
    blocks,
    weights,
    n_neighbors,
    distinct=slice(None),
    with_contributions=True,
):
    """Return the graph of the weighted sum of sources.

    Parameters
    ----------
    blocks : iterable of list of Residual
        Residuals of all objects, or of consecutive blocks of objects.
    weights : ndarray of shape (L,)
    n_neighbors : int or None
        How many neighbours are kept, see `fused_rows`.
    distinct : ndarray of int or slice, default=slice(None)
        See `n_neighbors_to_keep`.
    with_contributions : bool, default=True
        Whether to compute the part of every source, which takes as long as a sparse graph.

    Returns
    -------
    FusedGraph
    """
    rows = []
    contributions = []
    for residuals in blocks:
        G = fused_rows(residuals, weights, n_neighbors, distinct)
        if residuals[0].square:
            G = sp.csr_array(G.maximum(G.T))
        rows.append(G)
        if with_contributions:
            i, j, _ = storage.stored_entries(G)
            contributions.append(_contributions(_counting(residuals, weights), i, j))
    G = storage.vstack(rows)
    degrees = sums_of(G, axis=0)
    A = divide_by_degrees(G, degrees)
    parts = None
    if with_contributions:
        parts = np.concatenate(contributions, axis=1) * (A.data / G.data)
    return FusedGraph(A, degrees, parts, n_neighbors)


def fused_rows(
    residuals,
    weights,
    n_neighbors,
    distinct=slice(None),
):
    r"""Return the similar pairs in the weighted sum of sources, and their similarities.

    .. math:: R_{ij} = \sum_l w_l R^l_{ij} / s_l

    is summed over the sources l that cover both objects, where :math:`s_l` is the root mean square
    of :math:`R^l`. Every row keeps its K largest entries above 0, and entries tied with the last of
    them.

    Parameters
    ----------
    residuals : list of Residual
        Residuals of the same objects.
    weights : ndarray of shape (L,)
        At least 0. A source of size 0 is left out, whatever its weight.
    n_neighbors : int or None
        The number K. None keeps all pairs that a source stores. In this case, all sources that are
        used must be sparse.
    distinct : ndarray of int or slice, default=slice(None)
        See `n_neighbors_to_keep`.

    Returns
    -------
    csr_array of shape (n, p), float32
    """
    counting = _counting(residuals, weights)
    shape = residuals[0].stored.shape
    if not counting:
        return sp.csr_array(shape, dtype=np.float32)
    if n_neighbors is None:  # only pairs that some source stores can be above 0
        pattern = sum((R.stored != 0).astype(np.float32) for R, _ in counting).tocoo()
        i, j = pattern.coords
        values = _contributions(counting, i, j).sum(axis=0)
        A = sp.csr_array((np.maximum(values, 0), (i, j)), shape=shape)
        A.eliminate_zeros()
        return A
    # find the largest entries, in blocks of rows
    blocks = []
    for rows in storage.row_blocks(shape[0], _GRAPH_ROWS):
        # sum the weighted sources, which are 0 for pairs that they do not cover
        fused = np.zeros((rows.stop - rows.start, shape[1]), dtype=np.float32)
        for R, w in counting:
            fused += R.block(rows) * np.float32(w / R.size)
        if residuals[0].square:
            fused[np.arange(len(fused)), np.arange(rows.start, rows.stop)] = 0
        np.maximum(fused, 0, out=fused)
        blocks.append(storage.nearest_similarities(fused, n_neighbors, distinct))
    return storage.vstack(blocks)


def counted_sources(residuals, weights):
    """Return the numbers of the sources that are used, sorted by properties of the sources.

    Because of this order, rounding does not depend on the order in which users pass the sources.
    """
    pairs = enumerate(zip(residuals, weights, strict=True))
    numbers = [i for i, (R, w) in pairs if w > 0 and R.size > 0]
    return sorted(
        numbers, key=lambda i: (residuals[i].size, residuals[i].columns.sum())
    )


def _counting(residuals, weights):
    """Return the sources that are used, and their weights."""
    numbers = counted_sources(residuals, weights)
    return [(residuals[i], float(weights[i])) for i in numbers]


def _contributions(counting, rows, columns):
    """Return the part of every source in some entries of R, (n_counting, n_pairs), in float32."""
    parts = np.zeros((len(counting), len(rows)), dtype=np.float32)
    for part, (R, w) in zip(parts, counting, strict=True):
        part[:] = w / R.size * R.entries(rows, columns)
    return parts


def divide_by_degrees(graph, column_degrees):
    """Return the graph, its entries divided by the roots of the degrees of both objects.

    The degree of a row is its sum, and the degrees of columns are passed. If the degree of a column
    is smaller than an entry, the entry is used instead, because a new object would also have been a
    neighbour in the fit.
    """
    row_degrees = sums_of(graph, axis=1)
    i, j, values = storage.stored_entries(graph.astype(np.float64))
    shares = values / np.sqrt(row_degrees[i])
    shares /= np.sqrt(np.maximum(column_degrees[j], values))
    return storage.with_nonzero_data(graph, shares.astype(np.float32))
