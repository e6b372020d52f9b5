"""MCLA: groups of similar base clusters, and the group that a sample is in most often.

Strehl and Ghosh (2002), "Cluster ensembles", Journal of Machine Learning Research 3. Spectral
clustering stands in for METIS, which cuts the graph of base clusters into parts of equal size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.methods import Method, timed
from benchmarks.methods.base_clusters import indicator
from benchmarks.methods.ncut import cut


def cluster(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    Z = indicator(table)
    shared, sizes = (Z.T @ Z).toarray(), Z.sum(axis=0)
    jaccard = shared / (sizes[:, None] + sizes - shared)
    groups = np.eye(k)[cut(jaccard, k, seed)]
    return ((Z @ groups) / groups.sum(axis=0)).argmax(axis=1)


METHODS = [Method("MCLA", timed(cluster))]
