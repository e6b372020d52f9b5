"""NMFConsensus of partitions, with its defaults and in other forms, and of features.

The printed form, of Li, Ding and Jordan (2007), counts pairs of samples.
'degrees' divides the dense co-association by the roots of its row sums, as a normalised cut does.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.methods import FEATURES, Method, timed
from benchmarks.methods.kc import coassociation
from nmfcluster import NMFConsensus


def cluster(X: Any, table: np.ndarray, k: int, seed: int, **options: Any) -> np.ndarray:
    model = NMFConsensus(k, affinity="partitions", random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the tri-factorization's
        return model.fit(table).labels_


def by_degrees(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    M = coassociation(table, np.float64)
    return NMFConsensus(k, affinity="precomputed", random_state=seed).fit(M).labels_


def of_features(X: Any, extra: Any, k: int, seed: int) -> np.ndarray:
    return NMFConsensus(k, random_state=seed).fit(X).labels_


PRINTED: dict[str, dict[str, Any]] = {
    "NMFC, printed": {},
    "NMFC, tri": {"factorization": "tri"},
}
METHODS = [
    Method("NMFC", timed(cluster)),
    *(
        Method(name, timed(partial(cluster, normalize=False, **options)))
        for name, options in PRINTED.items()
    ),
    Method("NMFC, degrees", timed(by_degrees)),
    Method("NMFC, of features", timed(of_features), wants=FEATURES),
]
