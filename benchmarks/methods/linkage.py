"""Evidence accumulation: average linkage on the dense co-association."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import AgglomerativeClustering

from benchmarks.methods import Method, timed
from benchmarks.methods.kc import coassociation


def cluster(X: Any, table: np.ndarray, k: int, seed: int) -> np.ndarray:
    model = AgglomerativeClustering(k, metric="precomputed", linkage="average")
    return model.fit_predict(1 - coassociation(table))


METHODS = [Method("average linkage", timed(cluster))]
