"""Similarities by way of a few landmarks: never formed, and connected where landmarks overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from nmfcluster._arrays import storage
from nmfcluster._arrays.blocks import by_rows
from nmfcluster._arrays.threads import one_thread
from nmfcluster.similarity.factored import Factored

_ALL = 2_000  # samples up to which each of them is a landmark
_PER_LANDMARK = 10  # samples that k-means sees for each landmark: more move them hardly
_STEPS = 5  # of k-means: landmarks need not have converged


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
        Centres of a few steps of k-means; all samples, if there are not more than 2,000.
    n_neighbors : int
        K; at most all landmarks.

    References
    ----------
    .. [1] W. Liu, J. He, S.-F. Chang. Large graph construction for scalable semi-supervised
       learning. ICML 2010.
    """

    def __init__(self, X: Any, n_landmarks: int, n_neighbors: int) -> None:
        points = _points(X, n_landmarks)
        self._search = NearestNeighbors(
            n_neighbors=min(n_neighbors, points.shape[0]), algorithm="brute"
        ).fit(points)
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


def _points(X: Any, n_landmarks: int) -> Any:
    """Return the landmarks: all samples, or centres of a few steps of k-means on some of them."""
    n_samples = X.shape[0]
    if n_samples <= max(_ALL, n_landmarks):
        return X
    rng = np.random.RandomState(0)
    size = min(n_samples, _PER_LANDMARK * n_landmarks)
    drawn = X[np.sort(rng.permutation(n_samples)[:size])]
    means = KMeans(n_landmarks, init="random", n_init=1, max_iter=_STEPS, tol=0, random_state=0)
    with one_thread():
        return means.fit(drawn).cluster_centers_
