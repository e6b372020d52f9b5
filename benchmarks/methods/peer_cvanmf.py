"""Programs by `cvanmf` 0.4.0: the best of 100 runs of scikit-learn with the loss of counts.

Of several numbers of programs it is given the elbow of the cosine similarity to what was left out,
by its bi-cross-validation in ninths, with fewer shuffles than its default of 100.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.methods import peer
from benchmarks.methods.programs import Finder

WORKER = Path(__file__).with_name("peer_cvanmf_worker.py")
NAME = "cvanmf"
RUNS = 100  # its default
AT_K, BY_CHOICE = 900, 1_800  # seconds until it is stopped
ROWS_BY_CHOICE = 50  # it validates every number of programs many times


def find(
    X: np.ndarray, ks: Sequence[int], seed: int, longest: float = AT_K
) -> tuple[np.ndarray, np.ndarray, float]:
    return peer.factors(WORKER, X, ks, RUNS, NAME, seed, peer.CNMF_PYTHON, longest)


FINDERS = [
    Finder(
        NAME,
        find,
        partial(find, longest=BY_CHOICE),
        partial(peer.reason, peer.CNMF_PYTHON),
        rows_by_choice=ROWS_BY_CHOICE,
    )
]
