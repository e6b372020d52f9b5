"""MCLA: groups of similar base clusters, and the group that a sample is in most often.

Strehl and Ghosh (2002), "Cluster ensembles", Journal of Machine Learning Research 3. Spectral
clustering stands in for METIS, which cuts the graph of base clusters into parts of equal size.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import SpectralClustering

from benchmarks.methods import Method, timed
from benchmarks.methods.base_clusters import indicator


def cluster(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    Z = indicator(table)
    shared, sizes = (Z.T @ Z).toarray(), Z.sum(axis=0)
    jaccard = shared / (sizes[:, None] + sizes - shared)
    model = SpectralClustering(k, affinity="precomputed", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the graph may have separate blocks
        groups = np.eye(k)[model.fit_predict(jaccard)]
    return ((Z @ groups) / groups.sum(axis=0)).argmax(axis=1)


METHODS = [Method("MCLA", timed(cluster))]
