"""SSNMFClusterer with its defaults, on text, or of similarities edited as in Chen et al."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.methods import CONSTRAINTS, FEATURES, Method, timed
from benchmarks.methods.ncut import similarity
from benchmarks.methods.ss_ncut import edited
from nmfcluster import SSNMFClusterer
from nmfcluster.constraints import PairwiseConstraints

VARIANTS: dict[str, dict[str, Any]] = {
    "SSNMF": {},
    "SSNMF, not spread": {"propagation": None, "beta": 1.0},  # the defaults of old
    "SSNMF, cosine": {"affinity": "cosine", "normalize": True},
    "SSNMF, replace": {"affinity": "precomputed", "normalize": False},  # X X', edited
}

WITHOUT = "SSNMF without pairs"


def fit(
    X: Any, pairs: PairwiseConstraints | None, k: int, seed: int, **options: Any
) -> SSNMFClusterer:
    if options.get("affinity") == "precomputed":
        edits = PairwiseConstraints(X.shape[0]) if pairs is None else pairs
        X, pairs = edited(similarity(X, "linear"), edits), None
    model = SSNMFClusterer(k, random_state=seed, **options)
    with warnings.catch_warnings():
        # a warning that constraints may contradict each other: those of classes do not
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, constraints=pairs)


def cluster(
    X: Any, pairs: PairwiseConstraints | None, k: int, seed: int, **options: Any
) -> np.ndarray:
    return fit(X, pairs, k, seed, **options).labels_


METHODS = [
    Method(name, timed(partial(cluster, **options)), wants=CONSTRAINTS)
    for name, options in VARIANTS.items()
]
METHODS.append(Method(WITHOUT, timed(cluster), wants=FEATURES))
