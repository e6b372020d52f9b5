"""The clusters of all base partitions, as the methods of the literature on ensembles see them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans

from nmfcluster._arrays.labels import cluster_counts
from nmfcluster._arrays.labels import indicator as indicator_of_codes

N_INIT = 3  # starts of the k-means that ends a spectral method


def indicator(table: np.ndarray) -> sp.csr_array:
    """Return Z, (n, number of base clusters): 1 where a sample is in a cluster; none is empty."""
    Z = indicator_of_codes(table, cluster_counts(table))
    kept = np.flatnonzero(Z.sum(axis=0))
    return Z if len(kept) == Z.shape[1] else sp.csr_array(Z[:, kept])


def leading_eigenvectors(M: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k largest eigenvalues of a small symmetric matrix, falling, and their vectors."""
    values, vectors = np.linalg.eigh(M)
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def cluster_directions(rows: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Cluster rows scaled to length 1 by k-means."""
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return KMeans(k, n_init=N_INIT, random_state=seed).fit_predict(unit)
