"""Scikit-learn's spectral clustering of the dense co-association."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import SpectralClustering

from benchmarks.methods import Method, timed
from benchmarks.methods.kc import coassociation


def cluster(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    model = SpectralClustering(k, affinity="precomputed", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the graph may have separate blocks
        return model.fit_predict(coassociation(table, np.float64))


METHODS = [Method("spectral", timed(cluster))]
