"""How many fits' time a choice of the number of clusters takes, for every estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks import report
from nmfcluster import (
    NMFConsensus,
    NMFMetaCluster,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SSNMFClusterer,
)
from nmfcluster.model_selection import choose_n_clusters
from nmfcluster.partitions import base_partitions

MOST = 10  # fits' time, target
REPEATS = 3
PAIRS, PARTITIONS, GAMMA = 200, 20, 1e-3
CAPTION = (
    f"Time: seconds on the digits with the default candidates, medians of {REPEATS} repeats of a "
    "fit with 10 clusters and of the call in turn; constraints are 200 pairs, partitions 20 of "
    "k-means, similarities Gaussian kernels, sources those of the two halves of a picture."
)


def measure(quick: bool) -> tuple[list[report.Row], str]:
    """Return a row for every estimator and kind of input, and whether the target is met."""
    X, y = load_digits(return_X_y=True)
    k = 10
    if quick:
        X, y, k = X[y < 3][:60], y[y < 3][:60], 3
    rows = [_row(name, k, *case, quick) for name, case in _cases(X, y, k).items()]
    missed = [row["estimator"] for row in rows if row["times a fit"] > MOST]
    told = f"missed by {', '.join(missed)}" if missed else "met by all"
    return rows, f"A choice is to take the time of {MOST} fits at most: {told}."


def _cases(X: np.ndarray, y: np.ndarray, k: int) -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    pairs = PairwiseConstraints.from_labels(y, n_pairs=PAIRS, random_state=0)
    table = base_partitions(X, n_estimators=PARTITIONS, n_clusters=k, random_state=0).labels
    half = X.shape[1] // 2
    sources = [rbf_kernel(part, gamma=GAMMA) for part in (X[:, :half], X[:, half:])]
    partitions = NMFConsensus(k, affinity="partitions", random_state=0)
    similarities = NMFConsensus(k, affinity="precomputed", random_state=0)
    constrained = SSNMFClusterer(k, random_state=0)
    return {
        "NMFConsensus, features": (NMFConsensus(k, random_state=0), X, {}),
        "NMFConsensus, partitions": (partitions, table, {}),
        "NMFConsensus, similarities": (similarities, rbf_kernel(X, gamma=GAMMA), {}),
        "SSNMFClusterer, features": (constrained, X, {}),
        "SSNMFClusterer, constraints": (constrained, X, {"constraints": pairs}),
        "SimilarityFusionNMF": (SimilarityFusionNMF(k, random_state=0), np.dstack(sources), {}),
        "NMFMetaCluster": (NMFMetaCluster(k, random_state=0), X, {}),
    }


def _row(
    name: str, k: int, estimator: Any, X: Any, fit_params: dict[str, Any], quick: bool
) -> report.Row:
    fits, calls = [], []
    with warnings.catch_warnings():  # of candidates that fail: they take time, too
        warnings.simplefilter("ignore", UserWarning)
        for _ in range(1 if quick else REPEATS):
            fits.append(_seconds(lambda: estimator.fit(X, **fit_params))[0])
            options = {"fit_params": fit_params or None, "random_state": 0}
            candidates = range(1, 4 if quick else 16)
            seconds, found = _seconds(
                lambda: choose_n_clusters(estimator, X, candidates, **options)  # noqa: B023
            )
            calls.append(seconds)
    fit, call = float(np.median(fits)), float(np.median(calls))
    good = ", ".join(map(str, found.candidates[found.as_good]))
    return {
        "estimator": name,
        "by": found.method,
        "chosen": found.n_clusters_,
        "as good": good,
        "fit, s": fit,
        "call, s": call,
        "times a fit": call / fit,
    }


def _seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    began = perf_counter()
    result = call()
    return perf_counter() - began, result
