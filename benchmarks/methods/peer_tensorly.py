"""Nonnegative factorizations of a dense tensor by `tensorly` 0.10.0: no clustering, but a part."""

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
    """Return seconds an update and the relative errors after each, of a number of updates.

    The tensor of the runs' biclusters is formed there before the time is taken.
    """
    factors = dict(zip("ABC", start, strict=True))
    given = {"W": runs.W, "H": runs.H} | factors
    found, _ = peer.ask(WORKER, given, n_updates, SOLVERS[name], 0, peer.META_PYTHON)
    return float(found[0]), found[1:]
