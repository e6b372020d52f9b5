"""SSNMFClusterer with its defaults, on text, or as in Chen et al."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.methods import CONSTRAINTS, Method, timed
from nmfcluster import SSNMFClusterer
from nmfcluster.constraints import PairwiseConstraints

VARIANTS: dict[str, dict[str, Any]] = {
    "SSNMF": {},
    "SSNMF, not spread": {"propagation": None, "beta": 1.0},  # the defaults of old
    "SSNMF, cosine": {"affinity": "cosine", "normalize": True},
    "SSNMF, replace": {
        "affinity": "linear",
        "normalize": False,
        "hard_must_link": False,
        "constraint_mode": "replace",
    },
}


def fit(
    X: Any, pairs: PairwiseConstraints | None, k: int, seed: int, **options: Any
) -> SSNMFClusterer:
    model = SSNMFClusterer(k, random_state=seed, **options)
    with warnings.catch_warnings():
        # a warning that constraints may contradict each other: those of classes do not
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, constraints=pairs)


def cluster(X: Any, pairs: PairwiseConstraints, k: int, seed: int, **options: Any) -> np.ndarray:
    return fit(X, pairs, k, seed, **options).labels_


METHODS = [
    Method(name, timed(partial(cluster, **options)), wants=CONSTRAINTS)
    for name, options in VARIANTS.items()
]
