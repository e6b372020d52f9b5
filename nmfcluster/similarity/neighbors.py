"""Similarities between near samples alone: a sparse graph, and links between its parts."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from sklearn.neighbors import NearestNeighbors

from nmfcluster._utils import storage
from nmfcluster._utils.order import canonical_order
from nmfcluster._utils.parallel import one_thread
from nmfcluster._utils.validation import warn

_SOME = 10  # neighbours of a row where there are rows enough
FEWEST = 3  # neighbours: with two, rows of one cluster often fall into chains
_OF_A_CLUSTER = (
    0.75  # of its mean size: those of a row in a small cluster are not all others
)
_MOST_TIED = 4  # times as many neighbours, where several are as far as the last
_TIED = 1 + 1e-6  # times as far is as far: more than what distances are rounded by
_LEAST_SCALE = 0.3  # of the mean: best mean of 31 sets, .1 to .6 hardly change it
_FARTHEST = 60.0  # exponent of a neighbour's weight: beyond, it would be 0 in float32
_APART = 30.0  # exponent from which on neighbours are no more joined than parts are
_ISLANDS, _MANY = (
    5,
    50,
)  # parts, a cluster and at all: 31 sets have one more than clusters at most
_ENTRIES = (
    2**24
)  # of a graph of samples: 200 MB, from which on those of equal rows are thinned
_PARTNERS = (
    10  # copies of a row that one of another is joined to, where all are too many
)


def few_enough(X: Any) -> bool:
    """Return whether a graph of neighbours of samples is likely to be connected, and found soon.

    Of more samples in few dimensions it mostly falls into parts. Of more that are sparse, such as
    texts, the search takes too long: O(n^2).
    """
    return X.shape[0] <= (10_000 if storage.is_sparse(X) else 3_000)


def of_a_cluster(n_rows: int, n_clusters: int) -> int:
    """Return three quarters of the rows of a cluster, on average, and at most 10."""
    return min(int(_OF_A_CLUSTER * n_rows / n_clusters), _SOME)


def are_few(n_rows: int, n_clusters: int | None) -> bool:
    """Return whether clusters have fewer than 14 rows, so that one row may be one."""
    return n_clusters is not None and of_a_cluster(n_rows, n_clusters) < _SOME


class NeighborGraph:
    r"""A graph of the nearest neighbours of samples, with weights by local scales.

    Neighbours are looked for among the rows that differ. Where one of i and j is among the K
    nearest of the other, or as near as the last of these, their similarity is
    :math:`\exp(-\|x_i - x_j\|^2 / (s_i s_j))`, or exp(-60) if that is larger; elsewhere it is 0.
    :math:`s_i` is the distance from i to the K-th of its neighbours [1]_. Equal rows have the
    similarity 1, and so has a sample to itself: it can be a cluster.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    n_neighbors : int, default=None
        K, of at most all others. None: 10, or of fewer than 14 different rows a cluster three
        quarters of their number, but at least 3.
    n_jobs : int, default=None
        Number of jobs that look for neighbours.
    max_parts : int, default=None
        How many clusters are wanted, or into how many parts that nothing connects the graph may
        fall. Where there are more, the smaller ones are linked to the samples nearest to them, so
        that none is left alone; a similarity below exp(-30) connects nothing then. Of fewer than 14
        different rows a part, no :math:`s_i` is above the longest step that so many clusters of
        single linkage have inside: what is far for all is then far for a row with few others near.
        None: any number.

    Attributes
    ----------
    array : csr_array of shape (n_samples, n_samples)
        The similarities. With many copies of rows, so that more than 2^24 would be stored, a copy
        is joined to some of those of another row, in proportion more.

    References
    ----------
    .. [1] L. Zelnik-Manor, P. Perona. Self-tuning spectral clustering. NIPS 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.similarity.neighbors import NeighborGraph
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> NeighborGraph(X, 1).array.toarray().round(2)
    array([[1.  , 0.37, 0.  , 0.  ],
           [0.37, 1.  , 0.  , 0.  ],
           [0.  , 0.  , 1.  , 0.37],
           [0.  , 0.  , 0.37, 1.  ]])
    >>> NeighborGraph(X, 1, max_parts=1).array.toarray().round(2)
    array([[1.  , 0.37, 0.  , 0.  ],
           [0.37, 1.  , 0.37, 0.  ],
           [0.  , 0.37, 1.  , 0.37],
           [0.  , 0.  , 0.37, 1.  ]])
    """

    def __init__(
        self,
        X: Any,
        n_neighbors: int | None = None,
        n_jobs: int | None = None,
        max_parts: int | None = None,
    ) -> None:
        order = canonical_order(X)
        n, self._n_parts = (
            len(order.distinct),
            None if max_parts is None else int(max_parts),
        )
        #: the rows that differ, and which of them every sample has
        self._X, self._row = X, np.arange(n)
        if n < X.shape[0]:
            self._X, self._row = X[order.distinct], order.distinct_inverse
        if n_neighbors is None:
            n_neighbors = (
                _SOME if max_parts is None else max(of_a_cluster(n, max_parts), FEWEST)
            )
        self._K = min(int(n_neighbors), n - 1)
        self._search = NearestNeighbors(n_neighbors=max(self._K, 1), n_jobs=n_jobs).fit(
            self._X
        )
        W = storage.identity(n, X.dtype)
        if self._K:
            W = W + self._joined(are_few(n, self._n_parts))
            if self._n_parts is not None:
                W = self._linked(W, self._n_parts)
        self.array = sp.csr_array(W) if n == X.shape[0] else _of_copies(W, self._row)

    def _joined(self, by_steps: bool) -> sp.csr_array:
        """Return the similarities of rows that differ, the diagonal left out, and set scales."""
        n, K = self._X.shape[0], self._K
        # more than K where several are as far as the last, or long steps are looked for
        distances, nearest = self._asked(
            None, _MOST_TIED * _SOME if by_steps else K + 1
        )
        most = min(_MOST_TIED * K, n - 1)
        tied = np.flatnonzero(distances[:, -1] <= distances[:, K - 1] * _TIED)
        if len(tied) and most > distances.shape[1]:
            farther = self._asked(tied, most)
            distances = _replaced(distances, farther[0], tied)
            nearest = _replaced(nearest, farther[1], tied)
        self._scales, self._longest = distances[:, K - 1], np.inf
        if by_steps and self._n_parts is not None:
            self._longest = longest_step(
                storage.csr_of_equal_rows(distances, nearest, n), self._n_parts
            )
            self._scales = np.minimum(self._scales, self._longest)
        self._least = (
            _LEAST_SCALE * float(self._scales.mean()) or 1.0
        )  # of rows next to equal
        self._scales = np.maximum(self._scales, self._least)
        near = distances <= distances[:, K - 1 : K] * _TIED
        W = storage.knn_weights(
            distances, nearest, self._scales, self._scales, _FARTHEST
        )
        if self._n_parts is not None:
            near &= W.data.reshape(near.shape) > np.exp(-_APART)
        W = storage.with_nonzero_data(
            W, np.where(near.ravel(), W.data, 0).astype(self._X.dtype)
        )
        return sp.csr_array(W.maximum(W.T))

    def _asked(
        self, rows: np.ndarray | None, most: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the distances of some rows, or all, to others, and which these are."""
        most = min(most, self._X.shape[0] - 1)
        with one_thread():  # ties are broken by the number of threads
            if rows is None:
                return self._search.kneighbors(n_neighbors=most)
            distances, nearest = self._search.kneighbors(self._X[rows], most + 1)
        others = (
            nearest != rows[:, None]
        )  # one of them is the row itself, or left out for it
        others[others.all(axis=1), -1] = False
        return distances[others].reshape(-1, most), nearest[others].reshape(-1, most)

    def _linked(self, W: sp.csr_array, max_parts: int) -> sp.csr_array:
        """Return the graph with links of parts that are too many; warn if these are very many."""
        n_parts, part = connected_components(W, directed=False)
        if n_parts > max(_ISLANDS * max_parts, _MANY):
            told = f"The graph of the {self._K} nearest neighbours falls into {n_parts:,} parts"
            why = f"far more than n_clusters={max_parts}, as where rows nearly coincide"
            cure = (
                "so that they coincide, or give a larger n_neighbors, or affinity='rbf'"
            )
            warn(f"{told}, {why}: round them, {cure}.")
        while n_parts > max_parts:
            rows, columns = nearest_outside(
                self._X, part, self._search, part, max_parts
            )
            # as heavy as a neighbour at the local scales
            weights = np.full(len(rows), np.exp(-1), W.dtype)
            links = sp.csr_array((weights, (rows, columns)), W.shape)
            W = W.maximum(links.maximum(links.T))
            n_parts, part = connected_components(W, directed=False)
        return W

    def between(self, X: Any) -> sp.csr_array:
        """Return the weights of the neighbours of new samples.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_new, n_features)

        Returns
        -------
        csr_array of shape (n_new, n_samples)
        """
        X = storage.match_storage(
            X, self._X
        )  # the trees of the search want dense arrays
        if not self._K:
            return sp.csr_array(np.ones((X.shape[0], len(self._row)), self._X.dtype))
        with one_thread():
            distances, nearest = self._search.kneighbors(X)
        scales = np.maximum(np.minimum(distances[:, -1], self._longest), self._least)
        W = storage.knn_weights(distances, nearest, scales, self._scales, _FARTHEST)
        return sp.csr_array(W.astype(self._X.dtype)[:, self._row])


def _replaced(array: np.ndarray, rows: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return an array with longer rows at some places; others are filled up with their last."""
    array = np.pad(array, ((0, 0), (0, rows.shape[1] - array.shape[1])), mode="edge")
    array[places] = rows
    return array


def longest_step(distances: sp.csr_array, n_clusters: int) -> float:
    """Return the longest step inside of the clusters that single linkage finds.

    Parameters
    ----------
    distances : csr_array of shape (n, n)
        To the neighbours of every row.
    n_clusters : int

    Returns
    -------
    float
        Infinite where neighbours alone form more parts. Where no cluster has a step it is a quarter
        of the shortest one: next to nothing is similar at that scale.
    """
    ends = distances.maximum(distances.T)
    ends.data = np.maximum(
        ends.data, np.finfo(float).tiny
    )  # a stored 0 would be no step
    steps = np.sort(minimum_spanning_tree(ends).data)[::-1]
    n_cut = n_clusters - (
        ends.shape[0] - len(steps)
    )  # steps between clusters, the longest ones
    if n_cut >= len(steps):
        return float(steps[-1]) / 4
    return float(steps[n_cut]) if n_cut >= 0 else np.inf


def _of_copies(W: sp.csr_array, row: np.ndarray) -> sp.csr_array:
    """Return the similarities of samples, by those of the rows that differ.

    Parameters
    ----------
    W : csr_array of shape (m, m)
        Symmetric.
    row : ndarray of shape (n,), int
        Row of every sample.
    """
    counts, stored = np.bincount(row), W.tocoo()
    if (counts[stored.row] * counts[stored.col]).sum() <= _ENTRIES:
        return sp.csr_array(W[row][:, row])
    # the samples of every row, one row after the other, and every pair of rows once
    samples, starts = np.argsort(row, kind="stable"), np.cumsum(counts) - counts
    pairs = sp.triu(W).tocoo()
    turned = counts[pairs.row] < counts[pairs.col]
    u, v = np.where(turned, [pairs.col, pairs.row], [pairs.row, pairs.col])
    more, fewer = counts[u], counts[v]
    weights = pairs.data * np.maximum(fewer / _PARTNERS, 1) / np.where(u == v, 2, 1)
    # turn by turn, each copy gets a partner in the row with fewer: the next one, or one by chance
    graph, rng = (
        sp.csr_array((len(row), len(row)), dtype=W.dtype),
        np.random.default_rng(0),
    )
    for turn in range(_PARTNERS):
        ahead = np.where(fewer > _PARTNERS, rng.integers(fewer), turn)
        pair = np.repeat(np.arange(len(u)), np.where(turn < fewer, more, 0))
        copy = np.arange(len(pair)) - np.searchsorted(pair, pair)
        one = samples[starts[u[pair]] + copy]
        other = samples[starts[v[pair]] + (copy + ahead[pair]) % fewer[pair]]
        joined = sp.coo_array(
            (weights[pair].astype(W.dtype), (one, other)), graph.shape
        )
        graph = graph + joined.tocsr()
    return sp.csr_array(graph + graph.T)


def nearest_outside(
    X: Any,
    part: np.ndarray,
    search: NearestNeighbors,
    part_of_point: np.ndarray,
    max_parts: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a link of every part that is too many, the smallest ones, to what is nearest to it.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    part : ndarray of shape (n_samples,), int
        Part of every sample, from 0.
    search : NearestNeighbors
        Fitted to points: samples or landmarks.
    part_of_point : ndarray of shape (n_points,), int
        -1 for a point that is no use to link to.
    max_parts : int
        How many parts there may be; at least half of the others will be gone.

    Returns
    -------
    samples, points : ndarray of shape (n_links,), int
        Empty where there are few enough parts.
    """
    sizes = np.bincount(part)
    smallest = np.argsort(sizes, kind="stable")[: max(len(sizes) - max_parts, 0)]
    links = np.empty((len(smallest), 2), dtype=np.intp)
    for link, own in zip(links, smallest, strict=True):
        members = np.flatnonzero(part == own)
        asked = members[
            :: -(-len(members) // 100)
        ]  # more would find hardly nearer ones
        useless = (part_of_point == own) | (part_of_point < 0)
        with one_thread():  # ties are broken by the number of threads
            distances, nearest = search.kneighbors(X[asked], int(useless.sum()) + 1)
        distances = np.where(useless[nearest], np.inf, distances)
        sample, column = np.unravel_index(distances.argmin(), distances.shape)
        link[:] = asked[sample], nearest[sample, column]
    return links[:, 0], links[:, 1]
