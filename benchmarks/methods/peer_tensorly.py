"""Nonnegative factorizations of a dense tensor by `tensorly` 0.10.0, a step of metaclustering."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.methods import peer
from nmfcluster.meta.runs import Runs

WORKER = Path(__file__).with_name("peer_tensorly_worker.py")
SOLVERS = {"tensorly, mu": "non_negative_parafac", "tensorly, HALS": "non_negative_parafac_hals"}

reason = partial(peer.reason, peer.META_PYTHON)


def factorize(
    runs: Runs, start: tuple[np.ndarray, np.ndarray, np.ndarray], name: str, n_updates: int
) -> tuple[float, np.ndarray]:
    """Return the seconds of one update, and the relative error after each of `n_updates`.

    The worker forms the tensor of the runs' biclusters before it takes the time.
    """
    factors = dict(zip("ABC", start, strict=True))
    arrays = {"W": runs.W, "H": runs.H} | factors
    answer, _ = peer.ask(WORKER, arrays, n_updates, SOLVERS[name], 0, peer.META_PYTHON)
    return float(answer[0]), answer[1:]
