"""Similarities from nearest neighbours, as a sparse graph or through landmarks."""

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors

from nmfcluster._utils import storage
from nmfcluster._utils.linalg import map_blocks
from nmfcluster._utils.order import canonical_order
from nmfcluster._utils.parallel import one_thread
from nmfcluster._utils.validation import make_rng, warn
from nmfcluster.similarity.operators import Factored

# default number of neighbours of a row
_N_NEIGHBORS = 10
# smallest default number of neighbours: with two, rows of one cluster often form chains
_MIN_NEIGHBORS = 3
# default neighbours as a share of the mean size of small clusters, to exclude other clusters
_CLUSTER_SHARE = 0.75
# largest number of neighbours searched to find those tied with the K-th, in multiples of K
_MAX_TIE_FACTOR = 4
# ratio of distances up to which neighbours are tied with the K-th, larger than rounding
_TIE_RATIO = 1 + 1e-6
# smallest scale relative to the mean scale: best on average of 31 data sets; 0.1 to 0.6 hardly
# change the mean
_MIN_SCALE = 0.3
# largest exponent of a neighbour's weight: above, the weight would be 0 in float32
_MAX_EXPONENT = 60.0
# exponent above which neighbours are not connected when components are counted
_CONNECTED_EXPONENT = 30.0
# numbers of components above which users are warned, per cluster and in total: 31 data sets had at
# most one component more than clusters
_MANY_PARTS_PER_CLUSTER = 5
_MANY_PARTS = 50
# largest number of entries of a graph of samples (200 MB); above it those of equal rows are thinned
_MAX_ENTRIES = 2**24
# copies of another row to which each sample is joined when entries are thinned
_N_PARTNERS = 10
# samples of a component whose neighbours are searched for a link: more hardly find nearer ones
_N_LINK_CANDIDATES = 100
# steps of k-means: landmarks need not have converged
_N_KMEANS_STEPS = 5
# largest distance to the nearest landmark, in medians, of samples that count in the common width
_MAX_DISTANCE_RATIO = 50.0
# samples whose distances determine the common width: with 5 landmarks a mean of 10,000 distances
_N_WIDTH_SAMPLES = 2_000


def suits_neighbor_graph(X):
    """Return whether a neighbour graph of the samples is likely to be connected and fast to build.

    Larger graphs of dense samples in few dimensions mostly fall into parts. For more sparse
    samples, such as texts, the search takes too long, because its time is O(n^2).
    """
    return X.shape[0] <= (10_000 if storage.is_sparse(X) else 3_000)


def default_n_neighbors(n_rows, n_clusters):
    """Return 10, or three quarters of the mean number of rows of small clusters, at least 3."""
    if n_clusters is None:
        return _N_NEIGHBORS
    share = int(_CLUSTER_SHARE * n_rows / n_clusters)
    return max(min(share, _N_NEIGHBORS), _MIN_NEIGHBORS)


def has_small_clusters(n_rows, n_clusters):
    """Return whether clusters have fewer than 14 rows on average; one row may then be a cluster."""
    return default_n_neighbors(n_rows, n_clusters) < _N_NEIGHBORS


class NeighborSearch:
    """A search for nearest neighbours among distinct samples, by Euclidean distance.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    n_neighbors : int
        Largest number of neighbours that a graph will need, at least 1.
    n_jobs : int, default=None
    algorithm : str, default="auto"
        Passed to scikit-learn's `NearestNeighbors`.
    """

    def __init__(self, X, n_neighbors, n_jobs=None, algorithm="auto"):
        self._X = X
        self._most = min(int(n_neighbors), X.shape[0])
        self._search = NearestNeighbors(
            n_neighbors=self._most, algorithm=algorithm, n_jobs=n_jobs
        ).fit(X)
        self._own = None

    def __getstate__(self):
        return {**vars(self), "_own": None}

    def nearest_of_own(self, n_neighbors):
        """Return the distances of all samples to their nearest other samples, and their indices."""
        n_others = self._X.shape[0] - 1
        if self._own is None or self._own[0].shape[1] < min(n_neighbors, n_others):
            most = min(max(n_neighbors, self._most), n_others)
            with one_thread():
                self._own = self._search.kneighbors(n_neighbors=most)
        distances, nearest = self._own
        return distances[:, :n_neighbors], nearest[:, :n_neighbors]

    def kneighbors(self, X, n_neighbors=None):
        """Return the distances of new samples to their nearest samples, and their indices."""
        # the trees of the search need dense arrays
        X = storage.match_storage(X, self._X)
        with one_thread():  # the number of threads would decide ties
            return self._search.kneighbors(X, n_neighbors)


class NeighborGraph:
    r"""A graph of the nearest neighbours of samples, with weights by local scales.

    Neighbours are searched among the distinct rows. Two rows i and j are neighbours if one is among
    the K nearest of the other, or as near as the last of these. Their similarity is
    :math:`\exp(-\|x_i - x_j\|^2 / (s_i s_j))`, or exp(-60) if that is larger, where :math:`s_i` is
    the distance from i to its K-th neighbour [1]_. Other rows have similarity 0. Equal rows have
    similarity 1. The diagonal is 1, too, so that a single sample can be a cluster.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    n_neighbors : int, default=None
        The number K. Larger values connect rows that are farther apart. K is at most the number of
        other distinct rows. None means 10. If clusters have fewer than 14 distinct rows on average,
        None means three quarters of this average, but at least 3.
    n_jobs : int, default=None
        Number of parallel jobs that search for neighbours.
    max_parts : int, default=None
        Largest number of connected components that the graph may have, usually the number of
        clusters. None allows any number. Otherwise similarities below exp(-30) are dropped, and
        then the smallest of the surplus components are linked to the samples nearest to them.

        If clusters have fewer than 14 distinct rows on average, the scales :math:`s_i` are also
        limited to the longest step inside `max_parts` clusters of single linkage. This keeps a row
        with few near neighbours from being joined to rows that are far away by the scales of the
        other rows.
    search : NeighborSearch, default=None
        A search that several graphs of the same distinct samples share. None builds one.

    Attributes
    ----------
    array : csr_array of shape (n_samples, n_samples)
        The similarities. If rows have very many copies, so that more than 2^24 entries would be
        stored, a copy is joined to only some copies of another row. These entries are
        proportionally larger.

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
        search: NeighborSearch | None = None,
    ) -> None:
        order = canonical_order(X)
        n = len(order.distinct)
        if max_parts is not None:
            max_parts = int(max_parts)
        #: the distinct rows, and the index of every sample's row among them
        self._X = X
        self._row = np.arange(n)
        if n < X.shape[0]:
            self._X = X[order.distinct]
            self._row = order.distinct_inverse
        if n_neighbors is None:
            n_neighbors = default_n_neighbors(n, max_parts)
        self._K = min(int(n_neighbors), n - 1)
        self._search = search or NeighborSearch(self._X, max(self._K, 1), n_jobs)
        W = storage.identity(n, X.dtype)
        if self._K:
            W = W + self._connect_neighbors(max_parts)
        if max_parts is not None:
            # link surplus components, and warn if there are very many
            n_parts, part = connected_components(W, directed=False)
            if n_parts > max(_MANY_PARTS_PER_CLUSTER * max_parts, _MANY_PARTS):
                warn(
                    f"The graph of the {self._K} nearest neighbours falls into {n_parts:,} parts, "
                    f"far more than n_clusters={max_parts}, so that clusters may be arbitrary. If "
                    "rows nearly coincide, round them to be equal; else use a larger n_neighbors, "
                    "or affinity='rbf'."
                )
            while n_parts > max_parts:
                rows, columns = _find_links(
                    self._X, part, self._search, part, max_parts
                )
                # the weight of a neighbour at the distance of the local scales
                weights = np.full(len(rows), np.exp(-1), W.dtype)
                links = sp.csr_array((weights, (rows, columns)), W.shape)
                W = W.maximum(links.maximum(links.T))
                n_parts, part = connected_components(W, directed=False)
        self.array = sp.csr_array(W) if n == X.shape[0] else _repeat_rows(W, self._row)

    def __getstate__(self):
        """Return the state without the similarities, which fitted models do not need."""
        return {**vars(self), "array": None}

    def _connect_neighbors(self, max_parts):
        """Return the similarities of distinct rows, without the diagonal; set their scales."""
        n = self._X.shape[0]
        K = self._K
        is_small = has_small_clusters(n, max_parts)
        # search K neighbours and one more, or more if the longest step is needed
        n_searched = max(_MAX_TIE_FACTOR * _N_NEIGHBORS, K + 1) if is_small else K + 1
        distances, nearest = self._search.nearest_of_own(n_searched)
        # search more for rows whose last one is tied with the K-th; other rows repeat their last
        most = min(_MAX_TIE_FACTOR * K, n - 1)
        n_missing = most - distances.shape[1]
        tied = np.flatnonzero(distances[:, -1] <= distances[:, K - 1] * _TIE_RATIO)
        if len(tied) and n_missing > 0:
            widths = ((0, 0), (0, n_missing))
            distances = np.pad(distances, widths, mode="edge")
            nearest = np.pad(nearest, widths, mode="edge")
            distances[tied], nearest[tied] = self._find_neighbors(tied, most)
        # scales are the distances to the K-th, within bounds
        self._scales = distances[:, K - 1]
        self._max_scale = np.inf
        if is_small:
            steps = storage.csr_of_equal_rows(distances, nearest, n)
            self._max_scale = find_longest_step(steps, max_parts)
            self._scales = np.minimum(self._scales, self._max_scale)
        self._min_scale = _MIN_SCALE * float(self._scales.mean()) or 1.0
        self._scales = np.maximum(self._scales, self._min_scale)
        # keep only the weights of neighbours
        W = self._weigh(distances, nearest, self._scales)
        is_neighbor = distances <= distances[:, K - 1 : K] * _TIE_RATIO
        if max_parts is not None:
            is_neighbor &= W.data.reshape(nearest.shape) > np.exp(-_CONNECTED_EXPONENT)
        weights = np.where(is_neighbor.ravel(), W.data, 0).astype(self._X.dtype)
        W = storage.with_nonzero_data(W, weights)
        return sp.csr_array(W.maximum(W.T))

    def _find_neighbors(self, rows, most):
        """Return the distances of some rows to their nearest other rows, and the indices."""
        distances, nearest = self._search.kneighbors(self._X[rows], most + 1)
        # drop the row itself, or the last one if the row was not found among its equals
        others = nearest != rows[:, None]
        others[others.all(axis=1), -1] = False
        return distances[others].reshape(-1, most), nearest[others].reshape(-1, most)

    def _weigh(self, distances, nearest, scales):
        """Return the sparse weights of the neighbours of rows with these scales."""
        # exponents of samples far from all others can overflow, and are bounded below
        with np.errstate(over="ignore"):
            exponents = distances**2 / (scales[:, None] * self._scales[nearest])
        weights = np.exp(-np.minimum(exponents, _MAX_EXPONENT))
        return storage.csr_of_equal_rows(weights, nearest, len(self._scales))

    def between(self, X: Any, nearest: Any = None) -> sp.csr_array:
        """Return the weights of the neighbours of new samples.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_new, n_features)
        nearest : tuple of ndarrays of shape (n_new, n_found), default=None
            Distances and indices of the neighbours of X, from a search that this graph shares.

        Returns
        -------
        csr_array of shape (n_new, n_samples)
        """
        dtype = self._X.dtype
        if not self._K:
            return sp.csr_array(np.ones((X.shape[0], len(self._row)), dtype))
        distances, nearest = nearest or self._search.kneighbors(X, self._K)
        distances = distances[:, : self._K]
        nearest = nearest[:, : self._K]
        scales = np.maximum(
            np.minimum(distances[:, -1], self._max_scale), self._min_scale
        )
        W = self._weigh(distances, nearest, scales).astype(dtype)
        return sp.csr_array(W[:, self._row])


def find_longest_step(distances, n_clusters):
    """Return the longest step inside the clusters of single linkage.

    Parameters
    ----------
    distances : csr_array of shape (n, n)
        Distances to the neighbours of every row.
    n_clusters : int

    Returns
    -------
    float
        The length of the step. It is infinite if the graph of neighbours has more components than
        clusters. If every cluster is a single row, it is a quarter of the shortest step, because
        hardly any rows are similar at this scale.
    """
    steps = distances.maximum(distances.T)
    steps.data = np.maximum(steps.data, np.finfo(float).tiny)  # a stored 0 is no step
    in_tree = np.sort(minimum_spanning_tree(steps).data)[::-1]
    # the longest steps lead from cluster to cluster
    n_between = n_clusters - (steps.shape[0] - len(in_tree))
    if n_between >= len(in_tree):
        return float(in_tree[-1]) / 4
    return float(in_tree[n_between]) if n_between >= 0 else np.inf


def _repeat_rows(W, row):
    """Return the similarities of samples, from those of the distinct rows.

    Parameters
    ----------
    W : csr_array of shape (m, m)
        Symmetric.
    row : ndarray of shape (n,), int
        Index of every sample's row in W.
    """
    counts = np.bincount(row)
    stored = W.tocoo()
    if (counts[stored.row] * counts[stored.col]).sum() <= _MAX_ENTRIES:
        return sp.csr_array(W[row][:, row])
    # sort the samples by their row, and number the copies of every row
    samples = np.argsort(row, kind="stable")
    starts = np.cumsum(counts) - counts
    copy = np.argsort(samples) - starts[row]
    # In every turn, each sample gets a partner among the copies of every similar row: the next
    # copy, or a random one if there are many. A pair can be drawn from both sides, so that weights
    # are halved.
    one, partner_row, weights = storage.stored_entries(W[row])
    n_copies = counts[partner_row]
    weights = weights * np.maximum(n_copies / _N_PARTNERS, 1) / 2
    graph = sp.csr_array((len(row), len(row)), dtype=W.dtype)
    rng = np.random.default_rng(0)
    for turn in range(_N_PARTNERS):
        shift = np.where(n_copies > _N_PARTNERS, rng.integers(len(row)), turn)
        other = samples[starts[partner_row] + (copy[one] + shift) % n_copies]
        values = np.where(turn < n_copies, weights, 0).astype(W.dtype)
        graph = graph + sp.coo_array((values, (one, other)), graph.shape).tocsr()
    graph.eliminate_zeros()
    return sp.csr_array(graph + graph.T)


class Landmarks:
    r"""A similarity through landmarks, which is never formed as an array.

    Row i of B holds the weights of the K landmarks nearest to sample i,
    :math:`b_{ij} \propto \exp(-d_{ij}^2 / d_{iK}^2)`. The weights of a sample sum to 1. The width
    is the distance :math:`d_{iK}` to the farthest of the K landmarks. The similarity of samples is
    :math:`B \Lambda^{-1} B'`, with the sums :math:`\Lambda` of the columns of B [1]_. It is the
    probability that a walk from one sample to a landmark and back ends at the other. Its rows sum
    to 1, and no eigenvalue is negative. Distances are Euclidean. For rows of length 1, such as
    tf-idf vectors, they give the same nearest landmarks as cosine similarities.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    n_landmarks : int
        Number of landmarks. Larger values represent the samples more finely, and take longer. The
        landmarks are the centres after a few steps of k-means on ten times as many samples. If
        there are at most `n_landmarks` samples, all samples are landmarks. There can be fewer
        landmarks if some samples are equal.
    n_neighbors : int
        The number K, at most the number of landmarks.
    random_state : int, RandomState, Generator or None, default=0
        Determines the landmarks, unless all samples are landmarks.
    max_parts : int, default=None
        Largest number of connected components; None allows any number. If there are more, the
        smallest ones are linked to others: one sample of each also gets a weight for the nearest
        landmark of another component. This weight is the smallest weight that the sample already
        has.
    common_width : bool, default=False
        Whether all samples have the same width [2]_. It is :math:`\sqrt 2` times the mean distance
        of samples to their landmarks. The mean leaves out samples that are unusually far from their
        nearest landmark.
    counts : ndarray of shape (n_samples,), int, default=None
        How many samples each row represents in the sums :math:`\Lambda`; 1 by default.

    Attributes
    ----------
    points : {ndarray, sparse matrix} of shape (n_landmarks, n_features)
        The landmarks.
    similarity : Factored
        The similarity of the samples.
    rows : callable
        ``rows(X_new)`` returns the weights of new samples, a csr_array of shape (n_new,
        n_landmarks).

    References
    ----------
    .. [1] W. Liu, J. He, S.-F. Chang. Large graph construction for scalable semi-supervised
       learning. ICML 2010.
    .. [2] D. Huang, C.-D. Wang, J.-S. Wu, J.-H. Lai, C.-K. Kwoh. Ultra-scalable spectral clustering
       and ensemble clustering. IEEE Transactions on Knowledge and Data Engineering 32, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.similarity.neighbors import Landmarks
    >>> landmarks = Landmarks(np.array([[0.0], [1.0], [5.0], [6.0]]), 100, 2)
    >>> landmarks.similarity.toarray().round(2)
    array([[0.61, 0.39, 0.  , 0.  ],
           [0.39, 0.61, 0.  , 0.  ],
           [0.  , 0.  , 0.61, 0.39],
           [0.  , 0.  , 0.39, 0.61]])
    >>> landmarks.between(np.array([[4.0]])).round(2)
    array([[0.  , 0.  , 0.58, 0.42]])
    """

    def __init__(
        self,
        X,
        n_landmarks,
        n_neighbors,
        random_state=0,
        max_parts=None,
        common_width=False,
        counts=None,
    ):
        # convert to Python's integers, because small integers of numpy wrap around
        drawn, self.points = _choose_landmarks(X, int(n_landmarks), random_state)
        search = NeighborSearch(self.points, n_neighbors, algorithm="brute")
        width = None
        if common_width:
            every = -(-drawn.shape[0] // _N_WIDTH_SAMPLES)
            distances, _ = search.kneighbors(drawn[::every])
            nearest = distances[:, 0]
            farthest = _MAX_DISTANCE_RATIO * float(np.median(nearest))
            is_usual = nearest <= max(farthest, float(nearest.min()))
            width = float(distances[is_usual].mean()) * 2**0.5
        self.rows = partial(
            _weigh_landmarks, search, self.points.shape[0], X.dtype, width
        )
        B = self.rows(X)
        if max_parts is not None:
            B = _link_landmarks(B, X, search, int(max_parts))
        ones = np.ones(X.shape[0]) if counts is None else counts
        self._B = B
        self._weights = storage.safe_inverse(B.T @ ones.astype(X.dtype))
        self.similarity = Factored(B, self._weights)

    def project(self, P):
        """Return Q such that ``rows(X_new) @ Q`` equals the similarities of new samples times P.

        Parameters
        ----------
        P : ndarray of shape (n_samples, r)

        Returns
        -------
        ndarray of shape (n_landmarks, r)
        """
        return self._weights[:, None] * (self._B.T @ P)

    def between(self, X):
        """Return the similarities of new samples to the training samples, as a dense array.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_new, n_features)

        Returns
        -------
        ndarray of shape (n_new, n_samples)
        """
        weighted = storage.scaled_columns(self.rows(X), self._weights)
        return storage.as_dense(weighted @ self._B.T)


def _weigh_landmarks(search, n_landmarks, dtype, width, X):
    """Return the weights of the nearest landmarks of samples, (n_samples, n_landmarks).

    If `width` is None, each sample has its own width, the distance to the farthest of them.
    """

    def weigh(block):
        distances, nearest = search.kneighbors(X[block])
        # a width may be 0; use at least the rounding of the smallest distance
        info = np.finfo(dtype)
        rounding = distances.min(axis=1, keepdims=True) * info.eps
        least = np.maximum(info.tiny**0.5, rounding)
        widths = np.maximum(distances[:, -1:] if width is None else width, least)
        with np.errstate(over="ignore"):
            squares = (distances / widths) ** 2
        weights = np.exp(squares.min(axis=1, keepdims=True) - squares)  # not all 0
        weights /= weights.sum(axis=1, keepdims=True)
        return storage.csr_of_equal_rows(weights.astype(dtype), nearest, n_landmarks)

    blocks = list(map_blocks(weigh, X.shape[0]))
    return sp.csr_array(sp.vstack(blocks, format="csr"))


def _link_landmarks(B, X, search, max_parts):
    """Return the weights of landmarks, with links added until there are few enough components."""
    while True:
        # find the component of every sample and landmark, -1 for landmarks that no sample uses, by
        # joining the first landmark of a sample to its others
        first = B.indices[B.indptr[:-1]]
        ends = (np.repeat(first, np.diff(B.indptr)), B.indices)
        joined = sp.coo_array((np.ones(B.nnz, dtype=bool), ends), (B.shape[1],) * 2)
        _, component = connected_components(joined.tocsr(), directed=False)
        is_used = np.bincount(B.indices, minlength=B.shape[1]) > 0
        names, part = np.unique(component[first], return_inverse=True)
        part_of_point = np.where(is_used, np.searchsorted(names, component), -1)
        rows, columns = _find_links(X, part, search, part_of_point, max_parts)
        if not len(rows):
            return B
        # add a link with the smallest weight of the sample, and scale the weights to sum to 1
        rows, position = np.unique(rows, return_index=True)
        weights = np.minimum.reduceat(B.data, B.indptr[:-1])[rows]
        links = sp.csr_array((weights, (rows, columns[position])), B.shape)
        B = sp.csr_array(B + links)
        B = storage.scaled_rows(B, 1 / storage.row_sums(B))


def _choose_landmarks(X, n_landmarks, random_state):
    """Return the samples that landmarks are computed from, and the landmarks."""
    if X.shape[0] <= n_landmarks:
        return X, X
    order = make_rng(random_state).permutation(X.shape[0])
    drawn = X[np.sort(order[: 10 * n_landmarks])]  # more hardly move the landmarks
    points = X[np.sort(order[:n_landmarks])]
    for _ in range(_N_KMEANS_STEPS):
        with one_thread():
            nearest = pairwise_distances_argmin(drawn, points)
        # drop points without samples, so that one of several equal points is kept
        _, own = np.unique(nearest, return_inverse=True)
        E = storage.group_indicator(own, X.dtype)
        points = storage.scaled_rows(E.T @ drawn, 1 / np.sqrt(np.bincount(own)))
    return drawn, points


def _find_links(X, part, search, part_of_point, max_parts):
    """Return a link from every surplus component, the smallest ones, to the point nearest to it.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    part : ndarray of shape (n_samples,), int
        Component of every sample, from 0.
    search : NeighborSearch
        A search among points, which are samples or landmarks.
    part_of_point : ndarray of shape (n_points,), int
        Component of every point; -1 for points that may not be linked.
    max_parts : int
        Largest number of components. One call removes at least half of the surplus.

    Returns
    -------
    samples, points : ndarray of shape (n_links,), int
        Empty if there are few enough components.
    """
    sizes = np.bincount(part)
    smallest = np.argsort(sizes, kind="stable")[: max(len(sizes) - max_parts, 0)]
    links = []
    for own in smallest:
        members = np.flatnonzero(part == own)
        candidates = members[:: -(-len(members) // _N_LINK_CANDIDATES)]
        is_excluded = (part_of_point == own) | (part_of_point < 0)
        n_neighbors = int(is_excluded.sum()) + 1
        distances, nearest = search.kneighbors(X[candidates], n_neighbors)
        distances = np.where(is_excluded[nearest], np.inf, distances)
        sample, column = np.unravel_index(distances.argmin(), distances.shape)
        links.append((candidates[sample], nearest[sample, column]))
    return np.array(links, dtype=np.intp).reshape(-1, 2).T
