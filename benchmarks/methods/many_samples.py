"""Scikit-learn's clusterers for many samples, each with its defaults.

HDBSCAN finds the number of clusters itself and calls samples noise: these have the label -1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN, Birch, MiniBatchKMeans

from benchmarks.methods import FEATURES, Method, timed


def cluster(X: Any, extra: Any, k: int, seed: int, make: Callable[[int, int], Any]) -> np.ndarray:
    return make(k, seed).fit_predict(X)


METHODS = [
    Method(name, timed(partial(cluster, make=make)), wants=FEATURES)
    for name, make in {
        "MiniBatchKMeans": lambda k, seed: MiniBatchKMeans(k, random_state=seed),
        "Birch": lambda k, seed: Birch(n_clusters=k),
        "HDBSCAN": lambda k, seed: HDBSCAN(copy=True),  # the default is about to change, and warns
    }.items()
]
