"""K-means on the features: the best of one, three or ten starts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.methods import FEATURES, Method, timed


def cluster(X: Any, extra: Any, k: int, seed: int, **options: Any) -> np.ndarray:
    return KMeans(k, random_state=seed, **options).fit_predict(X)


METHODS = [
    Method(name, timed(partial(cluster, **options)), wants=FEATURES)
    for name, options in {
        "k-means": {"init": "random", "n_init": 1},
        "k-means, best of three": {"init": "random", "n_init": 3},
        "KMeans(n_init=10)": {"n_init": 10},
    }.items()
]
