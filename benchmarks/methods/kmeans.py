"""K-means on the features: a single run from random samples, and scikit-learn's best of ten."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.methods import Method, timed


def single(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    return KMeans(k, init="random", n_init=1, random_state=seed).fit_predict(X)


def best_of_ten(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    return KMeans(k, n_init=10, random_state=seed).fit_predict(X)


METHODS = [Method("k-means", timed(single)), Method("KMeans(n_init=10)", timed(best_of_ten))]
