"""Similarities by way of a few landmarks: never formed, and connected where landmarks overlap."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

from nmfcluster._arrays import storage
from nmfcluster._arrays.blocks import by_rows
from nmfcluster._arrays.threads import one_thread
from nmfcluster.similarity.factored import Factored

_PER_LANDMARK = 10  # samples that k-means sees for each landmark: more move them hardly
_STEPS = 5  # of k-means: landmarks need not have converged
_LARGEST = 2**25  # entries of all centres, which are dense: 256 MiB; where samples are that wide,
# as documents are, some of them are the landmarks


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
        Centres of a few steps of k-means on ten times as many samples; or all samples, if there are
        not more.
    n_neighbors : int
        K; at most all landmarks.
    random_state : int, RandomState instance or None, default=0
        Determines the landmarks, where not all samples are.

    Attributes
    ----------
    points : {ndarray, sparse matrix} of shape (n_landmarks, n_features)
        The landmarks.

    References
    ----------
    .. [1] W. Liu, J. He, S.-F. Chang. Large graph construction for scalable semi-supervised
       learning. ICML 2010.
    """

    def __init__(self, X: Any, n_landmarks: int, n_neighbors: int, random_state: Any = 0) -> None:
        self.points = _points(X, n_landmarks, random_state)
        n_neighbors = min(n_neighbors, self.points.shape[0])
        self._search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute")
        self._search.fit(self.points)
        self._dtype = X.dtype
        self._B = self.rows(X)
        sums = storage.row_sums(self._B.T)
        self._weights = np.divide(1, sums, out=np.zeros_like(sums), where=sums > 0)

    @property
    def similarity(self) -> Factored:
        """The similarity of the samples to each other."""
        return Factored(self._B, self._weights)

    def rows(self, X: Any) -> sp.csr_array:
        """Return the weights of the landmarks of samples, (n_new, n_landmarks)."""
        blocks = by_rows(lambda block: self._rows(X[block]), X.shape[0])
        return sp.csr_array(sp.vstack(list(blocks), format="csr"))

    def _rows(self, X: Any) -> sp.csr_array:
        with one_thread():  # ties are broken by the number of threads
            distances, nearest = self._search.kneighbors(X)
        farthest = np.maximum(distances[:, -1:], np.finfo(self._dtype).tiny ** 0.5)
        weights = np.exp(-((distances / farthest) ** 2))
        weights /= weights.sum(axis=1, keepdims=True)
        ends = np.arange(len(nearest) + 1) * nearest.shape[1]
        shape = (len(nearest), self._search.n_samples_fit_)
        return sp.csr_array((weights.astype(self._dtype).ravel(), nearest.ravel(), ends), shape)

    def cross(self, X: Any, P: np.ndarray) -> np.ndarray:
        """Return the similarities of new samples to those of the fit, times P."""
        return np.asarray(self.rows(X) @ (self._weights[:, None] * (self._B.T @ P)))

    def between(self, X: Any) -> np.ndarray:
        """Return the similarities of new samples to those of the fit; hardly any is 0."""
        rows = storage.scaled(self.rows(X), np.ones(X.shape[0]), self._weights)
        return storage.as_dense(rows @ self._B.T)


def _points(X: Any, n_landmarks: int, random_state: Any) -> Any:
    """Return the landmarks: all samples, or centres of a few steps of k-means on some of them."""
    n_samples, n_features = X.shape
    if n_samples <= n_landmarks:
        return X
    rng = check_random_state(random_state)
    order = rng.permutation(n_samples)
    if n_landmarks * n_features > _LARGEST:
        return X[np.sort(order[:n_landmarks])]
    drawn = X[np.sort(order[: _PER_LANDMARK * n_landmarks])]
    means = KMeans(n_landmarks, init="random", n_init=1, max_iter=_STEPS, tol=0, random_state=rng)
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of samples that coincide
        return means.fit(drawn).cluster_centers_
