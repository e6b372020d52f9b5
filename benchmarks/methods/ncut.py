"""Normalised cut: scikit-learn's spectral clustering of similarities of the features."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import SpectralClustering

from benchmarks.methods import FEATURES, Method, timed
from nmfcluster.affinity import make_affinity

#: suffix of a name: affinity of the features, that of Chen et al. (2007) or of SSNMFClusterer
AFFINITIES = {"": "linear", ", graph": "nearest_neighbors"}


def similarity(X: Any, affinity: str) -> np.ndarray:
    return np.asarray(make_affinity(X, affinity).similarity.toarray())


def cut(W: np.ndarray, k: int, seed: int) -> np.ndarray:
    return _quietly(SpectralClustering(k, affinity="precomputed", random_state=seed), W)


def _quietly(model: SpectralClustering, X: Any) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a graph may fall apart
        return model.fit_predict(X)


def cluster(X: Any, extra: Any, k: int, seed: int, affinity: str = "linear") -> np.ndarray:
    return cut(similarity(X, affinity), k, seed)


def neighbours(X: Any, extra: Any, k: int, seed: int) -> np.ndarray:
    return _quietly(SpectralClustering(k, affinity="nearest_neighbors", random_state=seed), X)


METHODS = [
    Method(f"NCut{suffix}", timed(partial(cluster, affinity=affinity)), wants=FEATURES)
    for suffix, affinity in AFFINITIES.items()
]
METHODS.append(Method("SpectralClustering, neighbours", timed(neighbours), wants=FEATURES))
