"""Normalised cut: scikit-learn's spectral clustering of similarities of the features."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import SpectralClustering

from benchmarks.methods import FEATURES, Method, timed
from nmfcluster.affinity import make_affinity

#: suffix of a name: affinity of the features, that of Chen et al. (2007) or of SSNMFClusterer
AFFINITIES = {"": "linear", ", graph": "nearest_neighbors"}


def similarity(X: Any, affinity: str) -> np.ndarray:
    return np.asarray(make_affinity(X, affinity).similarity.toarray())


def cut(W: np.ndarray, k: int, seed: int, labels: str = "kmeans") -> np.ndarray:
    model = SpectralClustering(
        k, affinity="precomputed", assign_labels=labels, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a graph may fall apart
        return model.fit_predict(W)


def cluster(X: Any, extra: Any, k: int, seed: int) -> np.ndarray:
    return cut(similarity(X, "linear"), k, seed)


METHODS = [Method("NCut", timed(cluster), wants=FEATURES)]
