"""NMFMetaCluster with its two ways to cluster the clusters of the runs, which see X itself."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.methods import FEATURES, Method, timed
from nmfcluster import NMFMetaCluster

VARIANTS = {"meta PTF": "ptf", "meta NMF": "nmf"}


def fit(X: Any, k: int, seed: int, **options: Any) -> NMFMetaCluster:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return NMFMetaCluster(k, random_state=seed, **options).fit(X)


def cluster(X: Any, extra: Any, k: int, seed: int, **options: Any) -> np.ndarray:
    return fit(X, k, seed, **options).labels_


METHODS = [
    Method(name, timed(partial(cluster, meta=meta, resample=None)), wants=FEATURES)
    for name, meta in VARIANTS.items()
]
