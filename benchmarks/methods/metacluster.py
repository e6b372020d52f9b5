"""NMFMetaCluster with its three ways to cluster the clusters of the runs, which see X itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from nmfcluster._engine.run import Plan
from nmfcluster._engine.stopping import StopRule
from sklearn.exceptions import ConvergenceWarning

from benchmarks.methods import FEATURES, Method, timed
from nmfcluster import NMFMetaCluster
from nmfcluster.meta.divergence import Divergence
from nmfcluster.meta.objectives import Objective
from nmfcluster.meta.runs import Runs, run_many
from nmfcluster.meta.solvers import hals
from nmfcluster.meta.squares import MatrixObjective

VARIANTS = {"meta PTF": "ptf", "meta NMF": "nmf", "meta k-means": "kmeans"}
LOSSES: dict[str, Callable[[Any], Objective]] = {
    "kullback-leibler": Divergence,
    "frobenius": MatrixObjective,
}


def fit(X: Any, k: int, seed: int, **options: Any) -> NMFMetaCluster:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return NMFMetaCluster(k, random_state=seed, **options).fit(X)


def cluster(X: Any, extra: Any, k: int, seed: int, **options: Any) -> np.ndarray:
    return fit(X, k, seed, **options).labels_


def plan(k: int, solver: Callable[..., Any] = hals, **changed: Any) -> Plan:
    """Return the plan of an estimator with these parameters, and defaults otherwise."""
    options = NMFMetaCluster(k, **changed).get_params()
    stop = StopRule(options["max_iter"], options["tol"], of_loss=True)
    return Plan(k, solver, options["n_init"], stop, options["n_jobs"], say=lambda line: None)


def runs_of(
    X: Any, k: int, seed: int, loss: str, resample: str | float | None = None
) -> tuple[Objective, Runs]:
    """Return the objective of a fit, and the runs that it makes, the best first."""
    objective, n_runs = LOSSES[loss](X), NMFMetaCluster(k).n_estimators
    own, rng = plan(k, objective.run_solver), np.random.RandomState(seed)
    return objective, run_many(objective.for_runs(), own, np.full(n_runs, k), rng, resample)


METHODS = [
    Method(name, timed(partial(cluster, meta=meta, resample=None)), wants=FEATURES)
    for name, meta in VARIANTS.items()
]
