"""Scikit-learn's LabelSpreading, told the classes of some samples: it is no clustering."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.semi_supervised import LabelSpreading

from benchmarks.methods import LABELS, Method, timed

N_NEIGHBORS = 10  # those of SSNMFClusterer's graph


def cluster(X: Any, known: np.ndarray, k: int, seed: int) -> np.ndarray:
    model = LabelSpreading(kernel="knn", n_neighbors=N_NEIGHBORS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a part of the graph may hold no known class
        return model.fit(X, known).transduction_


METHODS = [Method("LabelSpreading", timed(cluster), wants=LABELS)]
