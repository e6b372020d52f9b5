"""PCKMeans, MPCKMeans and COPKMeans of `active-semi-supervised-clustering` 0.0.1."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.methods import CONSTRAINTS, Method, peer
from nmfcluster.constraints import PairwiseConstraints

WORKER = Path(__file__).with_name("peer_activesemi_worker.py")
NAMES = ("PCKMeans", "MPCKMeans", "COPKMeans")


def run(
    X: Any,
    pairs: PairwiseConstraints,
    k: int,
    seed: int,
    name: str = "PCKMeans",
    longest: float = peer.LONGEST,
) -> tuple[np.ndarray, float]:
    X = X.toarray() if sp.issparse(X) else X
    arrays = {"X": X, "must": pairs.must_link, "cannot": pairs.cannot_link}
    return peer.ask(WORKER, arrays, k, name, seed, longest=longest)


METHODS = [
    Method(
        name,
        partial(run, name=name),
        peer.reason,
        wants=CONSTRAINTS,
        package="active-semi-supervised-clustering",
    )
    for name in NAMES
]
