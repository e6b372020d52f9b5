"""Genie of `genieclust` 1.3.0: a hierarchy that keeps the sizes of clusters from differing much."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.methods import FEATURES, Method, peer

WORKER = Path(__file__).with_name("peer_genieclust_worker.py")


def run(X: Any, extra: Any, k: int, seed: int) -> tuple[np.ndarray, float]:
    X = X.toarray() if sp.issparse(X) else X
    return peer.ask(WORKER, {"X": X}, k, "Genie", seed, peer.LARGE_PYTHON)


METHODS = [
    Method("genieclust", run, partial(peer.reason, peer.LARGE_PYTHON), wants=FEATURES),
]
