"""NMFConsensus of partitions, with its defaults and in the printed form, and of features.

The printed form, of Li, Ding and Jordan (2007), counts pairs of samples. It is what moves lower.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.methods import FEATURES, Method, timed
from nmfcluster import NMFConsensus


def cluster(X: Any, table: np.ndarray, k: int, seed: int, **options: Any) -> np.ndarray:
    model = NMFConsensus(k, affinity="partitions", random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the tri-factorization's
        return model.fit(table).labels_


def of_features(X: Any, extra: Any, k: int, seed: int) -> np.ndarray:
    return NMFConsensus(k, random_state=seed).fit(X).labels_


PRINTED: dict[str, dict[str, Any]] = {
    "NMFC, printed": {},
    "NMFC, moves": {"refine": "moves"},
    "NMFC, tri": {"factorization": "tri"},
}
METHODS = [
    Method("NMFC", timed(cluster)),
    *(
        Method(name, timed(partial(cluster, normalize=False, **options)))
        for name, options in PRINTED.items()
    ),
    Method("NMFC, of features", timed(of_features), wants=FEATURES),
]
