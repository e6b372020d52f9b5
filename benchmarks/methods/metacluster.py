"""NMFMetaCluster with its defaults, and with other ways to cluster the clusters of the runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.methods import FEATURES, Method, timed
from nmfcluster import NMFMetaCluster
from nmfcluster._engine.factorize import Plan
from nmfcluster.meta.solvers import hals

VARIANTS = {"meta PTF": "ptf", "meta NMF": "nmf", "meta k-means": "kmeans"}


def fit(X: Any, k: int, seed: int, **options: Any) -> NMFMetaCluster:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return NMFMetaCluster(k, random_state=seed, **options).fit(X)


def cluster(X: Any, given: Any, k: int, seed: int, **options: Any) -> np.ndarray:
    return fit(X, k, seed, **options).labels_


def plan(k: int, solver: Callable[..., Any] = hals, **changed: Any) -> Plan:
    """Return the estimator's defaults as its parts take them."""
    given = NMFMetaCluster(k).get_params()
    defaults: dict[str, Any] = {
        name: given[name] for name in ("n_init", "max_iter", "tol", "n_jobs")
    }
    return Plan(k, solver, **(defaults | changed), say=lambda line: None, of_loss=True)


METHODS = [
    Method(name, timed(partial(cluster, meta=meta)), wants=FEATURES)
    for name, meta in VARIANTS.items()
]
