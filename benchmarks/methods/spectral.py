"""Scikit-learn's spectral clustering of the dense co-association."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.methods import Method, timed
from benchmarks.methods.kc import coassociation
from benchmarks.methods.ncut import cut


def cluster(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    return cut(coassociation(table, np.float64), k, seed)


METHODS = [Method("spectral", timed(cluster))]
