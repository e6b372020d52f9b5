"""Base clusters weighted by how little the other partitions split them.

Huang, Wang and Lai (2018), "Locally weighted ensemble clustering", IEEE Trans. Cybernetics 48: LWEA
is average linkage of the weighted co-association, LWGP the transfer cut of the weighted graph of
samples and base clusters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.methods import Method, timed
from benchmarks.methods.base_clusters import indicator
from benchmarks.methods.linkage import average_linkage, distances
from benchmarks.methods.transfer_cut import cut

THETA = 0.4


def cluster_index(Z: sp.csr_array, n_partitions: int) -> np.ndarray:
    """Return the index (ECI) of every base cluster, ``exp(-H / (theta T))``.

    H is its entropy over the ensemble: that of the shares in which a partition splits it, summed
    over the partitions. An index of 1 says that none does.
    """
    sizes = Z.sum(axis=0)
    shared = (Z.T @ Z).tocoo()
    shares = shared.data / sizes[shared.row]
    terms = -shares * np.log2(shares)
    entropy = np.bincount(shared.row, weights=terms, minlength=len(sizes))
    return np.exp(-entropy / (THETA * n_partitions))


def evidence(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    Z, n_partitions = indicator(table), table.shape[1]
    weights = cluster_index(Z, n_partitions)
    return average_linkage(distances(Z, n_partitions, weights), len(table), k)


def graph(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    Z = indicator(table)
    return cut(sp.csr_array(Z * cluster_index(Z, table.shape[1])), k, seed)


METHODS = [Method("LWEA", timed(evidence)), Method("LWGP", timed(graph))]
