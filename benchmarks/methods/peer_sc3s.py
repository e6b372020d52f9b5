"""Consensus clustering of single cells by `sc3s` 0.1.1, from the features alone.

It clusters principal components by many runs of k-means and combines these.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.methods import FEATURES, Method, peer

WORKER = Path(__file__).with_name("peer_sc3s_worker.py")
NAME = "sc3s"


def run(X: Any, extra: Any, k: int, seed: int) -> tuple[np.ndarray, float]:
    X = X.toarray() if sp.issparse(X) else X
    return peer.ask(
        WORKER, {"X": X}, k, NAME, seed, peer.SC3S_PYTHON, environment=peer.ONE_THREAD
    )


METHODS = [Method(NAME, run, partial(peer.reason, peer.SC3S_PYTHON), FEATURES, NAME)]
