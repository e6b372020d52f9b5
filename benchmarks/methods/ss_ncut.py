"""SS-SNC: normalised cut of similarities in which constraints replace entries."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.methods import CONSTRAINTS, Method, timed
from benchmarks.methods.ncut import AFFINITIES, cut, similarity
from nmfcluster.constraints import PairwiseConstraints


def cluster(
    X: Any, pairs: PairwiseConstraints, k: int, seed: int, affinity: str = "linear"
) -> np.ndarray:
    return cut(edited(similarity(X, affinity), pairs), k, seed)


def edited(W: np.ndarray, pairs: PairwiseConstraints) -> np.ndarray:
    """Replace entries of must-link pairs by the largest, of cannot-link pairs by the smallest."""
    W, largest, smallest = W.copy(), W.max(), W.min()
    for links, value in ((pairs.must_link, largest), (pairs.cannot_link, smallest)):
        rows, columns = links.T
        W[rows, columns] = W[columns, rows] = value
    return W


METHODS = [
    Method(
        f"SS-SNC{suffix}", timed(partial(cluster, affinity=affinity)), wants=CONSTRAINTS
    )
    for suffix, affinity in AFFINITIES.items()
]
