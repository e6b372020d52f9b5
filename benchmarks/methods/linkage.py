"""Evidence accumulation: average linkage on the co-association (Fred and Jain, 2005)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import linkage
from scipy.sparse.csgraph import connected_components

from benchmarks.methods import Method, timed
from benchmarks.methods.base_clusters import indicator

ROWS = 500  # of the similarity that are held as a whole


def distances(
    Z: sp.csr_array, n_partitions: int, weights: np.ndarray | float = 1.0
) -> np.ndarray:
    """Return ``1 - Z diag(weights) Z' / T`` of all pairs, as scipy wants them: n (n - 1) / 2.

    They and scipy's copy of them take 3.2 GB for 20,000 samples.
    """
    n = Z.shape[0]
    condensed, end = np.empty(n * (n - 1) // 2), 0
    weighted, others = sp.csr_array(Z * weights), Z.T.tocsr()
    for first in range(0, n, ROWS):
        block = 1 - (weighted[first : first + ROWS] @ others).toarray() / n_partitions
        for i, row in enumerate(block, first + 1):
            begin, end = end, end + n - i
            condensed[begin:end] = row[i:]
    return condensed


def average_linkage(condensed: np.ndarray, n: int, k: int) -> np.ndarray:
    """Merge until k clusters are left."""
    merges = linkage(condensed, "average")[: n - k, :2].astype(int)
    # where the numbers of merges begin
    parents = np.repeat(np.arange(n, n + len(merges)), 2)
    size = n + len(merges)
    edges = sp.csr_array(
        (np.ones(len(parents)), (parents, merges.ravel())), shape=(size, size)
    )
    return connected_components(edges, directed=False)[1][:n]


def cluster(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    return average_linkage(distances(indicator(table), table.shape[1]), len(table), k)


METHODS = [Method("average linkage", timed(cluster))]
