"""KC of Li, Ding and Jordan (2007): k-means on the rows of the consensus matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.methods import Method, timed


def coassociation(table: np.ndarray, dtype: Any = np.float32) -> np.ndarray:
    """Return the dense (n, n) co-association of complete partitions."""
    M = np.zeros((len(table), len(table)), dtype=dtype)
    for labels in table.T:
        M += labels[:, None] == labels[None, :]
    return M / table.shape[1]


def cluster(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    M = coassociation(table)
    return KMeans(k, init="random", n_init=1, random_state=seed).fit_predict(M)


METHODS = [Method("KC", timed(cluster))]
