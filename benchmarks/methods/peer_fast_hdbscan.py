"""HDBSCAN of `fast-hdbscan` 0.3.4 with ``semi_supervised=True``, told the classes of some samples.

It finds the number of clusters itself and calls samples noise: these have the label -1.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.methods import LABELS, Method, peer

WORKER = Path(__file__).with_name("peer_fast_hdbscan_worker.py")


def run(
    X: Any, known: np.ndarray, k: int, seed: int, longest: float = peer.LONGEST
) -> tuple[np.ndarray, float]:
    X = X.toarray() if sp.issparse(X) else X
    arrays = {"X": X, "known": known}
    return peer.ask(
        WORKER, arrays, k, "fast-hdbscan", seed, peer.HDBSCAN_PYTHON, longest
    )


METHODS = [
    Method(
        "fast-hdbscan",
        run,
        partial(peer.reason, peer.HDBSCAN_PYTHON),
        wants=LABELS,
        package="fast-hdbscan",
    )
]
