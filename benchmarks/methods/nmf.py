"""NMF of the features, the best of three random starts.

A sample belongs to its largest weight, for parts of length 1.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from benchmarks.methods import FEATURES, Method, timed


def cluster(X: Any, extra: Any, k: int, seed: int) -> np.ndarray:
    best, labels = np.inf, np.zeros(X.shape[0], dtype=int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for start in range(3):
            model = NMF(k, init="random", max_iter=500, random_state=3 * seed + start)
            weights = model.fit_transform(X)
            if model.reconstruction_err_ < best:
                best = model.reconstruction_err_
                lengths = np.linalg.norm(model.components_, axis=1)
                labels = (weights * lengths).argmax(axis=1)
    return labels


METHODS = [Method("NMF", timed(cluster), wants=FEATURES)]
