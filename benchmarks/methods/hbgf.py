"""HBGF: spectral partition of the graph of samples and base clusters, both at once.

Fern and Brodley (2004), "Solving cluster ensemble problems by bipartite graph partitioning", ICML.
The leading eigenvectors of the normalised graph are the singular vectors of its one block; samples
and base clusters are clustered together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.methods import Method, timed
from benchmarks.methods.base_clusters import (
    cluster_directions,
    indicator,
    leading_eigenvectors,
)


def cluster(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    Z, n_partitions = indicator(table), table.shape[1]
    block = sp.csr_array(Z * (1 / np.sqrt(n_partitions * Z.sum(axis=0))))
    squares, V = leading_eigenvectors((block.T @ block).toarray(), k)
    U = (block @ V) / np.sqrt(np.maximum(squares, 1e-12))
    return cluster_directions(np.vstack([U, V]), k, seed)[: len(table)]


METHODS = [Method("HBGF", timed(cluster))]
