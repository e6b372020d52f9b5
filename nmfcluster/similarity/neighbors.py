"""Similarities between near samples alone: a sparse graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors

from nmfcluster._arrays import storage
from nmfcluster._arrays.threads import one_thread
from nmfcluster.similarity.links import nearest_outside

_FARTHEST = 60.0  # exponent of a neighbour's weight: beyond, it would be 0 in float32
_NARROWEST = 0.1  # of the mean local scale: samples that coincide would have none
_DENSE = 3_000  # samples in few dimensions, of more of which a graph mostly falls into parts
_SPARSE = 10_000  # samples such as texts, of more of which the search takes too long: n^2
_LINK = np.exp(-1)  # weight of a link between parts: that of a neighbour at the local scales


def few_enough(X: Any) -> bool:
    """Return whether a graph of neighbours of samples is likely to be connected, and found soon."""
    return X.shape[0] <= (_SPARSE if storage.is_sparse(X) else _DENSE)


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
    >>> from nmfcluster.similarity import NeighborGraph
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
        self._floor = _NARROWEST * float(distances[:, -1].mean()) or 1.0
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
            weights = np.full(len(rows), _LINK, self.array.dtype)
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
