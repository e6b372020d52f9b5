"""Similarities between near samples alone: a sparse graph, and links between its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from nmfcluster._arrays import storage
from nmfcluster._arrays.jobs import one_thread

_FARTHEST = 60.0  # exponent of a neighbour's weight: beyond, it would be 0 in float32


def few_enough(X: Any) -> bool:
    """Return whether a graph of neighbours of samples is likely to be connected, and found soon.

    Of more samples in few dimensions it mostly falls into parts. Of more that are sparse, such as
    texts, the search takes too long: O(n^2).
    """
    return X.shape[0] <= (10_000 if storage.is_sparse(X) else 3_000)


class NeighborGraph:
    r"""A graph of the nearest neighbours of samples, with weights by local scales.

    Where one of i and j is among the K nearest of the other, their similarity is
    :math:`\exp(-\|x_i - x_j\|^2 / (s_i s_j))`, or exp(-60) if that is larger; elsewhere and for
    i = j it is 0. :math:`s_i` is the distance from i to the farthest of its neighbours [1]_.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    n_neighbors : int
        K, of at most n_samples - 1 others.
    n_jobs : int, default=None
        Number of jobs that look for neighbours.
    max_parts : int, default=None
        Into how many parts that nothing connects the graph may fall. Where there are more, the
        smaller ones are linked to the samples nearest to them, so that none is left alone; None:
        into any number.

    Attributes
    ----------
    array : csr_array of shape (n_samples, n_samples)
        The similarities.

    References
    ----------
    .. [1] L. Zelnik-Manor, P. Perona. Self-tuning spectral clustering. NIPS 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.similarity.neighbors import NeighborGraph
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> NeighborGraph(X, 1).array.toarray().round(2)
    array([[0.  , 0.37, 0.  , 0.  ],
           [0.37, 0.  , 0.  , 0.  ],
           [0.  , 0.  , 0.  , 0.37],
           [0.  , 0.  , 0.37, 0.  ]])
    >>> NeighborGraph(X, 1, max_parts=1).array.toarray().round(2)
    array([[0.  , 0.37, 0.  , 0.  ],
           [0.37, 0.  , 0.37, 0.  ],
           [0.  , 0.37, 0.  , 0.37],
           [0.  , 0.  , 0.37, 0.  ]])
    """

    def __init__(
        self, X: Any, n_neighbors: int, n_jobs: int | None = None, max_parts: int | None = None
    ) -> None:
        n_neighbors = min(n_neighbors, X.shape[0] - 1)
        self._search = NearestNeighbors(n_neighbors=n_neighbors, n_jobs=n_jobs).fit(X)
        self._X = X
        with one_thread():  # ties are broken by the number of threads
            distances, nearest = self._search.kneighbors()
        # at least a tenth of the mean scale: samples that coincide would have none
        self._floor = 0.1 * float(distances[:, -1].mean()) or 1.0
        self._scales = np.maximum(distances[:, -1], self._floor)
        W = storage.knn_weights(distances, nearest, self._scales, self._scales, _FARTHEST)
        W = W.astype(X.dtype)
        self.array = W.maximum(W.T)
        if max_parts is not None:
            self._link(int(max_parts))

    def _link(self, max_parts: int) -> None:
        while True:
            _, part = connected_components(self.array, directed=False)
            rows, columns = nearest_outside(self._X, part, self._search, part, max_parts)
            if not len(rows):
                return
            # as heavy as a neighbour at the local scales
            weights = np.full(len(rows), np.exp(-1), self.array.dtype)
            links = sp.csr_array((weights, (rows, columns)), self.array.shape)
            self.array = self.array.maximum(links.maximum(links.T))

    def between(self, X: Any) -> sp.csr_array:
        """Return the weights of the neighbours of new samples.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_new, n_features)

        Returns
        -------
        csr_array of shape (n_new, n_samples)
        """
        X = storage.stored_like(X, self._X)  # the trees of the search want dense arrays
        with one_thread():
            distances, nearest = self._search.kneighbors(X)
        own = np.maximum(distances[:, -1], self._floor)
        W = storage.knn_weights(distances, nearest, own, self._scales, _FARTHEST)
        return W.astype(self._X.dtype)


def nearest_outside(
    X: Any, part: np.ndarray, search: NearestNeighbors, part_of_point: np.ndarray, max_parts: int
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
        asked = members[:: -(-len(members) // 100)]  # more would find hardly nearer ones
        useless = (part_of_point == own) | (part_of_point < 0)
        with one_thread():  # ties are broken by the number of threads
            distances, nearest = search.kneighbors(X[asked], int(useless.sum()) + 1)
        distances = np.where(useless[nearest], np.inf, distances)
        sample, column = np.unravel_index(distances.argmin(), distances.shape)
        link[:] = asked[sample], nearest[sample, column]
    return links[:, 0], links[:, 1]
