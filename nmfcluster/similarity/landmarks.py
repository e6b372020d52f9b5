"""Similarities by way of a few landmarks: never formed, and connected where landmarks overlap."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors

from nmfcluster._utils import storage
from nmfcluster._utils.linalg import map_blocks
from nmfcluster._utils.parallel import one_thread
from nmfcluster._utils.validation import make_rng
from nmfcluster.similarity.neighbors import nearest_outside
from nmfcluster.similarity.operators import Factored

_STEPS = 5  # of k-means: landmarks need not have converged
_FAR = 50.0  # times the median distance to the nearest landmark: no such sample has a say in widths
_MEASURED = (
    2_000  # samples whose distances make the common width: a mean of 10,000 distances
)


class Landmarks:
    r"""How near samples are to their nearest landmarks.

    A sample has a weight for each of its K nearest landmarks,
    :math:`b_{ij} \propto \exp(-d_{ij}^2 / d_{iK}^2)`, which sum to 1: its own farthest landmark
    sets the width. The similarity of samples is :math:`B \Lambda^{-1} B'` with the sums
    :math:`\Lambda` of the columns of B [1]_: how likely a walk from one sample to a landmark and
    back ends at the other. Its rows sum to 1, and no eigenvalue is negative. Distances are
    Euclidean: between rows of length 1, as those of tf-idf are, they are in the order of cosines.

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n_samples, n_features)
    n_landmarks : int
        Centres of a few steps of k-means on ten times as many samples, fewer where those coincide;
        or all samples, if there are not more.
    n_neighbors : int
        K; at most all landmarks.
    random_state : int, RandomState, Generator or None, default=0
        Determines the landmarks, where not all samples are.
    max_parts : int, default=None
        Into how many parts that nothing connects the samples may fall. Where there are more, a
        sample of each smaller one is given the nearest landmark of another, with the weight of its
        farthest; None: into any number.
    common_width : bool, default=False
        Whether one width, the root of 2 times the mean distance of a sample to its landmarks, is
        taken for all samples [2]_, in the place of the distance to its own farthest; of samples
        that are not a multiple as far from their nearest landmark as others are.
    counts : ndarray of shape (n_samples,), int, default=None
        How many samples each row stands for in the sums; 1 by default.

    Attributes
    ----------
    points : {ndarray, sparse matrix} of shape (n_landmarks, n_features)
        The landmarks.
    similarity : Factored
        That of the samples to each other.
    rows : callable
        ``rows(X_new)`` returns the weights of samples, csr_array of shape (n_new, n_landmarks).

    References
    ----------
    .. [1] W. Liu, J. He, S.-F. Chang. Large graph construction for scalable semi-supervised
       learning. ICML 2010.
    .. [2] D. Huang, C.-D. Wang, J.-S. Wu, J.-H. Lai, C.-K. Kwoh. Ultra-scalable spectral clustering
       and ensemble clustering. IEEE Transactions on Knowledge and Data Engineering 32, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.similarity.landmarks import Landmarks
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
        X: Any,
        n_landmarks: int,
        n_neighbors: int,
        random_state: Any = 0,
        max_parts: int | None = None,
        common_width: bool = False,
        counts: np.ndarray | None = None,
    ) -> None:
        # as Python's: numpy's small ints wrap around
        drawn, self.points = _points(X, int(n_landmarks), random_state)
        n_neighbors = min(int(n_neighbors), self.points.shape[0])
        search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(
            self.points
        )
        width = None
        if common_width:
            with one_thread():
                distances, _ = search.kneighbors(
                    drawn[:: -(-drawn.shape[0] // _MEASURED)]
                )
            nearest = distances[:, 0]
            usual = nearest <= max(
                _FAR * float(np.median(nearest)), float(nearest.min())
            )
            width = float(distances[usual].mean()) * 2**0.5
        self.rows = _Weights(search, X.dtype, width)
        self._B = self.rows(X)
        if max_parts is not None:
            self._link(X, int(max_parts))
        ones = np.ones(X.shape[0]) if counts is None else counts
        self._weights = storage.safe_inverse(self._B.T @ ones.astype(X.dtype))
        self.similarity = Factored(self._B, self._weights)

    def _link(self, X: Any, max_parts: int) -> None:
        while True:
            part, part_of_point = _parts(self._B)
            rows, columns = nearest_outside(
                X, part, self.rows.search, part_of_point, max_parts
            )
            if not len(rows):
                return
            rows, first = np.unique(rows, return_index=True)
            weights = np.minimum.reduceat(self._B.data, self._B.indptr[:-1])[rows]
            links = sp.csr_array((weights, (rows, columns[first])), self._B.shape)
            grown = sp.csr_array(self._B + links)
            self._B = storage.scaled_rows(grown, 1 / storage.row_sums(grown))

    def onto(self, P: np.ndarray) -> Callable[[Any], np.ndarray]:
        """Return a function of new samples: their similarities to those of the fit, times P.

        Parameters
        ----------
        P : ndarray of shape (n_samples, r)

        Returns
        -------
        callable
            It keeps the landmarks and r numbers for each of them.
        """
        return partial(_product, self.rows, self._weights[:, None] * (self._B.T @ P))

    def between(self, X: Any) -> np.ndarray:
        """Return the similarities of new samples to those of the fit; hardly any is 0.

        Parameters
        ----------
        X : {ndarray, sparse matrix} of shape (n_new, n_features)

        Returns
        -------
        ndarray of shape (n_new, n_samples)
        """
        return storage.as_dense(
            storage.scaled_columns(self.rows(X), self._weights) @ self._B.T
        )


@dataclass(frozen=True)
class _Weights:
    """The weights that samples have for their nearest landmarks."""

    search: NearestNeighbors
    dtype: np.dtype
    width: float | None  # None: the distance to the farthest of them

    def __call__(self, X: Any) -> sp.csr_array:
        """Return them, (n_new, n_landmarks)."""
        blocks = map_blocks(lambda block: self._of_block(X[block]), X.shape[0])
        return sp.csr_array(sp.vstack(list(blocks), format="csr"))

    def _of_block(self, X: Any) -> sp.csr_array:
        with one_thread():  # ties are broken by the number of threads
            distances, nearest = self.search.kneighbors(X)
        info = np.finfo(
            self.dtype
        )  # a width may be 0: less than rounding of the nearest is that
        least = np.maximum(
            info.tiny**0.5, distances.min(axis=1, keepdims=True) * info.eps
        )
        widths = np.maximum(
            distances[:, -1:] if self.width is None else self.width, least
        )
        with np.errstate(over="ignore"):
            squares = (distances / widths) ** 2
        weights = np.exp(squares.min(axis=1, keepdims=True) - squares)  # not all 0
        weights /= weights.sum(axis=1, keepdims=True)
        return storage.csr_of_equal_rows(
            weights.astype(self.dtype), nearest, self.search.n_samples_fit_
        )


def _product(rows: _Weights, C: np.ndarray, X: Any) -> np.ndarray:
    return np.asarray(rows(X) @ C)


def _parts(B: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return the part of every sample and landmark that samples on landmarks form; -1: on none."""
    first = B.indices[
        B.indptr[:-1]
    ]  # a landmark of every sample, which joins it with its others
    joined = (np.repeat(first, np.diff(B.indptr)), B.indices)
    graph = sp.coo_array((np.ones(B.nnz, dtype=bool), joined), (B.shape[1], B.shape[1]))
    _, part = connected_components(graph.tocsr(), directed=False)
    used = np.bincount(B.indices, minlength=B.shape[1]) > 0
    names, own = np.unique(part[first], return_inverse=True)
    return own, np.where(used, np.searchsorted(names, part), -1)


def _points(X: Any, n_landmarks: int, random_state: Any) -> tuple[Any, Any]:
    """Return samples, and the landmarks: all of them, or centres of a few steps of k-means."""
    if X.shape[0] <= n_landmarks:
        return X, X
    order = make_rng(random_state).permutation(X.shape[0])
    drawn = X[np.sort(order[: 10 * n_landmarks])]  # more hardly move the landmarks
    points = X[np.sort(order[:n_landmarks])]
    for _ in range(_STEPS):
        with one_thread():
            nearest = pairwise_distances_argmin(drawn, points)
        own = np.unique(nearest, return_inverse=True)[
            1
        ]  # of points that coincide one is used
        E = storage.group_indicator(own, X.dtype)
        points = storage.scaled_rows(E.T @ drawn, 1 / np.sqrt(np.bincount(own)))
    return drawn, points
