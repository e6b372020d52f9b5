"""K-means on the features: one, three or ten starts, the best of which is kept."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.methods import FEATURES, Method, timed


def cluster(X: Any, given: Any, k: int, seed: int, **options: Any) -> np.ndarray:
    return KMeans(k, random_state=seed, **options).fit_predict(X)


METHODS = [
    Method(name, timed(partial(cluster, **options)), wants=FEATURES)
    for name, options in {
        "k-means": {"init": "random", "n_init": 1},
        "k-means, best of three": {"init": "random", "n_init": 3},
        "KMeans(n_init=10)": {"n_init": 10},
    }.items()
]
