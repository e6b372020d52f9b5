"""The clusters of all base partitions, as the methods of the literature on ensembles see them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans

N_INIT = 3  # starts of the k-means that ends a spectral method


def indicator(table: np.ndarray) -> sp.csr_array:
    """Return Z, (n, number of base clusters): 1 where a sample is in a cluster; none is empty."""
    codes = [np.unique(labels, return_inverse=True)[1] for labels in table.T]
    firsts = np.cumsum([0, *(own.max() + 1 for own in codes)])
    columns = np.stack(codes, axis=1) + firsts[:-1]
    starts = np.arange(len(table) + 1) * table.shape[1]
    shape = (len(table), int(firsts[-1]))
    return sp.csr_array((np.ones(columns.size), columns.ravel(), starts), shape=shape)


def leading_eigenvectors(M: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k largest eigenvalues of a small symmetric matrix, falling, and their vectors."""
    values, vectors = np.linalg.eigh(M)
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def cluster_directions(rows: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Cluster rows scaled to length 1 by k-means."""
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return KMeans(k, n_init=N_INIT, random_state=seed).fit_predict(unit)
